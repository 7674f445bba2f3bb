"""Every kind of tampering with the audit trail is found and named."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
from django.utils import timezone

from hitl_approvals import Edit, Reject, services
from hitl_approvals.auditing import Finding, Problem, Verification, verification
from hitl_approvals.models import (
    AgentTurn,
    InterruptEvent,
    PendingInterrupt,
    TurnStep,
)
from hitl_approvals.models.events import event_hash
from tests.auditing.tampering import COMMITS, change, remove, remove_turn
from tests.support.agents import call
from tests.support.turns import (
    begin,
    decide,
    decide_and_resume,
    full_events,
    only,
    pass_deadlines,
    pass_execute_by,
    recover,
    resume,
)
from tests.support.world import Crash, World, acts_then_raises, raises

pytestmark = [
    pytest.mark.django_db(transaction=COMMITS),
    pytest.mark.breaks_invariants,
    pytest.mark.usefixtures("trail"),
]


def done(*replies: list[Any]) -> PendingInterrupt:
    """One call from its question to its end: raised, approved, resolved."""
    turn = begin(*replies or [[call("mail", to="a@example.org")]])
    decide_and_resume(turn)
    assert turn.status == "completed"
    return only(turn)


def events(subject: PendingInterrupt | AgentTurn) -> list[InterruptEvent]:
    return full_events(subject)


def found(**scope: Any) -> list[Finding]:
    return list(Verification(**scope).findings())


def problems(**scope: Any) -> list[tuple[str, int | None]]:
    return [(str(one.problem), one.sequence) for one in found(**scope)]


def test_a_clean_history_of_every_kind_passes(world: World) -> None:
    done()
    refused = begin([call("mail", to="b")])
    decide_and_resume(refused, Reject("no"))
    edited = begin([call("pay", order="1", amount=2)])
    decide_and_resume(edited, Edit({"order": "1", "amount": "3"}))
    lapsed = begin([call("mail", to="c")])
    decide(only(lapsed))
    pass_execute_by(only(lapsed))
    services.sweep()
    cancelled = begin([call("mail", to="d"), call("note", text="free")])
    services.cancel(cancelled.pk, by=None, via="test")
    world.plan("mail", acts_then_raises(Crash()))
    doubted = begin([call("mail", to="e")])
    with pytest.raises(Crash):
        decide_and_resume(doubted)
    pass_deadlines(doubted)
    recover(doubted)
    services.settle(only(doubted).pk, "run_again", by=None, via="test")
    resume(doubted)
    world.plan("note", raises(RuntimeError("lost")))
    begin([call("note", text="a free call in doubt")])
    begin([call("mail", to="waits")])

    check = Verification()

    assert list(check.findings()) == []
    assert check.checked.turns == AgentTurn.objects.count()
    assert check.checked.interrupts == PendingInterrupt.objects.count()
    assert check.checked.events == InterruptEvent.objects.count()
    assert check.checked.gone == 0


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("actor", "somebody else"),
        ("actor_id", "7"),
        ("at", timezone.now()),
        ("decision", "reject"),
        ("detail", '{"reason":"another"}'),
        ("digest_proposed", "c1:00"),
        ("digest_run", "c1:00"),
        ("digest_shown", "c1:00"),
        ("execute_by", timezone.now()),
        ("generation", 9),
        ("on_behalf_of", "x"),
        ("revision", 9),
        ("status", "cancelled"),
        ("turn_id", None),
        ("type", "rejected"),
        ("via", "telepathy"),
    ],
)
def test_a_changed_column_of_an_event_is_found(column: str, value: Any) -> None:
    row = done()
    approved = events(row)[1]

    change(approved, **{column: value})

    assert ("changed", 1) in problems()


def test_a_changed_event_is_named_with_its_subject() -> None:
    row = done()
    change(events(row)[1], actor="somebody else")

    (finding,) = found()

    assert finding.as_dict() == {
        "problem": "changed",
        "fault": True,
        "kind": "interrupt",
        "subject_id": str(row.pk),
        "sequence": 1,
        "text": "Event 1 (approved) was changed: its content does not give its hash.",
    }


def test_a_change_that_brings_its_own_hash_breaks_the_link_to_it() -> None:
    row = done()
    event = events(row)[1]
    event.actor = "somebody else"

    change(event, actor=event.actor, hash=event_hash(event))

    assert problems() == [("unlinked", 2)]


def test_a_last_event_that_brings_its_own_hash_is_not_the_row_s_head() -> None:
    row = done()
    event = events(row)[-1]
    event.actor = "somebody else"

    change(event, actor=event.actor, hash=event_hash(event))

    assert problems() == [("head", 2)]


@pytest.mark.parametrize(
    ("removed", "text"),
    [
        ([0], "Event 0 is missing."),
        ([1], "Event 1 is missing."),
        ([0, 1], "Events 0 to 1 are missing."),
    ],
)
def test_a_missing_event_is_found(removed: list[int], text: str) -> None:
    row = done()
    for event in [events(row)[number] for number in removed]:
        remove(event)

    (finding,) = found()

    assert (finding.problem, finding.text) == (Problem.MISSING, text)


def test_a_cut_off_end_is_found() -> None:
    row = done()

    remove(events(row)[-1])

    assert problems() == [("cut_off", 2)]


def test_an_end_that_was_cut_off_with_the_row_set_back_is_found_by_its_state() -> None:
    row = done()
    _raised, approved, resolved = events(row)
    remove(resolved)

    change(row, events_head=approved.hash, events_count=2)

    assert problems() == [("state", 1)]


def test_an_interrupt_without_any_event_is_found() -> None:
    row = done()
    for event in events(row):
        remove(event)
    assert problems() == [("cut_off", 0)]

    change(row, events_head="", events_count=0)

    assert problems() == [("missing", None)]


def test_a_row_that_counts_too_few_events_is_found() -> None:
    row = done()

    change(row, events_count=2)

    assert problems() == [("uncounted", 2)]


@pytest.mark.parametrize(
    ("columns", "text"),
    [
        (
            {"status": "resolved", "resolved_at": timezone.now()},
            "The row's status is `resolved`; by event 1 (approved) it is `decided`.",
        ),
        (
            {"decision": "reject", "decision_digest": "", "reason": "no"},
            "The row's decision is `reject`; by event 1 (approved) it is `approve`.",
        ),
        (
            {"generation": 2},
            "The row's generation is `2`; by event 1 (approved) it is `1`.",
        ),
        (
            {"revision": 7},
            "The row's revision is `7`; by event 1 (approved) it is `2`.",
        ),
    ],
)
def test_a_row_that_is_not_what_its_last_event_says_is_found(
    columns: dict[str, Any], text: str
) -> None:
    turn = begin([call("mail", to="a")])
    decide(only(turn))

    change(only(turn), **columns)

    assert text in [one.text for one in found() if one.problem == Problem.STATE]


def test_changed_arguments_of_a_row_are_found() -> None:
    turn = begin([call("mail", to="a")])

    change(only(turn), args_text='{"to":"b"}')

    (finding,) = found()
    assert finding.problem == Problem.ARGUMENTS
    assert "the proposed arguments" in finding.text


def test_arguments_exchanged_with_their_digests_after_the_approval_are_found() -> None:
    turn = begin([call("pay", order="1", amount=82_000)])
    decide(only(turn), Edit({"order": "1", "amount": "3"}))
    other = begin([call("pay", order="1", amount=82_000)])
    decide(only(other), Edit({"order": "1", "amount": "820000"}))
    bigger = only(other)

    change(
        only(turn),
        decision_args_text=bigger.decision_args_text,
        decision_digest=bigger.decision_digest,
    )

    (finding,) = found()
    assert (finding.subject_id, finding.problem) == (
        str(only(turn).pk),
        Problem.ARGUMENTS,
    )
    assert "the digest of what may run" in finding.text


@pytest.mark.parametrize("status", ["completed", "failed", "cancelled"])
def test_a_turn_that_ended_without_an_event_is_found(status: str) -> None:
    turn = begin([call("mail", to="a")])

    change(
        turn, status=status, undecided=0, finished_at=timezone.now(), active_thread=None
    )

    (finding,) = found(turn_id=turn.pk)
    assert finding.text == (
        f"The row's status is `{status}`; without any event the turn is still open."
    )


def test_a_turn_that_lives_on_after_its_last_event_is_found() -> None:
    turn = AgentTurn.objects.get(pk=done().turn_id)

    change(turn, status="ready", finished_at=None, next_run_at=timezone.now())

    (finding,) = found()
    assert (finding.kind, finding.problem) == ("turn", Problem.STATE)
    assert finding.text == (
        "The row's status is `ready`; by event 0 the turn is `completed`."
    )


def test_a_changed_event_of_a_turn_is_found() -> None:
    turn = AgentTurn.objects.get(pk=done().turn_id)

    change(events(turn)[0], type="turn_failed")

    assert [(one.kind, one.problem) for one in found()] == [("turn", Problem.CHANGED)]


def test_events_whose_row_is_gone_are_reported_and_no_fault() -> None:
    row = done()
    remove_turn(AgentTurn.objects.get(pk=row.turn_id))
    check = Verification()

    gone = list(check.findings())

    assert {one.subject_id for one in gone} == {str(row.pk), str(row.turn_id)}
    assert {one.problem for one in gone} == {Problem.GONE}
    assert not any(one.is_fault for one in gone)
    assert (check.checked.gone, check.checked.events) == (2, 4)


def test_events_are_verified_even_if_their_row_is_gone() -> None:
    row = done()
    approved = events(row)[1]
    remove_turn(AgentTurn.objects.get(pk=row.turn_id))

    change(approved, actor="somebody else")

    assert ("changed", 1) in problems()


@pytest.mark.parametrize(
    "text", ['{"reason":', "[1,1e400]", '{"a":1,"a":2}', "nothing of ours"]
)
def test_a_column_that_we_never_wrote_is_named_and_ends_nothing(text: str) -> None:
    broken, fine = done(), done()

    change(events(broken)[1], detail=text)
    change(events(fine)[0], actor="x")

    named = found()
    assert [(one.subject_id, one.problem) for one in named if one.is_fault] == [
        (str(broken.pk), Problem.UNREADABLE),
        (str(broken.pk), Problem.MISSING),
        (str(fine.pk), Problem.CHANGED),
    ]


def test_one_turn_can_be_verified_alone() -> None:
    changed, other = done(), done()
    change(events(changed)[0], actor="x")

    assert problems(turn_id=other.turn_id) == []
    assert problems(turn_id=changed.turn_id) == [("changed", 0)]


def test_one_interrupt_can_be_verified_alone() -> None:
    changed, other = done(), done()
    change(events(changed)[0], actor="x")

    assert problems(interrupt_id=other.pk) == []
    assert problems(interrupt_id=changed.pk) == [("changed", 0)]


def test_every_page_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verification, "PAGE", 2)
    rows = [done() for _ in range(5)]
    for row in rows:
        change(events(row)[1], actor="x")

    assert {one.subject_id for one in found()} == {str(row.pk) for row in rows}


def test_a_row_that_moves_while_it_is_read_is_read_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    turn = begin([call("mail", to="a")])
    row = only(turn)
    take_in: Callable[..., None] = verification._take_in

    def decided_meanwhile(kind: str, chains: Any) -> None:
        # What a reader meets whose rows and events are read at two moments.
        take_in(kind, chains)
        for pk, chain in chains.items():
            if pk == row.pk:
                chain.add(Problem.HEAD, "as it looked for a moment")
                decide(row)

    monkeypatch.setattr(verification, "_take_in", decided_meanwhile)

    assert found() == []


def test_a_row_that_never_holds_still_is_reported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    row = done()
    change(events(row)[0], actor="x")
    monkeypatch.setattr(verification, "_read_alone", lambda *_: False)

    assert problems() == [("unreadable", None)]


def test_memory_does_not_grow_with_the_history(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(verification, "PAGE", 10)
    _lonely_events(100)
    few = _peak()
    _lonely_events(2000)

    many = _peak()

    assert InterruptEvent.objects.count() == 2100
    # The driver's own caches grow to a bound; the history itself is ten megabytes.
    assert many - few < 2_000_000


def _lonely_events(number: int) -> None:
    """Write events of subjects that have no row: the cheapest long history."""
    written = []
    for _ in range(number):
        event = InterruptEvent(
            subject_id=uuid4(),
            sequence=0,
            type="raised",
            at=timezone.now(),
            status="pending",
            detail={"reason": "x" * 5000},
        )
        event.hash = event_hash(event)
        written.append(event)
    InterruptEvent.objects.bulk_create(written, batch_size=500)


def _peak() -> int:
    tracemalloc.start()
    try:
        for finding in Verification().findings():
            assert finding.problem == Problem.GONE
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_steps_are_not_part_of_the_trail() -> None:
    row = done()
    change(TurnStep.objects.get(interrupt=row), name="other")

    assert found() == []
