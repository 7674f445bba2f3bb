"""What every interrupt store has to do, as a pytest class to inherit from.

class TestMyStore(InterruptStoreContract):
    def make_store(self):
        return MyStore(...)
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hitl_approvals import canonical
from hitl_approvals.exceptions import InterruptConflict
from hitl_approvals.stores.base import PENDING, TAKEN, InterruptStore
from hitl_approvals.testing.interrupt_store_harness import (
    a_record,
    ids_of,
    is_claimed,
    new_id,
)
from hitl_approvals.testing.interrupt_store_races import InterruptStoreRaces

AWKWARD = ("_", "%", "*", "[", "?", "\\")
"""What means something to SQL's LIKE or to Redis patterns, and nothing in a prefix."""


class InterruptStoreContract(InterruptStoreRaces):
    """Tests of one store. Override `make_store`; the rest as far as the store differs."""

    # save and load

    def test_a_saved_interrupt_is_loaded_as_it_was(self, store: InterruptStore) -> None:
        record = a_record()

        store.save(record)
        loaded = store.load(record.interrupt_id)

        assert loaded is not None
        assert loaded.request == record.request
        assert (loaded.interrupt_id, loaded.status) == (record.interrupt_id, PENDING)
        assert (loaded.decision, loaded.key) == (None, None)
        assert loaded.saved_at.endswith("Z")

    def test_an_unknown_id_is_nothing(self, store: InterruptStore) -> None:
        for unknown in (new_id(), "never", ""):
            assert store.load(unknown) is None
            assert store.take(unknown) is None
            store.delete(unknown)

    def test_saving_the_same_again_changes_nothing(self, store: InterruptStore) -> None:
        record = a_record()
        later = replace(
            record,
            saved_at="2031-01-01T00:00:00Z",
            request=replace(record.request, requested_at="2031-01-01T00:00:00Z"),
        )

        store.save(record)
        before = store.load(record.interrupt_id)
        store.save(record)
        store.save(later)

        assert store.load(record.interrupt_id) == before
        assert len(store.list(record.interrupt_id)) == 1

    @pytest.mark.parametrize(
        "other",
        [{"args": {"amount": 2}}, {"tool_name": "wire"}, {"agent": "another"}],
        ids=["arguments", "tool", "agent"],
    )
    def test_another_request_under_the_same_id_is_a_conflict(
        self, store: InterruptStore, other: dict[str, Any]
    ) -> None:
        record = a_record()
        store.save(record)

        with pytest.raises(InterruptConflict):
            store.save(replace(record, request=replace(record.request, **other)))

        kept = store.load(record.interrupt_id)
        assert kept is not None
        assert kept.request == record.request

    def test_what_a_caller_changes_later_is_not_changed_in_the_store(
        self, store: InterruptStore
    ) -> None:
        args = {"lines": [{"sku": "a"}]}
        record = a_record(args=args)
        store.save(record)

        args["lines"].append({"sku": "b"})
        loaded = store.load(record.interrupt_id)
        assert loaded is not None
        loaded.request.args["lines"].clear()

        again = store.load(record.interrupt_id)
        assert again is not None
        assert again.request.args == {"lines": [{"sku": "a"}]}

    @pytest.mark.parametrize(
        "value",
        [
            2**80,
            -0.0,
            "",
            "ünï \u2028 \U0001f600",
            "nul \x00 and \ud800 alone",
            [],
            {},
            None,
            False,
            {"deep": [[[{"er": [1, "1", 1.5]}]]]},
        ],
        ids=lambda value: ascii(value)[:20],
    )
    def test_arguments_come_back_exactly(
        self, store: InterruptStore, value: Any
    ) -> None:
        record = a_record(args={"value": value})

        store.save(record)
        loaded = store.load(record.interrupt_id)

        assert loaded is not None
        assert canonical.dumps(dict(loaded.request.args)) == canonical.dumps(
            {"value": value}
        )

    # take

    def test_a_taken_interrupt_stays_visible_with_its_key(
        self, store: InterruptStore
    ) -> None:
        record = a_record()
        store.save(record)
        self.ready(store, record.interrupt_id)

        taken = store.take(record.interrupt_id, key="mine")

        assert taken is not None
        assert taken.request == record.request
        assert (taken.status, taken.key) == (TAKEN, "mine")
        assert is_claimed(store.load(record.interrupt_id), taken)
        [listed] = store.list(record.interrupt_id)
        assert is_claimed(listed, taken)

    def test_the_first_key_wins_and_is_answered_again(
        self, store: InterruptStore
    ) -> None:
        record = a_record()
        store.save(record)
        self.ready(store, record.interrupt_id)

        first = store.take(record.interrupt_id, key="first")

        assert first is not None
        assert store.take(record.interrupt_id, key="second") is None
        assert store.take(record.interrupt_id) is None
        assert store.take(record.interrupt_id, key="first") == first

    def test_a_claim_without_a_key_gets_one(self, store: InterruptStore) -> None:
        record = a_record()
        store.save(record)
        self.ready(store, record.interrupt_id)

        taken = store.take(record.interrupt_id)

        assert taken is not None
        assert taken.key
        assert store.take(record.interrupt_id) is None
        assert store.take(record.interrupt_id, key=taken.key) == taken

    def test_saving_again_does_not_undo_a_claim(self, store: InterruptStore) -> None:
        record = a_record()
        store.save(record)
        self.ready(store, record.interrupt_id)
        store.take(record.interrupt_id, key="mine")

        store.save(record)

        assert store.take(record.interrupt_id, key="other") is None

    def test_what_is_settled_is_gone(self, store: InterruptStore) -> None:
        record = a_record()
        store.save(record)
        self.ready(store, record.interrupt_id)
        taken = store.take(record.interrupt_id, key="mine")
        assert taken is not None

        self.finish(store, taken)

        assert store.load(record.interrupt_id) is None
        assert store.list(record.interrupt_id) == []
        assert store.take(record.interrupt_id, key="late") is None

    # delete and list

    def test_a_deleted_interrupt_is_gone(self, store: InterruptStore) -> None:
        record, other = a_record(), a_record()
        store.save(record)
        store.save(other)

        store.delete(record.interrupt_id)
        store.delete(record.interrupt_id)

        assert store.load(record.interrupt_id) is None
        assert store.take(record.interrupt_id) is None
        assert ids_of(store.list()) >= {other.interrupt_id}
        assert record.interrupt_id not in ids_of(store.list())

    def test_the_list_is_ordered_by_id_and_cut_by_a_prefix(
        self, store: InterruptStore
    ) -> None:
        records = [a_record() for _ in range(5)]
        for record in reversed(records):
            store.save(record)
        wanted = sorted(record.interrupt_id for record in records)

        listed = [
            one.interrupt_id for one in store.list() if one.interrupt_id in wanted
        ]

        assert listed == wanted
        for one in wanted:
            assert [found.interrupt_id for found in store.list(one)] == [one]
        assert ids_of(store.list(wanted[0][:8])) >= {wanted[0]}

    @pytest.mark.parametrize("sign", AWKWARD)
    def test_a_prefix_is_literal(self, store: InterruptStore, sign: str) -> None:
        plain = [a_record(), a_record()]
        for record in plain:
            store.save(record)

        assert store.list(sign) == []
        assert store.list(plain[0].interrupt_id[:4] + sign) == []

        if self.takes_any_id:
            odd = a_record(interrupt_id=f"{sign}{sign}a")
            like = a_record(interrupt_id=f"z{sign}a")
            store.save(odd)
            store.save(like)
            assert ids_of(store.list(sign)) == {odd.interrupt_id}
            assert ids_of(store.list(f"z{sign}")) == {like.interrupt_id}

    def test_the_schema_is_text(self, store: InterruptStore) -> None:
        assert isinstance(store.schema(), str)

    # async

    def test_the_async_verbs_do_the_same(self) -> None:
        record, gone = a_record(), a_record()

        async def play() -> None:
            store = self.make_store()
            await store.asave(record)
            await store.asave(record)
            with pytest.raises(InterruptConflict):
                await store.asave(
                    replace(record, request=replace(record.request, tool_name="wire"))
                )
            await store.asave(gone)
            assert ids_of(await store.alist(record.interrupt_id)) == {
                record.interrupt_id
            }
            await store.adelete(gone.interrupt_id)
            assert await store.aload(gone.interrupt_id) is None
            await self.aready(store, record.interrupt_id)
            taken = await store.atake(record.interrupt_id, key="mine")
            assert taken is not None
            assert taken.request == record.request
            assert await store.atake(record.interrupt_id, key="other") is None
            assert await store.atake(record.interrupt_id, key="mine") == taken
            assert is_claimed(await store.aload(record.interrupt_id), taken)
            await self.afinish(store, taken)
            assert await store.aload(record.interrupt_id) is None

        self.run_async(play)
