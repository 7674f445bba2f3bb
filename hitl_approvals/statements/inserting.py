"""insert(): new rows, written as `bulk_create()` writes them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cache
from operator import attrgetter
from types import SimpleNamespace
from typing import Any

from django.db import connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Field, Model
from django.db.models.sql import InsertQuery

from hitl_approvals.statements import shapes
from hitl_approvals.statements.kept import kept
from hitl_approvals.statements.reading import Converter, convert, converters
from hitl_approvals.statements.slots import Slots, bound

AT_ONCE = 4
"""Rows of one statement: each number of rows is a shape of its own."""


@dataclass(frozen=True, slots=True)
class _Insertion:
    sql: str
    params: Sequence[Any]
    returned: Sequence[str]
    """Attributes of the columns that the database fills."""
    converters: Sequence[Converter]


def insert(using: str, rows: Sequence[Model]) -> None:
    """Insert rows of one model, all or none, and read back what the database worked out.

    That is what a row left to the database's defaults or set to an expression. Like
    `bulk_create()` this sends no signals.

    Args:
        using: The database's alias.
        rows: New rows, all of one model, whose keys are not the database's to make and
            whose fields work nothing out on saving, as `auto_now` would.

    Raises:
        IntegrityError: A row is there already, or not as the table wants it.
    """
    connection = connections[using]
    if rows and not connection.features.can_return_rows_from_bulk_insert:
        _insert_and_read(using, rows)
        return
    with (
        transaction.mark_for_rollback_on_error(using=using)
        if len(rows) <= AT_ONCE
        else transaction.atomic(using=using, savepoint=False)
    ):
        for begin in range(0, len(rows), AT_ONCE):
            _insert(connection, rows[begin : begin + AT_ONCE])


def _insert_and_read(using: str, rows: Sequence[Model]) -> None:
    """Do the same where an INSERT returns nothing: MySQL."""
    shapes.rows_of(type(rows[0])).using(using).bulk_create(rows)
    for row in rows:
        made = [
            field.attname
            for field in row._meta.local_concrete_fields
            if hasattr(getattr(row, field.attname), "resolve_expression")
        ]
        if made:
            row.refresh_from_db(using=using, fields=made)


def _insert(connection: BaseDatabaseWrapper, rows: Sequence[Model]) -> None:
    model = type(rows[0])
    usual = _usual(model)
    values: list[Any] = []
    given = _given(model)
    new = [given(row) for row in rows]
    # All columns, in their order: only what does not vary makes a shape.
    shape: Hashable = (
        "insert",
        model,
        tuple(shapes.read_new(one, usual, values) for one in new),
    )
    made = kept(connection, shape, lambda: _compiled(connection, model, new))
    with connection.cursor() as cursor:
        cursor.execute(made.sql, bound(made.params, values, connection))
        found = (
            convert(cursor.fetchall(), made.converters, connection)
            if made.returned
            else [[]] * len(rows)
        )
    for row, worked_out in zip(rows, found, strict=True):
        for name, value in zip(made.returned, worked_out, strict=True):
            setattr(row, name, value)
        row._state.adding = False
        row._state.db = connection.alias


def _compiled(
    connection: BaseDatabaseWrapper,
    model: type[Model],
    new: Sequence[Sequence[Any]],
) -> _Insertion:
    slots = Slots()
    columns, usual = model._meta.local_concrete_fields, _usual(model)
    query: Any = InsertQuery(model)
    query.insert_values(
        [
            field
            for field, default, *given in zip(columns, usual, *new, strict=True)
            # The database leaves a column at NULL that nobody names.
            if default is not None
            or not field.null
            or any(value is not None for value in given)
        ],
        [
            SimpleNamespace(**shapes.new_with_slots(columns, one, usual, slots))
            for one in new
        ],
        raw=True,
    )
    compiler = query.get_compiler(connection=connection)
    compiler.returning_fields = returned = [
        field
        for place, field in enumerate(columns)
        if any(hasattr(one[place], "resolve_expression") for one in new)
    ]
    ((sql, params),) = compiler.as_sql()
    found = [field.get_col(model._meta.db_table) for field in returned]
    return _Insertion(
        sql,
        params,
        [field.attname for field in returned],
        converters(compiler, found),
    )


@cache
def _given(model: type[Model]) -> Callable[[Model], Sequence[Any]]:
    """Return what reads all columns of a row at once, in their order."""
    names = [field.attname for field in model._meta.local_concrete_fields]
    read: Callable[[Model], Sequence[Any]] = attrgetter(*names)
    return read


@cache
def _usual(model: type[Model]) -> Sequence[Any]:
    """Return what each column of a new row holds unless somebody says otherwise."""
    return [_default(field) for field in model._meta.local_concrete_fields]


def _default(field: Field[Any, Any]) -> Any:
    """Return a field's default if it is the same for every row, else nobody's."""
    made_anew = field.has_default() and callable(field.default)
    if not (made_anew or field.has_db_default()):
        default = field.get_default()
        if default is None or isinstance(default, (str, int)):
            return default
    return object()
