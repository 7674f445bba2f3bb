"""The texts that a model gets back for its tool calls. Pure: the same rows, the same text."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

OK, ERROR, REJECTED, EXPIRED, UNKNOWN = (
    "ok",
    "error",
    "rejected",
    "expired",
    "unknown",
)
"""Values of `status` in a tool message."""


def message(call_id: str, name: str, content: str, status: str) -> dict[str, Any]:
    """Build one tool message in the shape that chat models read."""
    return {
        "role": "tool",
        "tool_call_id": call_id,
        "name": name,
        "content": content,
        "status": status,
    }


def readable(value: Any) -> str:
    """Return a result as the model reads it: text as it is, the rest as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def edited(
    proposed: Mapping[str, Any], ran: Mapping[str, Any], *, result: str, reason: str
) -> str:
    """Tell the model what a reviewer changed, what ran, and what came of it."""
    changes = []
    for name in sorted({*proposed, *ran}):
        if name not in ran:
            changes.append(f"{name} was removed")
        elif name not in proposed:
            changes.append(f"{name} was set to {json.dumps(ran[name])}")
        elif proposed[name] != ran[name]:
            changes.append(
                f"{name} from {json.dumps(proposed[name])} to {json.dumps(ran[name])}"
            )
    why = f" Reason: {json.dumps(reason, ensure_ascii=False)}." if reason else ""
    return (
        f"A reviewer changed this call before it ran: {'; '.join(changes)}.{why} "
        f"It ran with {json.dumps(ran, ensure_ascii=False)} instead of your arguments; "
        f"do not ask for the original again. Result: {result}"
    )


def rejected(reason: str) -> str:
    """Tell the model that a person refused."""
    return f"A reviewer rejected this call; it did not run. Reason: {reason}"


def expired() -> str:
    """Tell the model that nobody decided in time."""
    return "Nobody decided this call in time; it did not run."


def given_up() -> str:
    """Tell the model that nobody could find out whether the call happened."""
    return (
        "It is not known whether this call happened, and a person gave up on finding "
        "out. Do not assume that it did, and do not repeat it."
    )


def world_changed(why: str) -> str:
    """Tell the model that a call may not run as things stand."""
    return f"This call did not run: {why}"


def withdrawn() -> str:
    """Tell the model that the request was taken back."""
    return "This request was withdrawn; the call did not run."


def unknown_tool(name: str, known: Sequence[str]) -> str:
    """Tell the model that there is no such tool."""
    offered = ", ".join(sorted(known)) or "none"
    return f"There is no tool {name!r}. Tools: {offered}."


def does_not_fit(detail: str, errors: Sequence[Mapping[str, str]]) -> str:
    """Tell the model why its arguments were not accepted."""
    fields = "; ".join(
        f"{one['loc']}: {one['message']}" if one["loc"] else one["message"]
        for one in errors
    )
    return f"{detail} {fields}".strip() + " The tool did not run."


def failed(text: str) -> str:
    """Tell the model that the tool failed with nothing done."""
    return f"The tool failed and nothing was changed. {text}".strip()
