"""Reading: a compiled SELECT, and how rows are made of what it finds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import django
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Model, QuerySet
from django.db.models.query import ModelIterable, get_related_populators

from hitl_approvals.statements.slots import bound

_FETCHED: tuple[Any, ...] = ()
if django.VERSION >= (6, 1):
    from django.db.models.fetch_modes import FETCH_ONE

    _FETCHED = (FETCH_ONE,)

Converter: TypeAlias = tuple[int, Sequence[Callable[..., Any]], Any]
"""A column's place, what makes a value of it, and what the column is."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What Django works out anew for each query: its text, and what its columns are."""

    sql: str
    params: Sequence[Any]
    converters: Sequence[Converter]
    made: Callable[[list[Any]], Any]

    @classmethod
    def of(cls, queryset: QuerySet[Any]) -> Reading:
        """Compile a queryset that has slots: one of rows, or of `values_list()`.

        Raises:
            EmptyResultSet: Nothing can fulfill its conditions.
        """
        compiler = queryset.query.get_compiler(queryset.db)
        sql, params = compiler.as_sql()
        columns = [column for column, *_ in compiler.select]
        # Django's own mark of what the rows are to become; the compiler has none.
        of_models = queryset._iterable_class is ModelIterable
        made = _maker(compiler, queryset.db) if of_models else _plain
        return cls(sql, params, converters(compiler, columns), made)

    def rows(self, connection: BaseDatabaseWrapper, values: Sequence[Any]) -> list[Any]:
        """Execute it with these values."""
        with connection.cursor() as cursor:
            cursor.execute(self.sql, bound(self.params, values, connection))
            found = cursor.fetchall()
        return [self.made(row) for row in convert(found, self.converters, connection)]


def converters(compiler: Any, columns: Sequence[Any]) -> list[Converter]:
    """Return what makes Python values of these columns."""
    return [
        (place, functions, column)
        for place, (functions, column) in compiler.get_converters(columns).items()
    ]


def convert(
    rows: Iterable[Sequence[Any]],
    converters: Sequence[Converter],
    connection: BaseDatabaseWrapper,
) -> list[list[Any]]:
    """Return rows with Python values in the places of the database's."""
    found = [list(row) for row in rows]
    for place, functions, column in converters:
        for row in found:
            for function in functions:
                row[place] = function(row[place], column, connection)
    return found


def _plain(row: list[Any]) -> Any:
    return row[0] if len(row) == 1 else tuple(row)


def _maker(compiler: Any, using: str) -> Callable[[list[Any]], Model]:
    """Return what makes a model of a row, as Django's own iterable does it."""
    info, select = compiler.klass_info, compiler.select
    model: type[Model] = info["model"]
    first, last = info["select_fields"][0], info["select_fields"][-1] + 1
    names = [column.target.attname for column, *_ in select[first:last]]
    related = get_related_populators(info, select, using, *_FETCHED)
    annotations = list(compiler.annotation_col_map.items())

    def made(row: list[Any]) -> Model:
        found = model.from_db(using, names, row[first:last])
        for populator in related:
            populator.populate(row, found)
        for name, place in annotations:
            setattr(found, name, row[place])
        return found

    return made
