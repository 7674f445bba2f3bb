"""The two kinds of rows that one can wait for, and what of them is looked at."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias
from uuid import UUID

from django.db.models import Model, QuerySet

from hitl_approvals import permissions, selectors
from hitl_approvals.enums import InterruptStatus, TurnStatus
from hitl_approvals.exceptions import InterruptNotFound, NotFound, TurnNotFound
from hitl_approvals.models import AgentTurn, PendingInterrupt
from hitl_approvals.services.transactions import alias
from hitl_approvals.types import Person

Standing: TypeAlias = tuple[Any, ...]
"""Where a row stands: its status, then what moves with every change worth telling."""

CHUNK = 500
"""Ids of one query; SQLite and PostgreSQL both plan this many well."""


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of rows."""

    model: type[Model]
    columns: tuple[str, ...]
    """What of a row is looked at, the status first."""
    states: tuple[str, ...]
    held: tuple[str, ...]
    """States in which a reader that names none has nothing to do but wait."""
    visible_to: Callable[[Person], QuerySet[Any]]
    missing: type[NotFound]
    """What a row is called that is not there, or may not be seen."""

    def standing(self, row: Model) -> Standing:
        """Return where a row stood when it was read."""
        return tuple(getattr(row, name) for name in self.columns)

    def standings(self, ids: Collection[UUID]) -> Iterator[tuple[UUID, Standing]]:
        """Read where rows stand, where they are written; a row that is gone is not told."""
        # Past `using`, the manager is the plain one: no row is hidden from it.
        rows = self.model._base_manager.using(alias())  # noqa: SLF001
        every = list(ids)
        for start in range(0, len(every), CHUNK):
            chunk = rows.filter(pk__in=every[start : start + CHUNK])
            for pk, *standing in chunk.values_list("pk", *self.columns):
                yield pk, tuple(standing)


def has_news(held: Collection[str], seen: Standing, now: Standing) -> bool:
    """Tell whether a reader in these states wants to hear of it.

    A change of status within the states to wait in, such as a turn's from `ready` to
    `running`, is no news by itself.
    """
    return now[0] not in held or now[1:] != seen[1:]


INTERRUPTS = Kind(
    model=PendingInterrupt,
    # Every transition writes an event, and its number moves in the same UPDATE.
    columns=("status", "revision", "events_count"),
    states=tuple(InterruptStatus.values),
    held=(InterruptStatus.PENDING,),
    visible_to=selectors.interrupts_to_show,
    missing=InterruptNotFound,
)
TURNS = Kind(
    model=AgentTurn,
    columns=("status", "undecided", "events_count"),
    states=tuple(TurnStatus.values),
    held=(TurnStatus.READY, TurnStatus.RUNNING),
    visible_to=permissions.turns_visible_to,
    missing=TurnNotFound,
)
