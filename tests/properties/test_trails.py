"""Drawn histories of one interrupt: its events replay to its row, and no mischief hides.

Pure: rows and events are built in memory, by the functions that the services use.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given, note
from hypothesis import strategies as st

from hitl_approvals import canonical
from hitl_approvals.auditing.chains import Chain
from hitl_approvals.enums import ASIDE as ALL_ASIDE
from hitl_approvals.enums import DecisionType as D
from hitl_approvals.enums import EventType as E
from hitl_approvals.enums import InterruptStatus as S
from hitl_approvals.models import InterruptEvent, PendingInterrupt
from hitl_approvals.services.events import SYSTEM, head, interrupt_event
from hitl_approvals.transitions import BIRTH, INTERRUPT
from tests.properties.profiles import PURE

EVENTS: dict[tuple[str, str], list[E]] = {
    (BIRTH, S.PENDING): [E.RAISED],
    (BIRTH, S.IN_DOUBT): [E.IN_DOUBT],
    (BIRTH, S.RESOLVED): [E.COPIED],
    (BIRTH, S.CANCELLED): [E.COPIED],
    (S.PENDING, S.DECIDED): [E.APPROVED, E.EDITED, E.REJECTED, E.EXPIRED],
    (S.PENDING, S.CANCELLED): [E.CANCELLED],
    (S.DECIDED, S.PENDING): [E.LAPSED, E.REOPENED],
    (S.DECIDED, S.IN_DOUBT): [E.IN_DOUBT],
    (S.DECIDED, S.RESOLVED): [E.RESOLVED],
    (S.DECIDED, S.CANCELLED): [E.CANCELLED],
    (S.IN_DOUBT, S.DECIDED): [E.SETTLED_RUN_AGAIN],
    (S.IN_DOUBT, S.RESOLVED): [E.SETTLED_HAPPENED],
    (S.IN_DOUBT, S.CANCELLED): [E.SETTLED_GAVE_UP],
}
"""Which events tell of which transition."""
DECIDES = {
    E.APPROVED: D.APPROVE,
    E.EDITED: D.EDIT,
    E.REJECTED: D.REJECT,
    E.EXPIRED: D.EXPIRE,
    E.SETTLED_RUN_AGAIN: D.APPROVE,
}
ASIDE: dict[str, list[E]] = {
    status: [E.LATE_RESULT, E.REVEALED]
    if status not in (S.PENDING, S.IN_DOUBT)
    else [E.LATE_RESULT, E.REVEALED, E.CLAIMED, E.RELEASED, E.ASSIGNED]
    for status in S
}
"""Which events may come in between: they tell of no transition."""
NEW_GENERATION = (E.LAPSED, E.REOPENED, E.SETTLED_RUN_AGAIN)
NEW_REVISION = (*NEW_GENERATION, *DECIDES, E.SETTLED_HAPPENED, E.SETTLED_GAVE_UP)
ARGS, OTHER_ARGS = canonical.dumps({"amount": 1}), canonical.dumps({"amount": 2})
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@dataclass
class History:
    """An interrupt's row and its events, as they would be stored."""

    row: PendingInterrupt
    events: list[InterruptEvent] = field(default_factory=list)

    def tell(self, type_: E, status: str) -> None:
        """Make one transition of the row, together with its event."""
        row = self.row
        decision = _decision_after(row, type_)
        may_run = _may_run_after(row, type_)
        event = interrupt_event(
            row,
            type_,
            actor=SYSTEM,
            at=NOON + timedelta(seconds=len(self.events)),
            status=status,
            decision=decision,
            generation=row.generation + (type_ in NEW_GENERATION),
            revision=row.revision + (type_ in NEW_REVISION),
            digest_run=may_run
            if status == S.DECIDED and type_ not in ALL_ASIDE
            else "",
            digest_shown=row.args_digest if type_ in DECIDES else "",
        )
        row.status, row.decision = status, decision or None
        row.generation, row.revision = event.generation, event.revision
        row.decision_digest = may_run
        row.decision_args_text = OTHER_ARGS if decision == D.EDIT else None
        for name, value in head(event).items():
            setattr(row, name, value)
        self.events.append(event)

    def findings(self) -> list[Any]:
        """Return what a verification of the trail has to say."""
        chain = Chain("interrupt", str(self.row.pk))
        for event in self.events:
            chain.take(event)
        chain.compare(self.row)
        return chain.findings


def _decision_after(row: PendingInterrupt, type_: E) -> str:
    if type_ in (E.LAPSED, E.REOPENED):
        return ""
    if type_ == E.SETTLED_RUN_AGAIN and row.decision:
        return str(row.decision)
    return str(DECIDES.get(type_, row.decision or ""))


