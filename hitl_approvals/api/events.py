"""The audit trail of one interrupt or turn, and the journal of a turn, as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

from django.db.models import Q
from django.db.models.functions import Length
from rest_framework.request import Request
from rest_framework.response import Response

from hitl_approvals import selectors
from hitl_approvals.api.following import page_after
from hitl_approvals.api.redaction import redactor_of, shown_args
from hitl_approvals.api.serializers import Moment
from hitl_approvals.auditing.lines import line
from hitl_approvals.models import (
    AgentTurn,
    InterruptEvent,
    PendingInterrupt,
    TurnStep,
)
from hitl_approvals.registry import registry
from hitl_approvals.text import Redactor, texts_in
from hitl_approvals.types import AgentPrincipal

MOST_BYTES = 16_384
"""The longest result of a step that is shown."""


def events_of(request: Request, about: PendingInterrupt | AgentTurn) -> Response:
    """Return a page of the events of a row, with the head of their chain."""
    chain = InterruptEvent.objects.filter(subject_id=about.pk).order_by("sequence")
    turn_id = about.pk if isinstance(about, AgentTurn) else about.turn_id
    own = [about] if turn_id is None and isinstance(about, PendingInterrupt) else []
    redactor = redactor_of(own or _interrupts(turn_id))
    agent = isinstance(request.user, AgentPrincipal)

    def rows(after: str | None, size: int) -> list[InterruptEvent]:
        return list(chain.filter(sequence__gt=_number(after))[:size])

    def show(found: Sequence[InterruptEvent]) -> list[dict[str, Any]]:
        return [_event(one, redactor, for_agent=agent) for one in found]

    head = {"count": about.events_count, "head": about.events_head}
    return page_after(request, rows, show, "sequence", **head)


def steps_of(request: Request, turn: AgentTurn) -> Response:
    """Return a page of the journal of a turn."""
    journal = selectors.steps_of(turn.pk).order_by("position", "generation", "pk")
    asked = Redactor(_secrets(turn.pk))

    def rows(after: str | None, size: int) -> list[TurnStep]:
        found = journal.annotate(result_bytes=Length("result"))
        if after is not None:
            found = found.filter(_beyond(turn, after))
        return list(found.defer("result")[:size])

    def show(found: Sequence[TurnStep]) -> list[dict[str, Any]]:
        short = [one.pk for one in found if (one.result_bytes or 0) <= MOST_BYTES]  # type: ignore[attr-defined]
        stored = TurnStep.objects.filter(pk__in=short).values_list("pk", "result")
        results = dict(stored)
        return [_step(one, results, asked) for one in found]

    return page_after(request, rows, show, "id")


def _event(
    event: InterruptEvent, redactor: Redactor, *, for_agent: bool
) -> dict[str, Any]:
    """Return an event as it is exported, and say if something was taken out of it."""
    told = line(event)
    detail = redactor.inside(told["detail"])
    if for_agent and isinstance(detail, dict):
        # What people write to each other is not for an agent.
        detail = {name: one for name, one in detail.items() if name != "note"}
    return {**told, "detail": detail, "redacted": detail != told["detail"]}


def _step(
    step: TurnStep, results: dict[UUID, Any], redactor: Redactor
) -> dict[str, Any]:
    moment = Moment().to_representation
    size: int | None = step.result_bytes  # type: ignore[attr-defined]
    return {
        "id": str(step.pk),
        "position": step.position,
        "generation": step.generation,
        "kind": step.kind,
        "name": step.name,
        "status": step.status,
        "mode": step.mode or None,
        "interrupt": None if step.interrupt_id is None else str(step.interrupt_id),
        "args_digest": step.args_digest or None,
        "result": redactor.inside(results.get(step.pk)),
        "result_bytes": size,
        "error": redactor.clean(step.error) or None,
        "started_at": moment(step.started_at),
        "finished_at": None if step.finished_at is None else moment(step.finished_at),
    }


def _secrets(turn_id: UUID) -> list[str]:
    """Return the hidden texts of every call of a turn, gated or not."""
    found = list(redactor_of(_interrupts(turn_id)).secrets)
    hiding = [name for name, tool in registry.tools.items() if tool.redact]
    free = TurnStep.objects.filter(turn=turn_id, name__in=hiding)
    for name, text in free.exclude(args_text=None).values_list("name", "args_text"):
        args = shown_args(text, ())
        hidden = registry.tools[name].redact if isinstance(args, dict) else ()
        found += (one for each in hidden for one in texts_in(args.get(each)))
    return found


def _interrupts(turn_id: UUID | None) -> Iterable[PendingInterrupt]:
    found = PendingInterrupt.objects.filter(turn=turn_id)
    return found.only("policy", "args_text", "decision_args_text")


def _beyond(turn: AgentTurn, after: str) -> Q:
    """Return the condition for the steps after one of this turn.

    Raises:
        ValueError: It is none of this turn.
    """
    place = TurnStep.objects.filter(turn=turn.pk, pk=UUID(after))
    found = place.values_list("position", "generation", "pk").first()
    if found is None:
        raise ValueError(after)
    position, generation, pk = found
    later = Q(generation__gt=generation) | Q(generation=generation, pk__gt=pk)
    return Q(position__gt=position) | Q(position=position) & later


def _number(text: str | None) -> int:
    if text is None:
        return -1
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise ValueError(text)
    return int(text)
