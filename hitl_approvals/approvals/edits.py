"""What an edit must leave alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from hitl_approvals import canonical
from hitl_approvals.exceptions import PayloadRejected


def require_untouched(
    tool_name: str,
    fixed: Iterable[str],
    proposed: Mapping[str, Any],
    edited: Mapping[str, Any],
) -> None:
    """Refuse an edit that changes a fixed argument; both are JSON.

    Raises:
        PayloadRejected: It does.
    """
    errors = [
        {"loc": name, "message": "This argument is fixed and cannot be edited."}
        for name in fixed
        if _text(proposed, name) != _text(edited, name)
    ]
    if errors:
        names = ", ".join(error["loc"] for error in errors)
        raise PayloadRejected(
            f"Fixed arguments of {tool_name} cannot be edited: {names}.", errors=errors
        )


def _text(args: Mapping[str, Any], name: str) -> str | None:
    """Return one argument as text: `1`, `1.0` and `true` are three values."""
    return canonical.dumps(args[name]) if name in args else None
