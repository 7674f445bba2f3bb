"""Checks of the `HITL_APPROVALS` dict and of Django's own settings that we need."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Error, register
from django.utils.functional import Promise

from hitl_approvals.conf import DEFAULTS, hitl_settings
from hitl_approvals.dispatchers import NAMES
from hitl_approvals.services.client_limits import MOST, NUMBERS, is_number

MAX_REASON = 500
THREAD_POLICIES = ("queue", "cancel", "refuse")
NO_NUMBERS = (
    "DISPATCHER",
    "CELERY_QUEUE",
    "THREAD_POLICY",
    "REJECT_REASONS",
    "CLIENT_LIMITS",
    "WEBHOOKS",
    "WEBHOOK_CELERY_QUEUE",
    "WEBHOOK_ALLOW_HTTP",
    "WEBHOOK_ALLOW_PRIVATE",
)
NONE_IS_NO_LIMIT = ("DELIVERIES_KEPT", "EXECUTE_WITHIN")
"""Keys that may be None although their default is a number."""


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
    if hitl_settings.thread_policy not in THREAD_POLICIES:
        found.append(
            Error(
                f"HITL_APPROVALS['THREAD_POLICY'] is {hitl_settings.thread_policy!r}.",
                hint=f"Use one of: {', '.join(THREAD_POLICIES)}.",
                id="hitl_approvals.E007",
            )
        )
    found += [
        Error(
            f"HITL_APPROVALS[{key!r}] must be a number above 0; it is {raw[key]!r}.",
            id="hitl_approvals.E005",
        )
        for key in sorted(set(raw) & set(DEFAULTS))
        if key not in NO_NUMBERS and not _positive(key, raw[key])
    ]
    if not _reasons(raw.get("REJECT_REASONS", [])):
        found.append(
            Error(
                "HITL_APPROVALS['REJECT_REASONS'] must be a list of different texts "
                f"of 1 to {MAX_REASON} characters.",
                id="hitl_approvals.E008",
            )
        )
    if not _limits(raw.get("CLIENT_LIMITS", {})):
        found.append(
            Error(
                "HITL_APPROVALS['CLIENT_LIMITS'] must be a dict that maps some of "
                f"{', '.join(NUMBERS)} to an integer from 1 to {MOST}, or None.",
                id="hitl_approvals.E010",
            )
        )
    return found


def _limits(value: Any) -> bool:
    """Tell whether these are limits of agent clients."""
    return isinstance(value, dict) and all(
        name in NUMBERS and (one is None or is_number(one))
        for name, one in value.items()
    )


def _reasons(value: Any) -> bool:
    """Tell whether these are texts that can be chosen, sent and stored."""
    if not isinstance(value, (list, tuple)):
        return False
    if not all(isinstance(one, (str, Promise)) for one in value):
        return False
    texts = [str(one) for one in value]
    return len(set(texts)) == len(texts) and all(
        one == one.strip() and one.isprintable() and 0 < len(one) <= MAX_REASON
        for one in texts
    )


def _positive(key: str, value: Any) -> bool:
    if value is None:
        return DEFAULTS[key] is None or key in NONE_IS_NO_LIMIT
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
