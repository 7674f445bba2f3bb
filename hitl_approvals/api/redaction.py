"""What a tool declared as hidden (`redact=`) stays hidden on the wire. Reads no row.

It hides arguments wherever they stand as arguments. What the agent, a tool or a user
wrote in free text is shown as it is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from hitl_approvals import canonical
from hitl_approvals.exceptions import PayloadRejected
from hitl_approvals.models import PendingInterrupt
from hitl_approvals.registry import registry
from hitl_approvals.text import Redactor, texts_in


def hidden_names(row: PendingInterrupt) -> list[str]:
    """Return the names of the arguments of this call that are not shown."""
    return list((row.policy or {}).get("redact", ()))


def shown_args(text: str | None, hidden: Collection[str]) -> Any:
    """Return the arguments in a canonical text, null in place of each hidden value.

    A text that cannot be read is null as a whole: somebody changed it by hand, and its
    digest will refuse to run it.
    """
    if text is None:
        return None
    try:
        args = canonical.stored(text)
    except PayloadRejected:
        return None
    return _without(args, hidden)


def shown_context(context: Any, row: PendingInterrupt) -> Any:
    """Return the context with hidden arguments blanked in the messages' tool calls.

    A request of an interrupt store goes without its journal: that holds what earlier
    calls were given and returned, and only a re-run reads it.
    """
    if isinstance(context, dict) and isinstance(context.get("request"), dict):
        asked = {k: v for k, v in context["request"].items() if k != "journal"}
        context = {**context, "request": asked}
    if not isinstance(context, dict) or not isinstance(context.get("messages"), list):
        return context
    messages = [_shown_message(message, row) for message in context["messages"]]
    return {**context, "messages": messages}


def redactor_of(rows: Iterable[PendingInterrupt]) -> Redactor:
    """Return what takes the hidden arguments of these calls out of other texts."""
    found: list[str] = []
    for row in rows:
        hidden = hidden_names(row)
        for text in (row.args_text, row.decision_args_text) if hidden else ():
            args = shown_args(text, ())
            if isinstance(args, dict):
                found += (one for name in hidden for one in texts_in(args.get(name)))
    return Redactor(found)


def keep_hidden(
    row: PendingInterrupt, args: Mapping[str, Any]
) -> tuple[dict[str, Any], list[str]]:
    """Put back the hidden values that an edit sends as they were shown: as null.

    Returns:
        The arguments that are meant, and the names whose values were put back.
    """
    # Not readable means changed by hand; the service says so to whoever may decide.
    proposed = shown_args(row.args_text, ()) or {}
    kept = [
        name
        for name in hidden_names(row)
        if name in args and args[name] is None and name in proposed
    ]
    return {**args, **{name: proposed[name] for name in kept}}, kept


def without_values(error: PayloadRejected, kept: Collection[str]) -> PayloadRejected:
    """Return a refusal that does not quote the values that were put back."""
    told = [
        {**one, "message": "Does not fit."}
        if one["loc"].partition(".")[0] in kept
        else one
        for one in error.errors
    ]
    if told == error.errors:
        return error
    return PayloadRejected(
        "The edited arguments do not fit; nothing was stored.",
        reason=error.reason,
        errors=told,
    )


def _without(args: Any, hidden: Collection[str]) -> Any:
    if not hidden or not isinstance(args, dict):
        return args
    return {name: None if name in hidden else value for name, value in args.items()}


def _shown_message(message: Any, row: PendingInterrupt) -> Any:
    calls = message.get("tool_calls") if isinstance(message, dict) else None
    if not isinstance(calls, list):
        return message
    return {**message, "tool_calls": [_shown_call(call, row) for call in calls]}


def _shown_call(call: Any, row: PendingInterrupt) -> Any:
    """Blank hidden arguments of a call in our shape or in OpenAI's nesting."""
    if not isinstance(call, dict):
        return call
    inner = call.get("function")
    if isinstance(inner, dict):
        return {**call, "function": _shown_fields(inner, "arguments", row)}
    return _shown_fields(call, "args", row)


def _shown_fields(call: dict[str, Any], field: str, row: PendingInterrupt) -> Any:
    hidden = _names_for(call.get("name"), row)
    args = call.get(field)
    if not hidden or args is None:
        return call
    if isinstance(args, str):
        shown = shown_args(args, hidden)
        return {**call, field: None if shown is None else canonical.dumps(shown)}
    return {**call, field: _without(args, hidden)}


def _names_for(name: object, row: PendingInterrupt) -> Collection[str]:
    if name == row.tool_name:
        return hidden_names(row)
    tool = registry.tools.get(name) if isinstance(name, str) else None
    return () if tool is None else tool.redact
