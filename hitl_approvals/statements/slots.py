"""Slot: the place of a value in a compiled statement."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import Any, TypeAlias

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import CharField, Expression, Field, TextField
from django.db.models.sql.compiler import SQLCompiler

_TEXT = (CharField, TextField)
"""These and no subclass, which may prepare texts in its own way."""

Bind: TypeAlias = Callable[[Any, BaseDatabaseWrapper], Any]
"""Makes of a value what the driver takes."""


class Slot(Expression):
    """Stands for a value when a statement is compiled, and is its own parameter there."""

    def __init__(self, place: int, bind: Bind, output_field: Field[Any, Any]) -> None:
        super().__init__(output_field=output_field)
        self.place = place
        self.bind = bind
        self.is_text = type(output_field) in _TEXT

    def bound_by(self, bind: Bind) -> Slot:
        """Return a slot for the same value, handed over in another way."""
        return Slot(self.place, bind, self.output_field)

    def as_sql(
        self, compiler: SQLCompiler, connection: BaseDatabaseWrapper
    ) -> tuple[str, Any]:
        return "%s", (self,)


class Slots:
    """Hands out the slots of one statement, in the order of its values."""

    def __init__(self) -> None:
        self._places: Iterator[int] = count()

    def to_compare(self, field: Field[Any, Any]) -> Slot:
        """Return a slot for a value that a column is compared with."""
        return Slot(next(self._places), field.get_db_prep_value, field)

    def to_save(self, field: Field[Any, Any]) -> Slot:
        """Return a slot for a value that a column is set to."""
        bind = _Related(field) if field.is_relation else field.get_db_prep_save
        return Slot(next(self._places), bind, field)


class _Related:
    """Prepares what a foreign key is set to; a row stands for its key, as in Django."""

    def __init__(self, field: Field[Any, Any]) -> None:
        self._field = field

    def __call__(self, value: Any, connection: BaseDatabaseWrapper) -> Any:
        if hasattr(value, "prepare_database_save"):
            value = value.prepare_database_save(self._field)
        return self._field.get_db_prep_save(value, connection)


def bound(
    params: Sequence[Any], values: Sequence[Any], connection: BaseDatabaseWrapper
) -> list[Any]:
    """Return the parameters of an execution: each slot's value, the rest as it is."""
    found = []
    for one in params:
        if type(one) is Slot:
            value = values[one.place]
            # Most of what is inserted, and what Django would hand on as it is.
            as_it_is = value is None or (one.is_text and type(value) is str)
            found.append(value if as_it_is else one.bind(value, connection))
        else:
            found.append(one)
    return found
