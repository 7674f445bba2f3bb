"""What a journal can hold: JSON, read back exactly as it was written."""

from __future__ import annotations

from typing import Any

from hitl_approvals import canonical
from hitl_approvals.conf import hitl_settings
from hitl_approvals.exceptions import PayloadRejected


def plain(value: Any, what: str, hint: str) -> Any:
    """Return the value as it will be read back from the journal.

    Raises:
        PayloadRejected: It is not JSON, too large or too deep.
    """
    try:
        text = canonical.dumps(
            value,
            max_bytes=hitl_settings.max_payload_bytes,
            max_depth=hitl_settings.max_depth,
        )
    except PayloadRejected as error:
        raise PayloadRejected(
            f"{what} returned something that cannot be recorded: {error.detail} {hint}",
            reason=error.reason,
        ) from error
    return canonical.loads(text)


def copied(value: Any) -> Any:
    """Return a value that the agent may change without changing the journal."""
    return canonical.loads(
        canonical.dumps(value, max_bytes=2**26, max_depth=200),
        max_bytes=2**26,
        max_depth=200,
    )
