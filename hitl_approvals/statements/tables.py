"""where(): rows to read or to change, said as to `filter()`."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar

from django.core.exceptions import EmptyResultSet
from django.db import connections, transaction
from django.db.models import Model, QuerySet
from django.db.models.sql import UpdateQuery

from hitl_approvals.statements import shapes
from hitl_approvals.statements.kept import kept
from hitl_approvals.statements.reading import Reading
from hitl_approvals.statements.shapes import Condition, There
from hitl_approvals.statements.slots import Slots, bound

M = TypeVar("M", bound=Model)

NOTHING = object()
"""Kept for conditions that no row can fulfill: Django sends nothing then."""


def where(
    using: str, model: type[M], *conditions: Condition, **lookups: Any
) -> Where[M]:
    """Return the rows of `model` that fulfill the conditions, neither read nor counted.

    Conditions compare columns of this one table with values, with the database's time
    or with other columns; `There` asks whether another row is there.

    Args:
        using: The database's alias.
        model: The table.
        *conditions: As for `filter()`; a value may be anything but a row or a query.
        **lookups: As for `filter()`.
    """
    return Where(using, model, (*conditions, *lookups.items()))


def ask(
    using: str,
    build: Callable[..., QuerySet[Any]],
    *given: tuple[Any, Any],
) -> list[Any]:
    """Read what `where()` cannot say.

    Args:
        using: The database's alias.
        build: Makes the queryset, of a slot for each value. It is called once for each
            connection, so it must be one function, not a new one each time.
        *given: The values, each with the column that it is compared with.

    Returns:
        As of `Where.read`.
    """
    connection = connections[using]

    def compiled() -> Any:
        slots = Slots()
        asked = build(*(slots.to_compare(field) for field, _value in given))
        return _compiled(asked.using(using))

    reading = kept(connection, ("ask", build), compiled)
    values = [value for _field, value in given]
    return [] if reading is NOTHING else reading.rows(connection, values)


def _compiled(queryset: QuerySet[Any]) -> Any:
    try:
        return Reading.of(queryset)
    except EmptyResultSet:
        return NOTHING


class Where(Generic[M]):
    """Rows of one table, by conditions that were not compiled yet."""

    __slots__ = ("_conditions", "_model", "_using")

    def __init__(
        self, using: str, model: type[M], conditions: tuple[Condition, ...]
    ) -> None:
        self._using = using
        self._model = model
        self._conditions = conditions

    def there(self) -> There:
        """Return the condition that there is such a row."""
        return There(self._model, self._conditions)

    def update(self, **changes: Any) -> int:
        """Change the columns of these rows, and return how many there were."""
        connection = connections[self._using]
        values: list[Any] = []
        shape: Hashable = (
            "update",
            self._model,
            # Both in the order in which the slots are given out.
            shapes.read_changes(changes, values),
            shapes.read(self._conditions, values),
        )
        made = kept(connection, shape, lambda: self._compiled_update(changes))
        if made is NOTHING:
            return 0
        sql, params = made
        with (
            transaction.mark_for_rollback_on_error(using=self._using),
            connection.cursor() as cursor,
        ):
            cursor.execute(sql, bound(params, values, connection))
            return int(cursor.rowcount)

    def read(
        self,
        how: Callable[[QuerySet[M]], QuerySet[Any]] | None = None,
        *,
        limit: int | None = None,
    ) -> list[Any]:
        """Read these rows.

        Args:
            how: Says what else to ask for: an order, related rows, annotations,
                `values_list()`. It is a part of the shape, so it must be one function,
                not a new one each time.
            limit: The most rows to read.

        Returns:
            Models; of `values_list()` the tuples, or the values of its one column.
        """
        connection = connections[self._using]
        values: list[Any] = []
        shape: Hashable = (
            "read",
            self._model,
            (how, limit),
            shapes.read(self._conditions, values),
        )
        reading = kept(connection, shape, lambda: self._compiled_read(how, limit))
        return [] if reading is NOTHING else reading.rows(connection, values)

    def first(
        self, how: Callable[[QuerySet[M]], QuerySet[Any]] | None = None
    ) -> Any | None:
        """Read one of these rows: the first if `how` gives an order."""
        found = self.read(how, limit=1)
        return found[0] if found else None

    def _compiled_update(self, changes: dict[str, Any]) -> Any:
        slots = Slots()
        changed = shapes.changes_with_slots(self._model, changes, slots)
        queryset = self._queryset(slots)
        query: Any = queryset.query.chain(UpdateQuery)
        query.add_update_values(changed)
        try:
            return query.get_compiler(self._using).as_sql()
        except EmptyResultSet:
            return NOTHING

    def _compiled_read(
        self, how: Callable[[QuerySet[M]], QuerySet[Any]] | None, limit: int | None
    ) -> Any:
        queryset = self._queryset(Slots())
        asked = queryset if how is None else how(queryset)
        return _compiled(asked if limit is None else asked[:limit])

    def _queryset(self, slots: Slots) -> QuerySet[M]:
        conditions = shapes.with_slots(self._model, self._conditions, slots)
        return shapes.rows_of(self._model).using(self._using).filter(*conditions)
