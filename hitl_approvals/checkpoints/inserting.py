"""Inserts rows that may be there already, with one statement on every database.

Written out, because a graph saves at every step: `bulk_create` would begin a transaction
for each statement, build an object for each row and the same text each time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from django.db import models, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models.constants import OnConflict

_AS_THEY_ARE = frozenset({str, int, bool, type(None)})
"""What the fields of these tables hand to every driver as it is."""
Statement = tuple[str, list[Any]]


@dataclass(frozen=True)
class Insert:
    """An INSERT that meets a row with the same key: it leaves the row, or replaces parts."""

    model: type[models.Model]
    names: tuple[str, ...]
    """The fields, in the order of the rows' values."""
    key: tuple[str, ...]
    replaced: tuple[str, ...] = ()

    def statements(
        self, connection: BaseDatabaseWrapper, rows: Sequence[tuple[Any, ...]]
    ) -> list[Statement]:
        """Return one statement for all rows, or several where one cannot take so many."""
        if not rows:
            return []
        fields = _fields(self.model, self.names)
        size = max(connection.ops.bulk_batch_size(list(fields), list(rows)), 1)
        head, line, tail = _frame(self, connection)
        made = []
        for start in range(0, len(rows), size):
            part = rows[start : start + size]
            parameters = [
                value
                if type(value) in _AS_THEY_ARE
                else field.get_db_prep_save(value, connection)
                for row in part
                for field, value in zip(fields, row, strict=True)
            ]
            made.append((f"{head}{', '.join([line] * len(part))}{tail}", parameters))
        return made


def execute(connection: BaseDatabaseWrapper, statements: Sequence[Statement]) -> None:
    """Execute statements, all or nothing."""
    if len(statements) > 1:
        with transaction.atomic(using=connection.alias, savepoint=False):
            _execute(connection, statements)
    else:
        _execute(connection, statements)


def _execute(connection: BaseDatabaseWrapper, statements: Sequence[Statement]) -> None:
    with connection.cursor() as cursor:
        for sql, parameters in statements:
            cursor.execute(sql, parameters)


_frames: dict[tuple[Insert, str, str], tuple[str, str, str]] = {}


def _frame(insert: Insert, connection: BaseDatabaseWrapper) -> tuple[str, str, str]:
    """Return what stands before, for and after a row, as this database writes it."""
    known = (insert, connection.alias, connection.vendor)
    if known not in _frames:
        _frames[known] = _made_frame(insert, connection)
    return _frames[known]


def _made_frame(
    insert: Insert, connection: BaseDatabaseWrapper
) -> tuple[str, str, str]:
    replaced = insert.replaced
    rule = OnConflict.UPDATE if replaced else OnConflict.IGNORE
    if not replaced and connection.vendor != "postgresql":
        # INSERT IGNORE forgives more than a row that exists: a text that is too long on
        # MariaDB, a broken rule on SQLite. To write what is there anyway does not.
        rule, replaced = OnConflict.UPDATE, insert.key[-1:]
    fields = _fields(insert.model, insert.names)
    quote = connection.ops.quote_name
    table = quote(insert.model._meta.db_table)  # noqa: SLF001  Django's way to ask
    columns = ", ".join(quote(field.column) for field in fields)
    head = f"{connection.ops.insert_statement(on_conflict=rule)} {table} ({columns})"
    tail = connection.ops.on_conflict_suffix_sql(fields, rule, replaced, insert.key)
    line = f"({', '.join(['%s'] * len(fields))})"
    return f"{head} VALUES ", line, f" {tail}"


@cache
def _fields(model: type[models.Model], names: tuple[str, ...]) -> tuple[Any, ...]:
    meta = model._meta  # noqa: SLF001  Django's way to ask
    return tuple(meta.get_field(name) for name in names)
