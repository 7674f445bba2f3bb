"""A receiver, and a site that tells it what happens."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from hitl_approvals.webhooks.endpoints import Endpoint
from tests.support.fixtures import (  # noqa: F401  pytest finds them by name
    make_user,
    reviewer,
    world,
)
from tests.webhooks.receivers import Receiver, receiving

SECRET = "whsec_" + "c2VjcmV0IG9mIHRoZSB0ZXN0cywgMzIgYnl0ZXMgbG9uZw=="
OLD_SECRET = "whsec_" + "YW4gb2xkZXIgc2VjcmV0IG9mIHRoZSB0ZXN0cywgdG9vIQ=="
ALLOWED = {
    "DISPATCHER": "worker",
    "WEBHOOK_ALLOW_PRIVATE": ["127.0.0.0/8"],
    "WEBHOOK_ALLOW_HTTP": True,
    "WEBHOOK_TIMEOUT": 5,
}
"""What lets a site call a receiver on loopback."""


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as made:
        yield made


@pytest.fixture
def allowed(settings: Any) -> Callable[..., None]:
    """Set the site's settings: loopback may be called, and whatever the test says."""

    def allow(**changes: Any) -> None:
        settings.HITL_APPROVALS = {**ALLOWED, **changes}

    allow()
    return allow


@pytest.fixture
def told(allowed: Callable[..., None], receiver: Receiver) -> Callable[..., None]:
    """Let the site tell the receiver what happens, as endpoint `crm`."""

    def tell(changes: dict[str, Any] | None = None, **endpoint: Any) -> None:
        given = {"url": receiver.url, "secrets": [SECRET], **endpoint}
        allowed(**{"WEBHOOKS": {"crm": given}, **(changes or {})})

    tell()
    return tell


@pytest.fixture
def endpoint(receiver: Receiver) -> Endpoint:
    return Endpoint(name="crm", url=receiver.url, secrets=(SECRET,))
