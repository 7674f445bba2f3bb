"""What user and agent said, as foreign text with the call's secrets taken out."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from hitl_approvals.admin import values
from hitl_approvals.admin.text import Redactor, plain, show, val
from hitl_approvals.models import PendingInterrupt
from hitl_approvals.registry import registry

MOST_MESSAGES = 50
"""Messages that a page shows; the last ones count."""
TEXT = 2000
"""Characters of one message."""
ROOM = 100_000
"""Bytes of HTML that all messages of a page may take."""


@dataclass(frozen=True, slots=True)
class Message:
    """One message of the conversation up to the call."""

    who: str
    name: SafeString | None
    text: SafeString
    mono: bool = False


@dataclass(slots=True)
class Conversation:
    """The messages that a page shows, oldest first, and how many it does not."""

    messages: list[Message] = field(default_factory=list)
    left_out: int = 0
    in_part: bool = False


def asked(value: Any, redactor: Redactor) -> SafeString | None:
    """Return what the turn was asked; None when it was asked nothing."""
    if value in (None, ""):
        return None
    return val(_as_text(value, redactor))


def quoted(text: Any, redactor: Redactor) -> SafeString | None:
    """Return a text as a quotation; None when there is nothing to quote."""
    if not isinstance(text, str) or not text.strip():
        return None
    return val(redactor.clean(text))


def in_part(context: Mapping[str, Any], redactor: Redactor) -> bool:
    """Tell whether not all of what was asked, or of the agent's claim, is shown."""
    texts = [
        _as_text(context[key], redactor)
        for key in ("asked", "agent_reason")
        if context.get(key) not in (None, "")
    ]
    return any(show(one).left_out > 0 for one in texts)


def read(found: Any, redactor: Redactor, row: PendingInterrupt) -> Conversation:
    """Return the conversation up to a call, as far as a page has room for it."""
    made = Conversation()
    if not isinstance(found, list):
        return made
    room = ROOM
    for one in reversed(found):
        if len(made.messages) >= MOST_MESSAGES or room <= 0:
            break
        message, whole = _message(one, redactor, row)
        room -= len(message.text.encode())
        made.in_part = made.in_part or not whole
        made.messages.insert(0, message)
    made.left_out = len(found) - len(made.messages)
    return made


def whole(found: Any, redactor: Redactor, row: PendingInterrupt) -> Any:
    """Return the conversation as it is kept, with the secrets of its calls left out."""
    if not isinstance(found, list):
        return redactor.inside(found)
    return [_without_secrets(redactor.inside(one), row) for one in found]


def _as_text(value: Any, redactor: Redactor) -> str:
    if isinstance(value, str):
        return redactor.clean(value)
    return values.json_text(redactor.inside(value))


def _message(
    one: Any, redactor: Redactor, row: PendingInterrupt
) -> tuple[Message, bool]:
    """Return a message, and whether all of it is shown."""
    if not isinstance(one, Mapping):
        text = _as_text(one, redactor)
        return Message(_("message"), None, val(text, limit=TEXT)), len(text) <= TEXT
    roles = {
        "user": _("user"),
        "assistant": _("agent"),
        "tool": _("tool result"),
        "system": _("instructions"),
    }
    role = str(one.get("role") or "")
    name = one.get("name")
    content = one.get("content")
    parts = [] if content in (None, "") else [_as_text(content, redactor)]
    parts += _called(one.get("tool_calls"), redactor, row)
    text = "\n".join(parts)
    message = Message(
        who=roles.get(role, plain(role, 24) or _("message")),
        name=show(name, limit=60, one_line=True).html
        if isinstance(name, str)
        else None,
        text=val(text, limit=TEXT),
        mono=role == "tool",
    )
    return message, len(text) <= TEXT


def _calls(calls: Any) -> Iterator[tuple[str, Any]]:
    """Yield the name and the arguments of each call of a message."""
    for one in calls if isinstance(calls, list) else ():
        inner = one.get("function") if isinstance(one, Mapping) else None
        holder = inner if isinstance(inner, Mapping) else one
        if not isinstance(holder, Mapping):
            yield "?", None
            continue
        name = holder.get("name")
        args = holder.get("args", holder.get("arguments"))
        if isinstance(args, str):
            try:
                args = json.loads(args)
            except (ValueError, RecursionError):
                args = None
        yield name if isinstance(name, str) else "?", args


def _called(calls: Any, redactor: Redactor, row: PendingInterrupt) -> list[str]:
    """Say which tools a message calls, and with what as far as that may be shown."""
    said = []
    for name, args in _calls(calls):
        shown = _visible_args(name, args, row)
        if shown is None:
            said.append(_("[asks for: %s]") % redactor.clean(name))
            continue
        text = values.json_text(redactor.inside(shown), indent=None)
        known = {"tool": redactor.clean(name), "args": text}
        said.append(_("[asks for: %(tool)s with %(args)s]") % known)
    return said


def _visible_args(name: str, args: Any, row: PendingInterrupt) -> Any:
    """Return the arguments that may be shown; None if nobody knows which are secret."""
    tool = registry.tools.get(name) if row.turn_id else None
    if tool is None or not isinstance(args, Mapping):
        return None
    hidden = f"[{_('hidden')}]"
    return {key: hidden if key in tool.redact else one for key, one in args.items()}


def _without_secrets(one: Any, row: PendingInterrupt) -> Any:
    """Return a message in which calls show only what may be seen of their arguments."""
    if not isinstance(one, Mapping) or "tool_calls" not in one:
        return one
    calls = [
        {"name": name, "args": _visible_args(name, args, row)}
        for name, args in _calls(one["tool_calls"])
    ]
    return {**one, "tool_calls": calls}
