"""Triggers that make the audit trail append-only.

UPDATE is refused on every database. DELETE is refused on PostgreSQL, where a transaction
that sets `hitl_approvals.prune` to `on` may prune; elsewhere a trigger would also break
Django's `flush`. On SQLite a later migration that alters the table must make the trigger
anew, because Django rebuilds the table.
"""

from __future__ import annotations

from typing import Any

from django.db import migrations

TABLE = "hitl_approvals_interruptevent"

POSTGRESQL = [
    f"""
    CREATE FUNCTION hitl_event_append_only() RETURNS trigger AS $$
    BEGIN
        IF TG_OP = 'DELETE'
           AND current_setting('hitl_approvals.prune', true) = 'on' THEN
            RETURN OLD;
        END IF;
        RAISE EXCEPTION '{TABLE} is append-only';
    END
    $$ LANGUAGE plpgsql
    """,
    f"""
    CREATE TRIGGER hitl_event_append_only BEFORE UPDATE OR DELETE ON {TABLE}
    FOR EACH ROW EXECUTE FUNCTION hitl_event_append_only()
    """,
]
SQLITE = [
    f"""
    CREATE TRIGGER hitl_event_append_only BEFORE UPDATE ON {TABLE}
    BEGIN SELECT RAISE(ABORT, '{TABLE} is append-only'); END
    """,
]
MYSQL = [
    f"""
    CREATE TRIGGER hitl_event_append_only BEFORE UPDATE ON {TABLE} FOR EACH ROW
    SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = '{TABLE} is append-only'
    """,  # noqa: S608  the table's name is a constant
]
MAKE = {"postgresql": POSTGRESQL, "sqlite": SQLITE, "mysql": MYSQL}
DROP = {
    "postgresql": [
        f"DROP TRIGGER IF EXISTS hitl_event_append_only ON {TABLE}",
        "DROP FUNCTION IF EXISTS hitl_event_append_only()",
    ],
    "sqlite": ["DROP TRIGGER IF EXISTS hitl_event_append_only"],
    "mysql": ["DROP TRIGGER IF EXISTS hitl_event_append_only"],
}


def make(apps: Any, schema_editor: Any) -> None:
    _run(schema_editor, MAKE)


def drop(apps: Any, schema_editor: Any) -> None:
    _run(schema_editor, DROP)


def _run(schema_editor: Any, statements: dict[str, list[str]]) -> None:
    for statement in statements.get(schema_editor.connection.vendor, []):
        # No parameters: the statements hold percent signs of their own nowhere.
        schema_editor.execute(statement, params=None)


class Migration(migrations.Migration):
    dependencies = [("hitl_approvals", "0001_initial")]
    operations = [
        # MariaDB commits DDL by itself and Django refuses it inside a transaction.
        migrations.RunPython(make, drop, atomic=False, elidable=False),
    ]
