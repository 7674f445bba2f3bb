"""What our answers look like: one component for each serializer, and for each page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rest_framework import serializers as drf

from hitl_approvals.api import bulk, serializers
from hitl_approvals.api.schema.shapes import (
    ADDRESS,
    ANY,
    COUNT,
    DIGEST,
    MOMENT,
    OBJECT,
    UUID,
    Shape,
    answer,
    list_of,
    one_of,
    or_null,
    ref,
    said,
)
from hitl_approvals.enums import (
    DecisionType,
    EventType,
    InterruptKind,
    InterruptStatus,
    OutcomeStatus,
    StepKind,
    StepStatus,
    ToolMode,
    TurnStatus,
)
from hitl_approvals.figures.decided import KINDS
from hitl_approvals.figures.report import PERIODS

TEXT: Shape = {"type": "string"}
ENUMS: dict[str, Shape] = {
    "Decision": said(one_of(DecisionType), "`expire` is the clock's own."),
    "EventType": one_of(EventType),
    "InterruptKind": one_of(InterruptKind),
    "InterruptStatus": one_of(InterruptStatus),
    "OfferedDecision": one_of(
        kind for kind in DecisionType if kind is not DecisionType.EXPIRE
    ),
    "OutcomeStatus": one_of(OutcomeStatus),
    "StepStatus": one_of(StepStatus),
    "TurnStatus": one_of(TurnStatus),
}
"""Named, so that generated clients have one type for each."""

_OF_FIELDS: tuple[tuple[type[drf.Field[Any, Any, Any, Any]], Shape], ...] = (
    (serializers.Text, or_null(TEXT)),
    (serializers.Moment, or_null(MOMENT)),
    (drf.UUIDField, UUID),
    (drf.IntegerField, {"type": "integer"}),
    (drf.BooleanField, {"type": "boolean"}),
    (drf.CharField, TEXT),
)
"""What a field is unless a table below says more; the first that fits counts."""

INTERRUPT: dict[str, Shape] = {
    "kind": ref("InterruptKind"),
    "status": ref("InterruptStatus"),
    "revision": said(
        {"type": "integer", "minimum": 1},
        "Counts what a reviewer has to know of; send back what you saw.",
    ),
    "generation": said(
        {"type": "integer", "minimum": 1},
        "Counts how often the call was put before people.",
    ),
    "turn": said(or_null(UUID), "Null for a remote agent's request."),
    "client": said(
        or_null(TEXT), "The remote agent that asks; null for turns of this site."
    ),
    "args": said(
        or_null(OBJECT),
        "The arguments as the tool reads them: what an approval lets run. Hidden values "
        "are null, and named in `redacted`.",
    ),
    "redacted": list_of(TEXT),
    "args_digest": said(
        or_null(DIGEST), "Digest of the arguments, hidden ones included."
    ),
    "args_schema": said(or_null(OBJECT), "JSON Schema of the arguments."),
    "payload": said(ANY, "What a question asks: any JSON."),
    "response_schema": said(or_null(OBJECT), "JSON Schema of the answer."),
    "context": said(
        or_null(OBJECT),
        "What the user asked, the last messages, the agent's stated reason.",
    ),
    "tags": list_of(TEXT),
    "priority": said({"type": "integer"}, "Higher is more urgent."),
    "allowed_decisions": list_of(ref("OfferedDecision")),
    "policy": said(or_null(OBJECT), "Why it is here, frozen when it was raised."),
    "decision": or_null(ref("Decision")),
    "decision_args": said(
        or_null(OBJECT), "What a reviewer put in place of the arguments."
    ),
    "decision_value": said(ANY, "The answer to a question: any JSON."),
    "requested_at": MOMENT,
    "requested_by": or_null(TEXT),
    "assignee": said(or_null(TEXT), "Who holds it now, while it is open."),
    "claim_until": or_null(MOMENT),
    "outcome_status": or_null(ref("OutcomeStatus")),
    "outcome": said(ANY, "What a remote agent reported: any JSON."),
    "submission": said(
        or_null(TEXT),
        "The request to the letter, to the agent that sent it and nobody else.",
    ),
    "url": ADDRESS,
}
"""What more is known of the fields of an interrupt than that they are texts."""

TURN: dict[str, Shape] = {
    "status": ref("TurnStatus"),
    "undecided": COUNT,
    "input": said(ANY, "What the agent was asked: any JSON."),
    "output": said(ANY, "What it answered, once the turn is completed: any JSON."),
    "attempts": COUNT,
    "created_at": MOMENT,
    "interrupts": list_of(
        answer({"id": UUID, "status": ref("InterruptStatus"), "url": ADDRESS})
    ),
    "parent": or_null(UUID),
    "left_out": list_of(
        answer(
            {
                "step": UUID,
                "name": TEXT,
                "status": ref("StepStatus"),
                "position": {"type": "integer"},
            }
        )
    ),
    "forks": list_of(answer({"id": UUID, "status": ref("TurnStatus"), "url": ADDRESS})),
    "url": ADDRESS,
}

CONSUMED: dict[str, Shape] = {
    "id": UUID,
    "status": ref("InterruptStatus"),
    "decision": ref("Decision"),
    "args": said(or_null(OBJECT), "What may run; null: nothing may."),
    "args_digest": or_null(DIGEST),
    "value": said(ANY, "The answer to a question: any JSON."),
    "reason": or_null(TEXT),
    "decided_by": or_null(TEXT),
    "decided_at": MOMENT,
    "execute_by": or_null(MOMENT),
    "outcome_due": said(or_null(MOMENT), "Until when the outcome has to be reported."),
    "url": ADDRESS,
}
RECEIPT: dict[str, Shape] = {
    "id": UUID,
    "status": ref("InterruptStatus"),
    "late": said(
        {"type": "boolean"}, "It came too late to count; it stands in the audit trail."
    ),
    "url": ADDRESS,
}

EVENT: dict[str, Shape] = {
    "id": UUID,
    "subject_id": UUID,
    "sequence": COUNT,
    "turn_id": or_null(UUID),
    "interrupt_id": or_null(UUID),
    "type": ref("EventType"),
    "at": MOMENT,
    "actor_id": TEXT,
    "actor": TEXT,
    "via": TEXT,
    "on_behalf_of": TEXT,
    "status": TEXT,
    "decision": TEXT,
    "generation": COUNT,
    "revision": COUNT,
    "digest_proposed": TEXT,
    "digest_shown": TEXT,
    "digest_run": TEXT,
    "execute_by": or_null(MOMENT),
    "detail": ANY,
    "previous_hash": TEXT,
    "hash": DIGEST,
    "redacted": said(
        {"type": "boolean"},
        "Something was taken out of `detail`; the hash covers what was there.",
    ),
}
STEP: dict[str, Shape] = {
    "id": UUID,
    "position": COUNT,
    "generation": COUNT,
    "kind": one_of(StepKind),
    "name": TEXT,
    "status": ref("StepStatus"),
    "mode": or_null(one_of(mode for mode in ToolMode)),
    "interrupt": or_null(UUID),
    "args_digest": or_null(DIGEST),
    "result": said(ANY, "What was recorded; null if it is too long to be shown."),
    "result_bytes": or_null(COUNT),
    "error": or_null(TEXT),
    "started_at": MOMENT,
    "finished_at": or_null(MOMENT),
}

SECONDS: Shape = or_null({"type": "number"})
_TIMES = answer({"sample": COUNT, "median_seconds": SECONDS, "p95_seconds": SECONDS})
_SHARES: dict[str, Shape] = {"count": COUNT, **{kind.value: COUNT for kind in KINDS}}
_CAPPED: dict[str, Shape] = {"count": COUNT, "capped": {"type": "boolean"}}

QUEUE: dict[str, Shape] = {
    "slug": TEXT,
    "title": or_null(TEXT),
    "open": answer(_CAPPED),
    "may_decide": {"type": "boolean"},
    "requester_may_decide": {"type": "boolean"},
}

STATS: dict[str, Shape] = {
    "days": {"type": "integer", "enum": list(PERIODS)},
    "counted_at": MOMENT,
    "open": answer(
        {
            **_CAPPED,
            "oldest_seconds": SECONDS,
            "in_doubt": answer(_CAPPED),
            "by_age": list_of(
                answer({"from_seconds": COUNT, "to_seconds": or_null(COUNT), **_CAPPED})
            ),
        }
    ),
    "decided": answer(
        {
            "since": MOMENT,
            "capped": {"type": "boolean"},
            **_SHARES,
            "by_day": list_of(
                answer({"day": {"type": "string", "format": "date"}, **_SHARES})
            ),
            "by_tool": list_of(
                answer(
                    {
                        "tool": or_null(TEXT),
                        "queue": TEXT,
                        **_SHARES,
                        "time_to_decide": _TIMES,
                    }
                )
            ),
            "by_queue": list_of(
                answer({"queue": TEXT, **_SHARES, "time_to_decide": _TIMES})
            ),
        }
    ),
    "time_to_decide": _TIMES,
    "time_to_resume": _TIMES,
}


def components() -> Iterator[tuple[str, Shape]]:
    """Describe every answer that is no refusal."""
    yield from ENUMS.items()
    yield "Interrupt", serialized(serializers.InterruptSerializer, INTERRUPT)
    yield "ListedInterrupt", serialized(serializers.InterruptListSerializer, INTERRUPT)
    yield "InterruptPage", page("ListedInterrupt")
    yield "Turn", serialized(serializers.TurnSerializer, TURN)
    yield "ListedTurn", serialized(serializers.TurnListSerializer, TURN)
    yield "TurnPage", page("ListedTurn")
    yield "Event", answer(EVENT, "A transition, as it is exported.")
    chain = {"count": COUNT, "head": said(TEXT, "Hash of the last event there is.")}
    yield "EventPage", followed("Event", **chain)
    yield "Step", answer(STEP)
    yield "StepPage", followed("Step")
    yield "Queue", answer(QUEUE)
    yield "QueuePage", followed("Queue")
    yield "Outcomes", answer({"outcomes": list_of(ref("OutcomeOfMany"))})
    yield "OutcomeOfMany", _outcome()
    yield (
        "ConsumedDecision",
        answer(
            CONSUMED,
            "A decision in the hands of its agent. Act on an approval only while `status` is "
            "`decided`.",
        ),
    )
    yield "OutcomeReceipt", answer(RECEIPT)
    yield "Stats", answer(STATS)


def serialized(
    serializer: type[drf.BaseSerializer[Any]], known: Mapping[str, Shape]
) -> Shape:
    """Describe what a serializer writes: its own fields, in its own order."""
    fields: Mapping[str, Any] = serializer().fields  # type: ignore[attr-defined]  # no bare one of ours
    doc = (serializer.__doc__ or "").strip()
    return answer({name: _field(fields[name], known.get(name)) for name in fields}, doc)


def page(of: str) -> Shape:
    """Describe a page of a list."""
    return answer(
        {
            "next": said(or_null(ADDRESS), "Address of the page after this one."),
            "previous": or_null(ADDRESS),
            "results": list_of(ref(of)),
        }
    )


def followed(of: str, **beside: Shape) -> Shape:
    """Describe a page of what grows at its end."""
    address = said(or_null(ADDRESS), "Address of the page after this one.")
    return answer({"next": address, **beside, "results": list_of(ref(of))})


def _field(field: object, known: Shape | None) -> Shape:
    if known is not None:
        return known
    for kind, shape in _OF_FIELDS:
        if isinstance(field, kind):
            return or_null(shape) if _may_be_null(field) else shape
    return ANY


def _may_be_null(field: object) -> bool:
    return bool(getattr(field, "allow_null", False))


def _outcome() -> Shape:
    outcome = answer(
        {
            "id": TEXT,
            "status": said({"type": "integer"}, "As the decision's own door has it."),
            "code": said(
                TEXT, f"`{bulk.RECORDED}`, `{bulk.REPLAYED}`, or that of the refusal."
            ),
            "detail": or_null(TEXT),
            "interrupt": or_null(ref("ListedInterrupt")),
        },
        "What became of one decision of many.",
    )
    outcome["properties"] |= {"reason": TEXT, "errors": list_of(ref("Fault"))}
    return outcome
