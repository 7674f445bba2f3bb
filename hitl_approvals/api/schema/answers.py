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
    InterruptKind,
    InterruptStatus,
    OutcomeStatus,
    StepStatus,
    TurnStatus,
)
from hitl_approvals.figures.decided import KINDS
from hitl_approvals.figures.report import PERIODS

TEXT: Shape = {"type": "string"}
OFFERED = tuple(kind for kind in DecisionType if kind is not DecisionType.EXPIRE)

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
    "kind": one_of(InterruptKind),
    "status": one_of(InterruptStatus),
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
    "allowed_decisions": list_of(one_of(OFFERED)),
    "policy": said(or_null(OBJECT), "Why it is here, frozen when it was raised."),
    "decision": said(
        or_null(one_of(DecisionType)), "`expire` is the clock's own decision."
    ),
    "decision_args": said(
        or_null(OBJECT), "What a reviewer put in place of the arguments."
    ),
    "decision_value": said(ANY, "The answer to a question: any JSON."),
    "requested_at": MOMENT,
    "requested_by": or_null(TEXT),
    "assignee": said(or_null(TEXT), "Who holds it now, while it is open."),
    "claim_until": or_null(MOMENT),
    "outcome_status": or_null(one_of(OutcomeStatus)),
    "outcome": said(ANY, "What a remote agent reported: any JSON."),
    "url": ADDRESS,
}
"""What more is known of the fields of an interrupt than that they are texts."""

TURN: dict[str, Shape] = {
    "status": one_of(TurnStatus),
    "undecided": COUNT,
    "input": said(ANY, "What the agent was asked: any JSON."),
    "output": said(ANY, "What it answered, once the turn is completed: any JSON."),
    "attempts": COUNT,
    "created_at": MOMENT,
    "interrupts": list_of(
        answer({"id": UUID, "status": one_of(InterruptStatus), "url": ADDRESS})
    ),
    "parent": or_null(UUID),
    "left_out": list_of(
        answer(
            {
                "step": UUID,
                "name": TEXT,
                "status": one_of(StepStatus),
                "position": {"type": "integer"},
            }
        )
    ),
    "forks": list_of(
        answer({"id": UUID, "status": one_of(TurnStatus), "url": ADDRESS})
    ),
    "url": ADDRESS,
}

SECONDS: Shape = or_null({"type": "number"})
_TIMES = answer({"sample": COUNT, "median_seconds": SECONDS, "p95_seconds": SECONDS})
_SHARES: dict[str, Shape] = {"count": COUNT, **{kind.value: COUNT for kind in KINDS}}
_CAPPED: dict[str, Shape] = {"count": COUNT, "capped": {"type": "boolean"}}

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
    yield "Interrupt", serialized(serializers.InterruptSerializer, INTERRUPT)
    yield "ListedInterrupt", serialized(serializers.InterruptListSerializer, INTERRUPT)
    yield "InterruptPage", page("ListedInterrupt")
    yield "Turn", serialized(serializers.TurnSerializer, TURN)
    yield "Outcomes", answer({"outcomes": list_of(ref("Outcome"))})
    yield "Outcome", _outcome()
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
