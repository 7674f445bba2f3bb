"""What an interrupt store has to hold under threads and across processes."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from hitl_approvals.exceptions import InterruptConflict
from hitl_approvals.stores.base import TAKEN, InterruptRecord, InterruptStore
from hitl_approvals.testing.interrupt_store_harness import (
    THREADS,
    InterruptStoreHarness,
    a_record,
    is_claimed,
)


class InterruptStoreRaces(InterruptStoreHarness):
    """The part of the contract that is about doing things at once, and about restarts."""

    # at once

    def test_of_many_that_take_at_once_one_gets_it(self, store: InterruptStore) -> None:
        for _ in range(5):
            record = a_record()
            store.save(record)
            self.ready(store, record.interrupt_id)

            keys = [f"key {number}" for number in range(THREADS)]
            taken = self.together(
                [
                    partial(self.mine(store).take, record.interrupt_id, key=key)
                    for key in keys
                ]
            )

            winners = [one for one in taken if one is not None]
            assert [type(one) for one in winners] == [InterruptRecord]
            assert winners[0].key == keys[taken.index(winners[0])]
            assert is_claimed(store.load(record.interrupt_id), winners[0])

    def test_one_key_that_takes_at_once_is_always_answered(
        self, store: InterruptStore
    ) -> None:
        record = a_record()
        store.save(record)
        self.ready(store, record.interrupt_id)

        taken = self.together(
            [lambda: self.mine(store).take(record.interrupt_id, key="mine")] * THREADS
        )

        assert [getattr(one, "key", one) for one in taken] == ["mine"] * THREADS
        loaded = store.load(record.interrupt_id)
        assert all(is_claimed(loaded, one) for one in taken)

    def test_the_same_saved_at_once_is_one_interrupt(
        self, store: InterruptStore
    ) -> None:
        record = a_record()

        saved = self.together([lambda: self.mine(store).save(record)] * THREADS)

        assert saved == [None] * THREADS
        assert len(store.list(record.interrupt_id)) == 1

    def test_of_others_saved_at_once_under_one_id_one_is_kept(
        self, store: InterruptStore
    ) -> None:
        first = a_record()
        others = [
            replace(first, request=replace(first.request, args={"amount": number}))
            for number in range(THREADS)
        ]

        saved = self.together([partial(self.mine(store).save, one) for one in others])

        kept = [one for one, said in zip(others, saved, strict=True) if said is None]
        refused = [said for said in saved if said is not None]
        assert len(kept) == 1
        assert {type(said) for said in refused} == {InterruptConflict}
        loaded = store.load(first.interrupt_id)
        assert loaded is not None
        assert loaded.request == kept[0].request

    # another object, another process

    def test_a_second_store_sees_what_the_first_saved(
        self, store: InterruptStore
    ) -> None:
        record = a_record()
        store.save(record)

        second = self.make_store().load(record.interrupt_id)

        if self.outlives_its_process:
            assert second == store.load(record.interrupt_id)
        else:
            assert second is None

    def test_another_process_takes_what_this_one_saved(
        self, store: InterruptStore
    ) -> None:
        if not self.outlives_its_process:
            # Nothing to try in another process: the object is the store.
            assert self.make_store().list() == []
            return
        record = a_record()
        store.save(record)
        self.ready(store, record.interrupt_id)

        told = self.elsewhere(
            f"found = store.take({record.interrupt_id!r}, key='theirs')\n"
            "print(found.to_text())"
        )

        taken = InterruptRecord.from_text(told)
        assert taken.key == "theirs"
        assert is_claimed(store.load(record.interrupt_id), taken)
        assert store.take(record.interrupt_id, key="mine") is None

    def test_a_claim_outlives_the_process_that_made_it(
        self, store: InterruptStore
    ) -> None:
        if not self.outlives_its_process:
            assert self.make_store().list() == []
            return
        record = a_record()
        store.save(record)
        self.ready(store, record.interrupt_id)
        self.elsewhere(
            f"store.take({record.interrupt_id!r}, key='theirs')\n"
            "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
            killed=True,
        )

        [left] = store.list(record.interrupt_id)

        assert (left.status, bool(left.key)) == (TAKEN, True)
        assert store.take(record.interrupt_id, key="mine") is None
        again = store.take(record.interrupt_id, key="theirs")
        assert again is not None
        assert is_claimed(left, again)
