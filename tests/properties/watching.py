"""Sees every change of a status that the package writes, and looks it up in the tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from django.db.models import QuerySet

from hitl_approvals.models import AgentTurn, PendingInterrupt, TurnStep
from hitl_approvals.transitions import BIRTH, INTERRUPT, STEP, TURN

NAMES: dict[type[Any], str] = {
    AgentTurn: "turn",
    PendingInterrupt: "interrupt",
    TurnStep: "step",
}
TABLES = {"turn": TURN, "interrupt": INTERRUPT, "step": STEP}


class Watch:
    """Stands in front of the two ways in which rows of ours are written."""

    def __init__(self) -> None:
        self.taken: set[tuple[str, str, str]] = set()
        self.unknown: list[tuple[str, str, str]] = []
        """What the tables do not know. Not raised: a run takes every error for its own."""
        methods: Any = QuerySet
        self._update: Callable[..., int] = methods.update
        self._insert: Callable[..., Any] = methods._insert

    def see(self, model: type[Any], before: str, after: str) -> None:
        taken = (NAMES[model], str(before), str(after))
        self.taken.add(taken)
        if after not in TABLES[taken[0]][before]:
            self.unknown.append(taken)

    def update(self, rows: Any, **changes: Any) -> int:
        """Compare the rows that an UPDATE finds before and after it."""
        if rows.model not in NAMES or "status" not in changes:
            return self._update(rows, **changes)
        every = rows.model._base_manager.using(rows.db)
        before = dict(rows.values_list("pk", "status"))
        count = self._update(rows, **changes)
        for pk, status in every.filter(pk__in=before).values_list("pk", "status"):
            if status != before[pk]:
                self.see(rows.model, before[pk], status)
        return count

    def insert(self, rows: Any, objs: Any, *args: Any, **options: Any) -> Any:
        """See the birth of a row, saved alone or with others."""
        if rows.model in NAMES:
            for one in objs:
                self.see(rows.model, BIRTH, one.status)
        return self._insert(rows, objs, *args, **options)


@contextmanager
def watched() -> Iterator[Watch]:
    """Collect the transitions that are written while the block runs."""
    watch = Watch()
    methods: Any = QuerySet
    kept = {name: vars(QuerySet)[name] for name in ("update", "_insert")}
    methods.update = lambda rows, **changes: watch.update(rows, **changes)
    methods._insert = lambda rows, *args, **options: watch.insert(
        rows, *args, **options
    )
    try:
        yield watch
    finally:
        for name, method in kept.items():
            setattr(methods, name, method)
