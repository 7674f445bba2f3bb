"""Goes through every subject of the audit trail, page by page, and compares.

Holds one page of keys and one event at a time, however long the history is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any
from uuid import UUID

from django.db import router
from django.db.models import Exists, OuterRef, Q, QuerySet

from hitl_approvals.auditing.chains import UNREADABLE, Chain, Finding, Problem
from hitl_approvals.models import AgentTurn, InterruptEvent, PendingInterrupt

PAGE = 100
"""Subjects that are looked at together."""
TRIES = 5
"""A row that moves while it is read is read again, this often."""

INTERRUPT = "interrupt"
TURN = "turn"
SUBJECT = "subject"
_COLUMNS = {
    INTERRUPT: (
        "status",
        "decision",
        "generation",
        "revision",
        "args_text",
        "args_digest",
        "decision_args_text",
        "decision_digest",
        "events_head",
        "events_count",
    ),
    TURN: ("status", "events_head", "events_count"),
}


@dataclass(slots=True)
class Checked:
    """How much was looked at."""

    interrupts: int = 0
    turns: int = 0
    events: int = 0
    gone: int = 0
    """Subjects whose row is not there any more."""

    def as_dict(self) -> dict[str, int]:
        return asdict(self)


class Verification:
    """One pass over the trail, or over one turn's or one interrupt's part of it."""

    def __init__(
        self, *, turn_id: UUID | None = None, interrupt_id: UUID | None = None
    ) -> None:
        self.checked = Checked()
        self._turn_id = turn_id
        self._interrupt_id = interrupt_id

    def findings(self) -> Iterator[Finding]:
        """Yield what is not as it was written; afterwards `checked` is complete.

        Safe while the site runs: what looks wrong is read again on its own.
        """
        for page in _pages(self._interrupts(), "pk"):
            yield from self._look_at(INTERRUPT, page)
        for page in _pages(self._turns(), "pk"):
            yield from self._look_at(TURN, page)
        for page in _pages(self._orphans(), "subject_id"):
            yield from self._look_at(SUBJECT, page)

    def _interrupts(self) -> QuerySet[PendingInterrupt]:
        found = _interrupts()
        if self._interrupt_id is not None:
            return found.filter(pk=self._interrupt_id)
        return found if self._turn_id is None else found.filter(turn=self._turn_id)

    def _turns(self) -> QuerySet[AgentTurn]:
        found = _turns()
        if self._interrupt_id is not None:
            return found.none()
        return found if self._turn_id is None else found.filter(pk=self._turn_id)

    def _orphans(self) -> QuerySet[InterruptEvent]:
        """Return the events of subjects whose rows are not there."""
        found = (
            _events()
            .exclude(Exists(_interrupts().filter(pk=OuterRef("subject_id"))))
            .exclude(Exists(_turns().filter(pk=OuterRef("subject_id"))))
        )
        if self._interrupt_id is not None:
            return found.filter(subject_id=self._interrupt_id)
        if self._turn_id is not None:
            return found.filter(Q(turn_id=self._turn_id) | Q(subject_id=self._turn_id))
        return found

    def _look_at(self, kind: str, page: list[UUID]) -> Iterator[Finding]:
        """Yield the findings of one page; what looks wrong is read again first."""
        chains = {pk: Chain(kind, str(pk)) for pk in page}
        try:
            _take_in(kind, chains)
        except UNREADABLE:
            # One column of one row spoiled the page; find out which.
            suspects = set(page)
        else:
            suspects = {pk for pk, one in chains.items() if one.findings}
        for pk in page:
            chain = _examine(kind, pk) if pk in suspects else chains[pk]
            if chain.kind == SUBJECT:
                chain.add(
                    Problem.GONE, "The row is not there any more; its events are."
                )
            self._count(chain)
            yield from chain.findings

    def _count(self, chain: Chain) -> None:
        self.checked.events += chain.count
        if chain.kind == INTERRUPT:
            self.checked.interrupts += 1
        elif chain.kind == TURN:
            self.checked.turns += 1
        else:
            self.checked.gone += 1


def _take_in(kind: str, chains: dict[UUID, Chain]) -> None:
    """Read the events and the rows of a page in as few statements as possible."""
    events = _events().filter(subject_id__in=chains).order_by("subject_id", "sequence")
    for event in events.iterator(chunk_size=50):
        chains[event.subject_id].take(event)
    if kind != SUBJECT:
        for row in _rows(kind).filter(pk__in=chains).iterator(chunk_size=20):
            chains[row.pk].compare(row)


def _examine(kind: str, subject_id: UUID) -> Chain:
    """Read one subject by itself, until it did not move while it was read."""
    for _try in range(TRIES):
        chain = Chain(kind, str(subject_id))
        try:
            if _read_alone(chain, subject_id):
                return chain
        except UNREADABLE as error:
            chain.add(Problem.UNREADABLE, f"The row cannot be read: {error!r}.")
            return chain
    chain = Chain(kind, str(subject_id))
    chain.add(Problem.UNREADABLE, "The row did not hold still; verify it once more.")
    return chain


def _read_alone(chain: Chain, subject_id: UUID) -> bool:
    """Return whether row and events were read as they stood at one moment."""
    row = None
    if chain.kind != SUBJECT:
        row = _rows(chain.kind).filter(pk=subject_id).first()
    if row is None:
        chain.kind = SUBJECT
    own = _events().filter(subject_id=subject_id)
    for pk in list(own.order_by("sequence").values_list("pk", flat=True)):
        try:
            chain.take(own.get(pk=pk))
        except UNREADABLE as error:
            chain.add(Problem.UNREADABLE, f"Event {pk} cannot be read: {error!r}.")
    if row is None:
        return True
    chain.compare(row)
    # An event and the head of its row are committed together.
    ends = _rows(chain.kind).filter(pk=subject_id)
    now = ends.values_list("events_head", "events_count").first()
    return now == (row.events_head, row.events_count)


def _pages(found: QuerySet[Any], field: str) -> Iterator[list[UUID]]:
    """Yield the keys page by page, in their order; no cursor is held between two."""
    keys = found.order_by(field).values_list(field, flat=True).distinct()
    page: list[UUID] = list(keys[:PAGE])
    while page:
        yield page
        page = list(keys.filter(**{f"{field}__gt": page[-1]})[:PAGE])


def _rows(kind: str) -> QuerySet[Any]:
    found: QuerySet[Any] = _interrupts() if kind == INTERRUPT else _turns()
    return found.only(*_COLUMNS[kind])


# The primary: a replica may show a row and its events at two moments.


def _events() -> QuerySet[InterruptEvent]:
    return InterruptEvent.objects.using(router.db_for_write(InterruptEvent))


def _interrupts() -> QuerySet[PendingInterrupt]:
    return PendingInterrupt.objects.using(router.db_for_write(PendingInterrupt))


def _turns() -> QuerySet[AgentTurn]:
    return AgentTurn.objects.using(router.db_for_write(AgentTurn))
