"""Empties the tables after a transactional test, without TRUNCATE and post_migrate.

Django's own way makes every table's files anew and recreates content types and rights;
that took most of the suite's time. What a host's suite does is tested in `tests/sites`.
"""

from __future__ import annotations

from django.db import connections, transaction
from django.test import TransactionTestCase

KEPT = {"django_content_type", "auth_permission", "django_migrations"}
"""Made by `migrate`, and the same before and after every test."""
_ALLOW = {
    "postgresql": ["SELECT set_config('hitl_approvals.prune', 'on', true)"],
    "mysql": ["SET FOREIGN_KEY_CHECKS = 0"],
}
_FORBID = {"mysql": ["SET FOREIGN_KEY_CHECKS = 1"]}
_deletes: dict[str, list[str]] = {}
"""What empties each database, by its name: `migrate` alone makes tables."""

_django = TransactionTestCase._fixture_teardown


def install() -> None:
    """Let every transactional test of this run end this way."""
    TransactionTestCase._fixture_teardown = _teardown  # type: ignore[method-assign]


def _teardown(self: TransactionTestCase) -> None:
    if self.available_apps is not None or self.serialized_rollback:
        _django(self)
        return
    for alias in self._databases_names(include_mirrors=False):
        empty(alias)


def empty(alias: str) -> None:
    """Delete every row but those of `KEPT`, and make the default queue again."""
    connection = connections[alias]
    name = connection.settings_dict["NAME"]
    if name not in _deletes:
        _deletes[name] = _deletes_of(alias)
    with transaction.atomic(using=alias), connection.cursor() as cursor:
        for statement in _deletes[name]:
            cursor.execute(statement)
    from hitl_approvals.checkpoints import close_idle_connections
    from hitl_approvals.services import queues

    queues.ensure_default(using=alias)
    # As after `migrate`: the database can only be dropped when nobody is connected.
    close_idle_connections(alias)


def _deletes_of(alias: str) -> list[str]:
    """Return what empties a database, in one statement where that may be several."""
    connection = connections[alias]
    tables = connection.introspection.django_table_names(
        only_existing=True, include_views=False
    )
    statements = [
        *_ALLOW.get(connection.vendor, ()),
        *(
            f"DELETE FROM {connection.ops.quote_name(table)}"
            for table in sorted(set(tables) - KEPT)
        ),
        *_FORBID.get(connection.vendor, ()),
    ]
    return ["; ".join(statements)] if connection.vendor == "postgresql" else statements
