"""The database's clock as one expression. Nothing else tells the time in services."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import (
    DateTimeField,
    DurationField,
    ExpressionWrapper,
    Func,
    Value,
)
from django.db.models.expressions import Combinable
from django.db.models.sql.compiler import SQLCompiler

from hitl_approvals.statements import Slot

if TYPE_CHECKING:
    Wrapper = ExpressionWrapper[Combinable]
else:
    Wrapper = ExpressionWrapper


class DbNow(Func):
    """The moment of the statement, in UTC, by the database's clock.

    Django's `Now()` is the server's local time on MariaDB while the column holds UTC,
    and a different moment of the transaction on each database.
    """

    template = "STATEMENT_TIMESTAMP()"
    shape = "DbNow"
    """Its own word for what it is in the shape of a statement."""
    output_field = DateTimeField()
    allowed_default = True

    @property
    def convert_value(self) -> Any:
        """Return what makes UTC of a moment, wherever the connection lives.

        Python adds a day to a moment in a zone by its calendar, which makes 23 or 25
        hours of it when the clocks change.
        """
        return _in_utc

    def as_sqlite(
        self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **context: Any
    ) -> tuple[str, Any]:
        # Six digits, and none where all are 0, like the text that Django's SQLite adapter
        # stores: the comparison of two datetimes is a comparison of two texts.
        return self.as_sql(
            compiler,
            connection,
            template=(
                "REPLACE(STRFTIME('%%%%Y-%%%%m-%%%%d %%%%H:%%%%M:%%%%f000', 'NOW'), "
                "'.000000', '')"
            ),
            **context,
        )

    def as_mysql(
        self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **context: Any
    ) -> tuple[str, Any]:
        return self.as_sql(compiler, connection, template="UTC_TIMESTAMP(6)", **context)


class _Elapsed(Value):
    """A time span as so many seconds, never as so many days."""

    def as_sql(
        self, compiler: SQLCompiler, connection: BaseDatabaseWrapper
    ) -> tuple[str, Any]:
        if isinstance(self.value, Slot):
            return self.value.as_sql(compiler, connection)
        return super().as_sql(compiler, connection)

    def as_postgresql(
        self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **context: Any
    ) -> tuple[str, list[Any]]:
        # A day is a day of the calendar there, in the connection's own time zone.
        seconds = (
            self.value.bound_by(_seconds)
            if isinstance(self.value, Slot)
            else self.value.total_seconds()
        )
        return "MAKE_INTERVAL(secs => %s)", [seconds]


def _seconds(value: timedelta, _connection: BaseDatabaseWrapper) -> float:
    return value.total_seconds()


def _in_utc(value: Any, *_: Any) -> Any:
    return value.astimezone(UTC) if isinstance(value, datetime) else value


_SPAN, _MOMENT, _NOW = DurationField(), DateTimeField(), DbNow()


class DbNowPlus(Wrapper):
    """A moment so long from the database's now."""

    def __init__(self, varying: timedelta | Slot) -> None:
        elapsed = _Elapsed(varying, output_field=_SPAN)
        super().__init__(_NOW + elapsed, output_field=_MOMENT)
        self.varying = varying
        """The one thing in which two of these differ in the shape of a statement."""

    def with_varying(self, slot: Slot) -> DbNowPlus:
        """Return the expression with a slot in place of the time span."""
        own = Slot(slot.place, DurationField().get_db_prep_value, DurationField())
        return DbNowPlus(own)


def db_now_plus(delta: timedelta) -> DbNowPlus:
    """Return the expression for a moment `delta` from the database's now."""
    return DbNowPlus(delta)
