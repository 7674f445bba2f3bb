"""Invariants I1 to I4 of the state machines, asserted over every row after every test."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from uuid import UUID

from hitl_approvals.auditing import Problem, Verification
from hitl_approvals.auditing.chains import Chain, Finding
from hitl_approvals.auditing.verification import INTERRUPT, SUBJECT, TURN
from hitl_approvals.enums import (
    ASIDE,
    LIVE_TURN,
    DecisionType,
    EventType,
    InterruptStatus,
    OutcomeStatus,
    StepStatus,
    TurnStatus,
)
from hitl_approvals.models import (
    AgentTurn,
    InterruptEvent,
    PendingInterrupt,
    TurnStep,
)
from hitl_approvals.models.events import event_hash

WAITING = {InterruptStatus.PENDING, InterruptStatus.IN_DOUBT}
AUTHORIZATIONS = {
    EventType.APPROVED,
    EventType.EDITED,
    EventType.SETTLED_RUN_AGAIN,
}
APPROVALS = {DecisionType.APPROVE, DecisionType.EDIT}
UNUSED = {OutcomeStatus.WITHDRAWN, OutcomeStatus.LAPSED}
RAN = {OutcomeStatus.SUCCEEDED, OutcomeStatus.FAILED}
BEGUN = {StepStatus.STARTED, StepStatus.SUCCEEDED, StepStatus.UNKNOWN}


def assert_invariants(*, verified: bool = True) -> None:
    """Read every row of ours and compare; raises AssertionError with the row.

    Args:
        verified: Let the package's own verification read the trail anew, which takes
            longer than all the rest. What it thinks of each chain is asked in any case.
    """
    interrupts = list(PendingInterrupt.objects.all())
    turns = list(AgentTurn.objects.all())
    events = _events_by_subject()
    _assert_turns(turns, interrupts)
    for row in interrupts:
        _assert_chain(row.pk, row.events_head, row.events_count, events[row.pk])
        _assert_replay(row, events[row.pk])
        if row.client_id is not None:
            _assert_remote(row, events[row.pk])
    for turn in turns:
        _assert_chain(turn.pk, turn.events_head, turn.events_count, events[turn.pk])
    if interrupts:
        _assert_authorized(interrupts, events)
    _assert_chains_convince([*interrupts, *turns], events)
    if verified:
        _assert_no_fault(Verification().findings())


def _events_by_subject() -> dict[UUID, list[InterruptEvent]]:
    found: dict[UUID, list[InterruptEvent]] = defaultdict(list)
    for event in InterruptEvent.objects.order_by("subject_id", "sequence"):
        found[event.subject_id].append(event)
    return found


def _assert_turns(turns: list[AgentTurn], interrupts: list[PendingInterrupt]) -> None:
    """I1 and what I2 leaves visible in the rows."""
    by_turn: dict[UUID | None, list[PendingInterrupt]] = defaultdict(list)
    for row in interrupts:
        by_turn[row.turn_id].append(row)
    for turn in turns:
        statuses = [row.status for row in by_turn[turn.pk]]
        waiting = sum(status in WAITING for status in statuses)
        if turn.status in LIVE_TURN:
            assert turn.undecided == waiting, (turn, turn.undecided, statuses)
            suspended = turn.status == TurnStatus.SUSPENDED
            assert (waiting > 0) is suspended, (turn.status, statuses)
        else:
            assert turn.undecided == 0, (turn, turn.undecided)
            assert InterruptStatus.PENDING not in statuses, (turn.status, statuses)


def _assert_chain(
    subject: UUID, head: str, count: int, events: list[InterruptEvent]
) -> None:
    assert count == len(events), (subject, count, [e.type for e in events])
    previous = ""
    for number, event in enumerate(events):
        assert event.sequence == number
        assert event.previous_hash == previous
        assert event.hash == event_hash(event), (event, "changed after it was written")
        previous = event.hash
    assert head == previous, (subject, "the head is not the last event")


def _assert_replay(row: PendingInterrupt, events: list[InterruptEvent]) -> None:
    """I4: what the events say last is what the row says."""
    last = events[-1]
    told = (last.status, last.decision, last.generation, last.revision)
    found = (row.status, row.decision or "", row.generation, row.revision)
    assert told == found, (row, [event.type for event in events])
    resolved = [event for event in events if event.status == InterruptStatus.RESOLVED]
    transitions = [e for e in resolved if e.type not in ASIDE]
    assert len(transitions) <= 1, (row, "resolved more than once")


def _assert_remote(row: PendingInterrupt, events: list[InterruptEvent]) -> None:
    """A remote agent's request: fetched once, in time, and never asked again."""
    types = [event.type for event in events]
    fetched = row.consumed_at is not None
    assert row.generation == 1, (row, types)
    assert fetched is (row.consume_key is not None), row
    kept = types.count(EventType.CONSUMED) - types.count(EventType.GIVEN_BACK)
    assert kept == (fetched and row.decision in APPROVALS), types
    if fetched and row.decision in APPROVALS:
        assert row.outcome_due is not None
        consumed = next(one for one in events if one.type == EventType.CONSUMED)
        assert consumed.digest_run == row.decision_digest, (row, "handed out another")
    if row.status == InterruptStatus.IN_DOUBT:
        # After a failover nobody knows who fetched it.
        assert fetched or "failed over" in str(events[-1].detail), (row, types)
        assert row.decision in APPROVALS, (row, types)
    if row.outcome_status in UNUSED:
        assert not fetched, (row, "hidden, and yet it may have run")
    if row.status == InterruptStatus.RESOLVED:
        assert fetched or EventType.SETTLED_HAPPENED in types, (row, types)
        ran = row.outcome_status in RAN
        assert ran is (row.decision in APPROVALS), (row, row.outcome_status)


def _assert_authorized(
    interrupts: list[PendingInterrupt], events: dict[UUID, list[InterruptEvent]]
) -> None:
    """No gated call has more starts than people authorized."""
    begun: dict[UUID | None, int] = defaultdict(int)
    for step in TurnStep.objects.filter(interrupt__isnull=False):
        begun[step.interrupt_id] += step.status in BEGUN
    for row in interrupts:
        allowed = sum(event.type in AUTHORIZATIONS for event in events[row.pk])
        free = 0 if row.policy.get("gated", True) else 1
        # What a fork took over ran in its origin; nothing more can start for it.
        free += any(event.type == EventType.COPIED for event in events[row.pk])
        assert begun[row.pk] <= allowed + free, (row, begun[row.pk], allowed)


def _assert_chains_convince(
    rows: list[PendingInterrupt | AgentTurn], events: dict[UUID, list[InterruptEvent]]
) -> None:
    """The package's own judgement of a chain agrees with ours, of orphans too."""
    known = {row.pk: row for row in rows}
    for subject in {*known, *events}:
        row = known.get(subject)
        kind = SUBJECT
        if row is not None:
            kind = TURN if isinstance(row, AgentTurn) else INTERRUPT
        chain = Chain(kind, str(subject))
        for event in events.get(subject, ()):
            chain.take(event)
        if row is not None:
            chain.compare(row)
        _assert_no_fault(chain.findings)


def _assert_no_fault(findings: Iterable[Finding]) -> None:
    """What a site can verify by itself finds nothing either.

    Arguments excepted: some tests change them to see that nothing runs from them.
    """
    found = [
        finding
        for finding in findings
        if finding.is_fault and finding.problem is not Problem.ARGUMENTS
    ]
    assert not found, found
