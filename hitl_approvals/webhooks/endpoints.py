"""The site's `WEBHOOKS` setting, as endpoints. Whatever is wrong in it, checks say.

Secrets belong in the environment, and a transaction should not ask a table whom to tell:
so endpoints stand in the settings, not in rows.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hitl_approvals.conf import hitl_settings
from hitl_approvals.webhooks.events import (
    WebhookEvent,
    is_of_an_interrupt,
    matches,
)

logger = logging.getLogger("hitl_approvals")

CHANNEL = "webhook:"
KEYS = ("url", "secrets", "events", "queues", "clients", "include_args")
"""What an endpoint may say; the first two it must."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One place that is told what happens."""

    name: str
    url: str = field(repr=False)
    """Not in tracebacks: some receivers put a token into their path."""
    secrets: tuple[str, ...] = field(repr=False)
    """Each of them signs; the first is the newest."""
    events: tuple[str, ...] = ("*",)
    queues: frozenset[str] | None = None
    clients: frozenset[str] | None = None
    include_args: bool = False

    @property
    def channel(self) -> str:
        """What its deliveries are filed under."""
        return f"{CHANNEL}{self.name}"

    def wants(self, event: WebhookEvent) -> bool:
        """Tell whether it asked for this kind of event at all."""
        if not is_of_an_interrupt(event) and self._is_narrow:
            return False
        return any(matches(pattern, event) for pattern in self.events)

    def wants_of(self, queue: str | None, client: str | None) -> bool:
        """Tell whether it asked for interrupts of this queue and remote agent."""
        return (self.queues is None or queue in self.queues) and (
            self.clients is None or client in self.clients
        )

    @property
    def _is_narrow(self) -> bool:
        """A turn has no queue and no client: whoever names some means interrupts."""
        return self.queues is not None or self.clients is not None


def endpoints() -> list[Endpoint]:
    """Return the site's endpoints.

    Never raises: a mistake in the settings, which the checks have named, must not keep
    people from deciding. What can be read of an endpoint is used, so that what it is
    owed is kept until the mistake is mended.
    """
    raw = hitl_settings.webhooks
    if not raw:
        return []
    if not isinstance(raw, Mapping):
        logger.error("HITL_APPROVALS['WEBHOOKS'] is no dict; nobody is told anything.")
        return []
    return [_read(str(name), one) for name, one in raw.items()]


def endpoint_of(channel: str) -> Endpoint | None:
    """Return the endpoint of a channel; None if this process's settings have none."""
    return next((one for one in endpoints() if one.channel == channel), None)


def _read(name: str, raw: Any) -> Endpoint:
    given = raw if isinstance(raw, Mapping) else {}
    return Endpoint(
        name=name,
        url=str(given.get("url", "")),
        secrets=tuple(texts(given.get("secrets", ()))),
        events=tuple(texts(given.get("events", "*"))),
        queues=_some(given.get("queues")),
        clients=_some(given.get("clients")),
        include_args=given.get("include_args") is True,
    )


def _some(value: Any) -> frozenset[str] | None:
    return None if value is None else frozenset(texts(value))


def texts(value: Any) -> Iterable[str]:
    """Return one text or many as many."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, (list, tuple, set, frozenset)):
        return [str(one) for one in value]
    return []
