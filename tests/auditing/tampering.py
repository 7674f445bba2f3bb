"""Changes rows behind everybody's back: raw SQL, the triggers dropped first."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from django.conf import settings
from django.db import connection, models

from hitl_approvals.models import AgentTurn, InterruptEvent, PendingInterrupt

triggers = import_module("hitl_approvals.migrations.0002_append_only_events")

# MariaDB commits by itself before it drops a trigger; elsewhere that is rolled back.
COMMITS = settings.DATABASES["default"]["ENGINE"].endswith("mysql")


def drop_trigger() -> None:
    with connection.cursor() as cursor:
        for statement in triggers.DROP[connection.vendor]:
            cursor.execute(statement)


def make_trigger() -> None:
    with connection.cursor() as cursor:
        for statement in [
            *triggers.DROP[connection.vendor],
            *triggers.MAKE[connection.vendor],
        ]:
            cursor.execute(statement)


def change(row: models.Model, **columns: Any) -> None:
    """Write columns of one row as they are given."""
    if isinstance(row, InterruptEvent):
        drop_trigger()
    sets = ", ".join(f"{connection.ops.quote_name(name)} = %s" for name in columns)
    _execute(row, f"UPDATE {row._meta.db_table} SET {sets}", *columns.values())


def remove(row: models.Model) -> None:
    """Delete one row, whatever refers to it."""
    if isinstance(row, InterruptEvent):
        drop_trigger()
    _execute(row, f"DELETE FROM {row._meta.db_table}")


def remove_turn(turn: AgentTurn) -> None:
    """Delete a turn with its steps and interrupts; its events stay."""
    for step in turn.steps.all():
        remove(step)
    for row in PendingInterrupt.objects.filter(turn=turn):
        remove(row)
    remove(turn)


def _execute(row: models.Model, statement: str, *values: Any) -> None:
    key = row._meta.pk.get_db_prep_value(row.pk, connection)
    with connection.cursor() as cursor:
        cursor.execute(f"{statement} WHERE id = %s", [*values, key])
        assert cursor.rowcount == 1