def _may_run_after(row: PendingInterrupt, type_: E) -> str:
    if type_ in (E.LAPSED, E.REOPENED, E.REJECTED, E.EXPIRED):
        return ""
    if type_ == E.APPROVED:
        return row.args_digest
    if type_ == E.EDITED:
        return canonical.digest(OTHER_ARGS)
    if type_ == E.SETTLED_RUN_AGAIN:
        return row.decision_digest or row.args_digest
    return row.decision_digest


@st.composite
def histories(draw: Any, at_least: int = 1) -> History:
    """Draw a walk through the table of transitions, with events aside in between."""
    digest = canonical.digest(ARGS)
    row = PendingInterrupt(
        kind="tool_call", args_text=ARGS, args_digest=digest, requested_digest=digest
    )
    history = History(row)
    status = BIRTH
    while INTERRUPT[status] and (
        len(history.events) < at_least or draw(st.integers(0, 9))
    ):
        if history.events and draw(st.integers(0, 9)) == 0:
            history.tell(draw(st.sampled_from(ASIDE[status])), status)
        ends = sorted(INTERRUPT[status])
        if status == BIRTH and at_least > 1:
            # A copy in a fork has one event and gets no other.
            ends = [one for one in ends if INTERRUPT[one]]
        after = draw(st.sampled_from(ends))
        history.tell(draw(st.sampled_from(EVENTS[(status, after)])), after)
        status = after
    note([f"{event.type} {event.status}" for event in history.events])
    return history


def test_every_transition_of_the_table_has_its_events():
    allowed = {(from_, to) for from_, after in INTERRUPT.items() for to in after}

    assert set(EVENTS) == allowed


def test_every_event_tells_of_a_transition_or_stands_aside():
    told = {one for types in EVENTS.values() for one in types}
    aside = {one for types in ASIDE.values() for one in types}
    elsewhere = {E.RESPONDED, E.CONSUMED, E.GIVEN_BACK}

    assert aside == set(ALL_ASIDE)
    assert not told & aside
    own = {one for one in E if not one.startswith("turn_")}
    assert own == told | aside | elsewhere


@PURE
@given(histories())
def test_a_drawn_history_replays_to_its_row(history):
    assert history.findings() == []
    last = history.events[-1]
    row = history.row
    assert (row.status, row.generation, row.revision) == (
        last.status,
        last.generation,
        last.revision,
    )


CHANGES: dict[str, Any] = {
    "type": E.RAISED,
    "status": S.CANCELLED,
    "decision": D.RESPOND,
    "actor": "somebody else",
    "via": "elsewhere",
    "generation": 9,
    "revision": 9,
    "digest_run": "c1:0",
    "at": NOON - timedelta(days=1),
    "detail": {"note": "as if"},
    "previous_hash": "c1:1",
}


@PURE
@given(histories(), st.integers(0, 99), st.sampled_from(sorted(CHANGES)))
def test_no_event_can_be_changed_unnoticed(history, number, column):
    number %= len(history.events)
    changed = copy(history.events[number])
    changed_to = CHANGES[column]
    if getattr(changed, column) == changed_to:
        changed_to = "" if isinstance(changed_to, str) else 8
    setattr(changed, column, changed_to)
    history.events[number] = changed

    assert history.findings()


@PURE
@given(histories(at_least=2), st.integers(0, 99))
def test_no_event_can_be_taken_away_unnoticed(history, number):
    del history.events[number % len(history.events)]

    assert history.findings()


@PURE
@given(histories(at_least=2), st.integers(0, 99))
def test_no_two_events_can_change_places_unnoticed(history, number):
    at = number % (len(history.events) - 1)
    events = history.events
    events[at], events[at + 1] = events[at + 1], events[at]

    assert history.findings()


@PURE
@given(histories(), st.integers(0, 99))
def test_no_event_can_be_told_twice_unnoticed(history, number):
    at = number % len(history.events)
    history.events.insert(at, history.events[at])

    assert history.findings()


@PURE
@given(
    histories(),
    st.sampled_from(["status", "decision", "generation", "revision", "events_count"]),
)
def test_no_row_can_be_changed_unnoticed(history, column):
    row = history.row
    value = getattr(row, column)
    others = [S.PENDING, S.RESOLVED] if column == "status" else [D.REJECT, D.APPROVE]
    other = next(one for one in others if one != value)
    setattr(row, column, value + 1 if isinstance(value, int) else other)

    assert history.findings()
