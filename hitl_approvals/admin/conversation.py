"""What user and agent said, as foreign text with the call's secrets taken out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from hitl_approvals.admin import values
from hitl_approvals.admin.text import Redactor, plain, show, val


@dataclass(frozen=True, slots=True)
class Message:
    """One message of the conversation up to the call."""

    who: str
    name: SafeString | None
    text: SafeString


def asked(value: Any, redactor: Redactor) -> SafeString | None:
    """Return what the turn was asked; None when it was asked nothing."""
    if value in (None, ""):
        return None
    text = value if isinstance(value, str) else values.json_text(value)
    return val(redactor.clean(text))


def quoted(text: Any, redactor: Redactor) -> SafeString | None:
    """Return a text as a quotation; None when there is nothing to quote."""
    if not isinstance(text, str) or not text.strip():
        return None
    return val(redactor.clean(text))


def messages(found: Any, redactor: Redactor) -> list[Message]:
    """Return the conversation up to a call, oldest first."""
    if not isinstance(found, list):
        return []
    return [_message(one, redactor) for one in found]


def _message(one: Any, redactor: Redactor) -> Message:
    if not isinstance(one, Mapping):
        text = one if isinstance(one, str) else values.json_text(one)
        return Message(_("message"), None, val(redactor.clean(text)))
    roles = {
        "user": _("user"),
        "assistant": _("agent"),
        "tool": _("tool result"),
        "system": _("instructions"),
    }
    role = str(one.get("role") or "")
    name = one.get("name")
    content = one.get("content")
    text = content if isinstance(content, str) else ""
    if content is not None and not isinstance(content, str):
        text = values.json_text(content)
    calls = _called(one.get("tool_calls"))
    if calls:
        text = f"{text}\n{calls}".strip()
    return Message(
        who=roles.get(role, plain(role, 24) or _("message")),
        name=show(name, limit=60, one_line=True).html
        if isinstance(name, str)
        else None,
        text=val(redactor.clean(text), limit=2000),
    )


def _called(calls: Any) -> str:
    """Name the tools that a message calls; their arguments may hold secrets."""
    names = []
    for one in calls if isinstance(calls, list) else ():
        inner = one.get("function") if isinstance(one, Mapping) else None
        holder = inner if isinstance(inner, Mapping) else one
        name = holder.get("name") if isinstance(holder, Mapping) else None
        names.append(name if isinstance(name, str) else "?")
    return _("[asks for: %s]") % ", ".join(names) if names else ""
