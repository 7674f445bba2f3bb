"""Everything that a page shows in part, in full: plain text to save, secrets left out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed

from hitl_approvals.admin import arguments, conversation, values
from hitl_approvals.admin.base import DeskAdmin
from hitl_approvals.admin.submissions import find
from hitl_approvals.models import PendingInterrupt

ARGUMENTS, DECIDED, CONVERSATION, QUESTION, ANSWER = (
    "arguments",
    "decided",
    "conversation",
    "question",
    "answer",
)


def full_view(
    desk: DeskAdmin, request: HttpRequest, interrupt_id: UUID
) -> HttpResponse:
    """Hand out one part of an interrupt as JSON, for whoever may see its page.

    It is sent as text to save and never as a page, because an agent wrote it.
    """
    if request.method not in ("GET", "HEAD"):
        return HttpResponseNotAllowed(["GET", "HEAD"])
    row = find(request, interrupt_id)
    part = request.GET.get("part", ARGUMENTS)
    text = values.json_text(_part(row, part)) + "\n"
    return text_file(text, f"interrupt-{row.pk}-{part}.json.txt")


def text_file(text: str, name: str) -> HttpResponse:
    """Return a text to save, which no browser takes for a page or runs."""
    response = HttpResponse(text, content_type="text/plain; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    response["X-Content-Type-Options"] = "nosniff"
    response["Content-Security-Policy"] = "sandbox; default-src 'none'"
    return response


def _part(row: PendingInterrupt, part: str) -> Any:
    """Return what is asked for.

    Raises:
        Http404: This interrupt has no such part.
    """
    call = arguments.read(row)
    redactor = call.redactor()
    if part == ARGUMENTS and row.tool_name:
        return call.without_secrets(call.given)
    if part == DECIDED and row.decision_args_text is not None:
        ran = arguments.read_last(row)
        return ran.without_secrets(ran.given)
    if part == CONVERSATION:
        context = row.context if isinstance(row.context, Mapping) else {}
        return {
            "asked": redactor.inside(context.get("asked")),
            "agent_reason": redactor.inside(context.get("agent_reason")),
            "messages": conversation.whole(context.get("messages"), redactor, row),
        }
    if part == QUESTION and not row.tool_name:
        return row.payload
    if part == ANSWER and row.decision_value is not None:
        return row.decision_value
    raise Http404
