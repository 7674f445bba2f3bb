"""What a call's result or error becomes on record and for the model. Runs nothing."""

from __future__ import annotations

from typing import Any

from hitl_approvals import canonical
from hitl_approvals.conf import hitl_settings
from hitl_approvals.exceptions import PayloadRejected
from hitl_approvals.registry import Tool
from hitl_approvals.text import cleaned


def dumped(tool: Tool[Any, Any], value: Any) -> Any:
    """Return a result as JSON within the site's limits.

    Raises:
        PayloadRejected: It is not JSON, too large or too deep.
    """
    result = tool.signature.dump_result(value)
    canonical.dumps(
        result,
        max_bytes=hitl_settings.max_payload_bytes,
        max_depth=hitl_settings.max_depth,
    )
    return result


def dumped_after(tool: Tool[Any, Any], value: Any) -> Any:
    """Return the result as JSON; the effect happened, so a bad result is no failure."""
    try:
        return dumped(tool, value)
    except PayloadRejected as error:
        return f"The tool ran, but its result could not be stored: {error.detail}"


def for_operator(error: Exception) -> str:
    """Return an error as the operator reads it: its class and its own words."""
    return cleaned(f"{type(error).__name__}: {error}", 4000)


def for_model(error: Exception, tool: Tool[Any, Any]) -> str:
    """Return what the model may read: a tool's own words, else only the class."""
    if isinstance(error, tool.clean_errors):
        return str(error)
    return f"({type(error).__name__})"
