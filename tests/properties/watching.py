"""Sees every change of a status that the package writes, and looks it up in the tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db.models import QuerySet

from hitl_approvals.models import AgentTurn, PendingInterrupt, TurnStep
from hitl_approvals.statements import inserting
from hitl_approvals.statements.tables import Where
from hitl_approvals.transitions import BIRTH, INTERRUPT, STEP, TURN

NAMES: dict[type[Any], str] = {
    AgentTurn: "turn",
    PendingInterrupt: "interrupt",
    TurnStep: "step",
}
TABLES = {"turn": TURN, "interrupt": INTERRUPT, "step": STEP}


def _statuses(rows: QuerySet[Any]) -> QuerySet[Any]:
    return rows.values_list("pk", "status")


class Watch:
    """Stands in front of the ways in which rows of ours are written: Django's and ours."""

    def __init__(self) -> None:
        self.taken: set[tuple[str, str, str]] = set()
        self.unknown: list[tuple[str, str, str]] = []
        """What the tables do not know. Not raised: a run takes every error for its own."""
        methods: Any = QuerySet
        self._update: Callable[..., int] = methods.update
        self._insert: Callable[..., Any] = methods._insert
        self._change: Callable[..., int] = Where.update
        self._insert_compiled: Callable[..., None] = inserting._insert

    def see(self, model: type[Any], before: str, after: str) -> None:
        taken = (NAMES[model], str(before), str(after))
        self.taken.add(taken)
        if after not in TABLES[taken[0]][before]:
            self.unknown.append(taken)

    def update(self, rows: Any, **changes: Any) -> int:
        """Compare the rows that an UPDATE finds before and after it."""
        if rows.model not in NAMES or "status" not in changes:
            return self._update(rows, **changes)
        before = dict(_statuses(rows))
        count = self._update(rows, **changes)
        self._compare(rows.model, rows.db, before)
        return count

    def change(self, rows: Where[Any], **changes: Any) -> int:
        """Do the same for an UPDATE that was compiled before."""
        if rows._model not in NAMES or "status" not in changes:
            return self._change(rows, **changes)
        before = dict(rows.read(_statuses))
        count = self._change(rows, **changes)
        self._compare(rows._model, rows._using, before)
        return count

    def _compare(self, model: type[Any], using: str, before: dict[Any, str]) -> None:
        every = model._base_manager.using(using)
        for pk, status in _statuses(every.filter(pk__in=before)):
            if status != before[pk]:
                self.see(model, before[pk], status)

    def insert(self, rows: Any, objs: Any, *args: Any, **options: Any) -> Any:
        """See the birth of a row, saved alone or with others."""
        self._see_births(rows.model, objs)
        return self._insert(rows, objs, *args, **options)

    def insert_compiled(self, connection: Any, rows: Any) -> None:
        """Do the same for an INSERT that was compiled before."""
        self._see_births(type(rows[0]), rows)
        self._insert_compiled(connection, rows)

    def _see_births(self, model: type[Any], rows: Any) -> None:
        if model in NAMES:
            for one in rows:
                self.see(model, BIRTH, one.status)


@contextmanager
def watched() -> Iterator[Watch]:
    """Collect the transitions that are written while the block runs."""
    watch = Watch()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(QuerySet, "update", lambda rows, **to: watch.update(rows, **to))
        patch.setattr(QuerySet, "_insert", lambda *a, **kw: watch.insert(*a, **kw))
        patch.setattr(Where, "update", lambda rows, **to: watch.change(rows, **to))
        patch.setattr(inserting, "_insert", watch.insert_compiled)
        yield watch
