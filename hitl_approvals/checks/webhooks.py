"""Checks of the endpoints that the outside is told at. Calls none of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from typing import Any

from django.apps import AppConfig
from django.core.checks import CheckMessage, Error, register
from django.core.checks import Warning as CheckWarning

from hitl_approvals.conf import hitl_settings
from hitl_approvals.webhooks.addresses import network_of
from hitl_approvals.webhooks.endpoints import KEYS, texts
from hitl_approvals.webhooks.events import WebhookEvent, is_pattern
from hitl_approvals.webhooks.sender import why_not_url
from hitl_approvals.webhooks.signing import why_not_secret

NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,54}\Z")
"""With `webhook:` before it, it fits the column."""
LIBRARY = "standardwebhooks"
_HOST = re.compile(r"[A-Za-z0-9_.-]+\Z")


@register()
def check_webhooks(
    app_configs: Sequence[AppConfig] | None, **kwargs: Any
) -> list[CheckMessage]:
    """Check each endpoint, and what all of them are allowed to do."""
    settings: Any = hitl_settings.raw
    if not isinstance(settings, dict):
        return []  # E003 says so.
    found = [*_check_allowed()]
    raw = hitl_settings.webhooks
    if not isinstance(raw, dict):
        return [*found, _shape("HITL_APPROVALS['WEBHOOKS'] must be a dict.")]
    for name, endpoint in raw.items():
        found += _check_endpoint(name, endpoint)
    if raw and find_spec(LIBRARY) is None:
        found.append(
            CheckWarning(
                f"Webhooks are signed by {LIBRARY}, which is not installed here.",
                hint='pip install "django-hitl-approvals[webhooks]"',
                id="hitl_approvals.W009",
            )
        )
    return found


def _check_endpoint(name: Any, endpoint: Any) -> Iterator[CheckMessage]:
    where = f"HITL_APPROVALS['WEBHOOKS'][{name!r}]"
    if not isinstance(name, str) or not NAME.match(name):
        yield _shape(
            f"{where}: a name has 1 to 55 lower-case letters, digits, - and _.",
        )
    if not isinstance(endpoint, Mapping):
        yield _shape(f"{where} must be a dict.")
        return
    for key in sorted(str(one) for one in endpoint if one not in KEYS):
        yield _shape(f"{where} has no key {key!r}.")
    why = why_not_url(endpoint.get("url"))
    if why is not None:
        yield Error(f"The url of {where} {why}.", id="hitl_approvals.E012")
    yield from _check_secrets(where, endpoint.get("secrets"))
    yield from _check_choice(where, endpoint)


def _check_secrets(where: str, secrets: Any) -> Iterator[CheckMessage]:
    if not isinstance(secrets, (list, tuple)) or not secrets:
        yield Error(
            f"The secrets of {where} must be a list with at least one.",
            id="hitl_approvals.E013",
        )
        return
    for place, secret in enumerate(secrets, 1):
        why = why_not_secret(secret)
        if why is not None:
            yield Error(f"Secret {place} of {where} {why}.", id="hitl_approvals.E013")


def _check_choice(where: str, endpoint: Mapping[str, Any]) -> Iterator[CheckMessage]:
    events = endpoint.get("events", ["*"])
    for pattern in texts(events) if _are_texts(events) else [events]:
        if not isinstance(pattern, str) or not is_pattern(pattern):
            yield Error(
                f"The events of {where} name nothing that happens: {pattern!r}.",
                hint=f"There are: {', '.join(WebhookEvent)}; * stands for any letters.",
                id="hitl_approvals.E014",
            )
    for key in ("queues", "clients"):
        if endpoint.get(key) is not None and not _are_texts(endpoint[key]):
            yield Error(
                f"The {key} of {where} must be a list of names, with at least one.",
                id="hitl_approvals.E014",
            )
    if not isinstance(endpoint.get("include_args", False), bool):
        yield Error(
            f"include_args of {where} must be True or False.",
            id="hitl_approvals.E014",
        )


def _check_allowed() -> Iterator[CheckMessage]:
    private = hitl_settings.webhook_allow_private
    if not isinstance(private, bool) and not (
        isinstance(private, (list, tuple)) and all(_is_place(one) for one in private)
    ):
        yield Error(
            "HITL_APPROVALS['WEBHOOK_ALLOW_PRIVATE'] must be True, False, or a list of "
            "networks such as 10.1.0.0/16 and of names of hosts.",
            id="hitl_approvals.E015",
        )
    if not isinstance(hitl_settings.raw.get("WEBHOOK_ALLOW_HTTP", False), bool):
        yield Error(
            "HITL_APPROVALS['WEBHOOK_ALLOW_HTTP'] must be True or False.",
            id="hitl_approvals.E015",
        )
    if private is True:
        yield CheckWarning(
            "Webhooks may go to any address, those of this machine and of the cloud's "
            "metadata service included.",
            hint="Name the networks or hosts in WEBHOOK_ALLOW_PRIVATE instead.",
            id="hitl_approvals.W010",
        )
    if hitl_settings.webhook_allow_http:
        yield CheckWarning(
            "Webhooks may go over plain HTTP: everybody on the way can read them.",
            hint="Set WEBHOOK_ALLOW_HTTP to False where you can.",
            id="hitl_approvals.W010",
        )


def _is_place(value: Any) -> bool:
    return isinstance(value, str) and (
        network_of(value) is not None or _HOST.match(value) is not None
    )


def _are_texts(value: Any) -> bool:
    """Tell whether this is one text or a list of some."""
    if isinstance(value, str):
        return bool(value)
    return (
        isinstance(value, (list, tuple))
        and bool(value)
        and all(isinstance(one, str) and one for one in value)
    )


def _shape(text: str) -> CheckMessage:
    return Error(
        text,
        hint=f"An endpoint is a dict with {', '.join(KEYS)}; url and secrets are needed.",
        id="hitl_approvals.E011",
    )
