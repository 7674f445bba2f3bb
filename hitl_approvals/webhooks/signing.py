"""Signatures after Standard Webhooks, made by its own library."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable
from datetime import datetime

from hitl_approvals.exceptions import MissingExtra

PREFIX = "whsec_"
LEAST_BYTES, MOST_BYTES = 24, 64


def signature(
    secrets: Iterable[str], *, message_id: str, timestamp: datetime, body: str
) -> str:
    """Return the header that holds one signature for each secret.

    Whoever verifies tries them all, so a secret can be replaced while both sides know
    the old one and the new one.

    Raises:
        MissingExtra: The library is not installed.
    """
    try:
        from standardwebhooks import Webhook
    except ImportError as error:
        raise MissingExtra(
            "Webhooks are signed by `standardwebhooks`, which is not installed: "
            'pip install "django-hitl-approvals[webhooks]"'
        ) from error
    return " ".join(
        Webhook(secret).sign(message_id, timestamp, body) for secret in secrets
    )


def why_not_secret(text: object) -> str | None:
    """Say what is wrong with a secret, without repeating it; None if nothing is."""
    if not isinstance(text, str) or not text.startswith(PREFIX):
        return f"does not begin with {PREFIX}"
    try:
        key = base64.b64decode(text.removeprefix(PREFIX), validate=True)
    except (binascii.Error, ValueError):
        return f"is not base64 after {PREFIX}"
    if not LEAST_BYTES <= len(key) <= MOST_BYTES:
        return (
            f"has {len(key)} bytes, which must be {LEAST_BYTES} to {MOST_BYTES}: "
            f"{PREFIX} and the base64 of that many random bytes"
        )
    return None
