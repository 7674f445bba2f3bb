"""The two kinds of rows that one can wait for, and what of them is looked at."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias
from uuid import UUID

from django.db.models import Model, QuerySet

from hitl_approvals import permissions, selectors
from hitl_approvals.enums import InterruptStatus, TurnStatus
from hitl_approvals.exceptions import InterruptNotFound, NotFound, TurnNotFound
from hitl_approvals.models import AgentTurn, PendingInterrupt
from hitl_approvals.services.transactions import alias
from hitl_approvals.types import AgentPrincipal, Person

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
    related: tuple[str, ...]
    """What is read with a row to show it."""
    visible_to: Callable[[Person], QuerySet[Any]]
    missing: type[NotFound]
    """What a row is called that is not there, or may not be seen."""

    def standing(self, row: Model) -> Standing:
        """Return where a row stood when it was read."""
        return tuple(getattr(row, name) for name in self.columns)

    def standings(self, ids: Collection[UUID]) -> Iterator[tuple[UUID, Standing]]:
        """Read where rows stand, where they are written; a row that is gone is not told."""
        for chunk in self._rows(ids):
            for pk, *standing in chunk.values_list("pk", *self.columns):
                yield pk, tuple(standing)

    def read(self, ids: Collection[UUID]) -> Iterator[Any]:
        """Read whole rows, whoever may see them."""
        for chunk in self._rows(ids):
            # Without a name Django would follow every key that is never NULL.
            yield from chunk.select_related(*self.related) if self.related else chunk

    def seen_by(self, viewer: Person, rows: Sequence[Any]) -> list[Any]:
        """Return those of some rows that a viewer may see."""
        if isinstance(viewer, AgentPrincipal):
            # As many clients may ask at once; what is theirs stands in the row.
            return [one for one in rows if _is_of(viewer, one)]
        visible = self.visible_to(viewer).using(alias())
        ids = visible.filter(pk__in=[one.pk for one in rows]).values_list(
            "pk", flat=True
        )
        seen = set(ids)
        return [one for one in rows if one.pk in seen]

    def _rows(self, ids: Collection[UUID]) -> Iterator[QuerySet[Any]]:
        every = list(ids)
        for start in range(0, len(every), CHUNK):
            # Not a manager of the site's, which could hide rows.
            rows = self.model._base_manager.using(alias())  # noqa: SLF001
            yield rows.filter(pk__in=every[start : start + CHUNK])


def _is_of(client: AgentPrincipal, row: Any) -> bool:
    return isinstance(row, PendingInterrupt) and permissions.may_view(client, row)


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
    related=selectors.SHOWN_WITH,
    visible_to=permissions.visible_to,
    missing=InterruptNotFound,
)
TURNS = Kind(
    model=AgentTurn,
    columns=("status", "undecided", "events_count"),
    states=tuple(TurnStatus.values),
    held=(TurnStatus.READY, TurnStatus.RUNNING),
    related=(),
    visible_to=permissions.turns_visible_to,
    missing=TurnNotFound,
)
