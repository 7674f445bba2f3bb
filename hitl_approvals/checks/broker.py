"""Checks of the broker's settings. Connects to nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig
from django.core.checks import CheckMessage, register
from django.core.checks import Warning as CheckWarning

from hitl_approvals.conf import hitl_settings
from hitl_approvals.exceptions import MissingExtra

TIMEOUTS = ("socket_connect_timeout", "socket_timeout")
MAKE_AN_APP = (
    "Make a Celery app in the project's package and import it in that package's "
    "__init__.py, so that web processes have it too."
)


@register()
def check_broker(
    app_configs: Sequence[AppConfig] | None, **kwargs: Any
) -> list[CheckMessage]:
    """Warn of a broker that could hold whoever talks to it, or do things twice."""
    raw: Any = hitl_settings.raw
    if not isinstance(raw, dict) or hitl_settings.dispatcher != "celery":
        return []
    # Celery's own settings, as they are once the site's app has read them.
    from hitl_approvals.dispatchers.broker import BrokerSettings

    try:
        broker = BrokerSettings.read()
    except MissingExtra as error:
        return [_unknown(str(error), "Install it for web processes and workers.")]
    except Exception as error:  # noqa: BLE001  the site's own configuration code
        return [_unknown(f"Celery's settings cannot be read: {error}")]
    if not broker.named:
        return [_unknown("No broker is named for Celery in this process.")]
    found: list[CheckMessage] = []
    if broker.is_redis:
        found += _check_timeouts(broker.options)
        found += _check_visibility(broker.visibility_timeout, broker.task_limit)
    return found


def _unknown(text: str, what_to_do: str = MAKE_AN_APP) -> CheckMessage:
    return CheckWarning(
        text,
        hint=(
            f"{what_to_do} Or set HITL_APPROVALS['DISPATCHER'] to 'worker' to need no "
            "broker."
        ),
        id="hitl_approvals.W008",
    )


def _check_timeouts(options: dict[str, Any]) -> list[CheckMessage]:
    missing = [name for name in TIMEOUTS if not options.get(name)]
    if not missing:
        return []
    return [
        CheckWarning(
            f"The broker has no {' and no '.join(missing)}.",
            hint=(
                "A broker that accepts connections and never answers would hold "
                "workers for ever. Set CELERY_BROKER_TRANSPORT_OPTIONS = "
                "{'socket_timeout': 10, 'socket_connect_timeout': 3}."
            ),
            id="hitl_approvals.W002",
        )
    ]


def _check_visibility(visibility: float, limit: float | None) -> list[CheckMessage]:
    if limit is None or limit <= visibility:
        return []
    return [
        CheckWarning(
            f"Redis hands a task that is not acknowledged to another worker after "
            f"{visibility:g} s, and tasks may take {limit:g} s.",
            hint=(
                "Tasks with acks_late would run twice at once. Turns would not: they "
                "are claimed in the database. Set visibility_timeout in "
                "CELERY_BROKER_TRANSPORT_OPTIONS above the longest task's limit."
            ),
            id="hitl_approvals.W006",
        )
    ]
