"""Checks of where our tables are and of how their database is set up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig
from django.core.checks import CheckMessage, Error, Tags, register
from django.core.checks import Warning as CheckWarning
from django.db import connections, router


@register()
def check_one_database(
    app_configs: Sequence[AppConfig] | None, **kwargs: Any
) -> list[CheckMessage]:
    """Our rows change together, so they must live in one database."""
    from hitl_approvals import models

    tables = (
        models.AgentTurn,
        models.PendingInterrupt,
        models.TurnStep,
        models.InterruptEvent,
        models.ReviewQueue,
        models.AgentClient,
        models.Delivery,
        models.DeliveryChannel,
        models.IdempotencyRecord,
        models.SweepMark,
    )
    aliases = {model.__name__: router.db_for_write(model) for model in tables}
    if len(set(aliases.values())) == 1:
        return []
    places = ", ".join(f"{name} in {alias!r}" for name, alias in aliases.items())
    return [
        Error(
            f"The tables of hitl_approvals must share one database: {places}.",
            hint="Route the whole app label `hitl_approvals` to one alias.",
            id="hitl_approvals.E002",
        )
    ]


@register()
def check_people(
    app_configs: Sequence[AppConfig] | None, **kwargs: Any
) -> list[CheckMessage]:
    """Who may decide is asked in one query with the queues, so they share a database."""
    from django.contrib.auth import get_user_model
    from django.contrib.auth.models import Group

    from hitl_approvals.models import ReviewQueue

    ours = router.db_for_write(ReviewQueue)
    tables = (get_user_model(), Group)
    elsewhere = [
        f"{model.__name__} in {router.db_for_write(model)!r}"
        for model in tables
        if router.db_for_write(model) != ours
    ]
    if not elsewhere:
        return []
    return [
        Error(
            f"Reviewers and their queues are in different databases: "
            f"{', '.join(elsewhere)}, ReviewQueue in {ours!r}.",
            hint=(
                "Route `hitl_approvals` to the database of your users and groups; "
                "no query can join two."
            ),
            id="hitl_approvals.E006",
        )
    ]


@register()
def check_clock(
    app_configs: Sequence[AppConfig] | None, **kwargs: Any
) -> list[CheckMessage]:
    """Where a column holds no zone, it must hold the UTC that the server's clock tells."""
    from hitl_approvals.models import AgentTurn

    alias = router.db_for_write(AgentTurn)
    connection = connections[alias]
    zone = connection.settings_dict["TIME_ZONE"]
    if zone in (None, "UTC") or connection.features.supports_timezones:
        return []
    return [
        Error(
            f"DATABASES[{alias!r}]['TIME_ZONE'] is {zone!r}.",
            hint=(
                "Leave it out. On this database Django would write local times, and "
                "leases and limits are compared with the database's UTC clock."
            ),
            id="hitl_approvals.E016",
        )
    ]


@register(Tags.database)
def check_database(
    app_configs: Sequence[AppConfig] | None,
    databases: Sequence[str] | None = None,
    **kwargs: Any,
) -> list[CheckMessage]:
    """Warn of database settings that lose time or durability."""
    from hitl_approvals.models import AgentTurn

    alias = router.db_for_write(AgentTurn)
    if alias not in (databases or ()):
        return []
    connection = connections[alias]
    if connection.vendor != "sqlite":
        return []
    mode = str(connection.settings_dict["OPTIONS"].get("transaction_mode") or "")
    if mode.upper() in ("IMMEDIATE", "EXCLUSIVE"):
        return []
    return [
        CheckWarning(
            "SQLite runs without transaction_mode IMMEDIATE.",
            hint=(
                "Set OPTIONS = {'transaction_mode': 'IMMEDIATE', 'timeout': 20, "
                "'init_command': 'PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;'}; "
                "without it, your own read-then-write transactions fail with "
                "“database is locked” while workers run."
            ),
            id="hitl_approvals.W001",
        )
    ]
