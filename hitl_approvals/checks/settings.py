"""System checks: what cannot work is an error, what will surprise is a warning."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core import checks
from django.core.checks import CheckMessage, Error, Tags, register
from django.db import connections, router

from hitl_approvals.conf import DEFAULTS, hitl_settings
from hitl_approvals.dispatchers import NAMES


@register()
def check_settings(
    app_configs: Sequence[AppConfig] | None, **kwargs: Any
) -> list[CheckMessage]:
    """Check the `HITL_APPROVALS` dict key by key."""
    found: list[CheckMessage] = []
    raw: Any = hitl_settings.raw
    if not isinstance(raw, dict):
        return [
            Error(
                "HITL_APPROVALS must be a dict.",
                id="hitl_approvals.E003",
            )
        ]
    found += [
        Error(
            f"HITL_APPROVALS has no key {key!r}.",
            hint=f"Known keys: {', '.join(sorted(DEFAULTS))}.",
            id="hitl_approvals.E003",
        )
        for key in sorted(set(raw) - set(DEFAULTS))
    ]
    if hitl_settings.dispatcher not in NAMES:
        found.append(
            Error(
                f"HITL_APPROVALS['DISPATCHER'] is {hitl_settings.dispatcher!r}.",
                hint=f"Use one of: {', '.join(NAMES)}.",
                id="hitl_approvals.E004",
            )
        )
    found += [
        Error(
            f"HITL_APPROVALS[{key!r}] must be a number above 0; it is {raw[key]!r}.",
            id="hitl_approvals.E005",
        )
        for key in sorted(set(raw) & set(DEFAULTS))
        if key not in ("DISPATCHER", "CELERY_QUEUE") and not _positive(key, raw[key])
    ]
    return found


def _positive(key: str, value: Any) -> bool:
    if value is None:
        return DEFAULTS[key] is None or key == "EXECUTE_WITHIN"
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0


@register()
def check_time_zone(
    app_configs: Sequence[AppConfig] | None, **kwargs: Any
) -> list[CheckMessage]:
    """Refuse naive datetimes: leases and limits are compared with the database's UTC."""
    if settings.USE_TZ:
        return []
    return [
        Error(
            "hitl_approvals needs USE_TZ = True.",
            hint="Leases and time limits are compared with the database's UTC clock.",
            id="hitl_approvals.E001",
        )
    ]


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
        checks.Warning(
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
