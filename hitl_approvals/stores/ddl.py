"""The tables of interrupts as SQL, as Django would make them on this database."""

from __future__ import annotations

from django.db import connections

from hitl_approvals.models import (
    AgentClient,
    AgentTurn,
    InterruptEvent,
    PendingInterrupt,
    ReviewQueue,
)

TABLES = (ReviewQueue, AgentClient, AgentTurn, PendingInterrupt, InterruptEvent)
"""In this order, so that each finds what it refers to."""


def ddl(using: str) -> str:
    """Return the statements that make the tables; `manage.py migrate` makes them too."""
    connection = connections[using]
    connection.ensure_connection()
    # Not entered: nothing is run, and entering would commit or refuse a transaction.
    editor = connection.schema_editor(collect_sql=True, atomic=False)
    editor.deferred_sql = []
    for model in TABLES:
        editor.create_model(model)
    statements = [*editor.collected_sql, *(f"{one};" for one in editor.deferred_sql)]
    return "\n".join(statements) + "\n"
