"""What bodies may hold: one component for each reader of them, from the reader's tables."""

from __future__ import annotations

from collections.abc import Iterator

from hitl_approvals.api import bodies, bulk
from hitl_approvals.api.schema.shapes import (
    ANY,
    NOT_BLANK,
    OBJECT,
    WITHOUT_NUL,
    Shape,
    body,
    list_of,
    one_of,
    or_null,
    ref,
    said,
    text,
)
from hitl_approvals.enums import DecisionType
from hitl_approvals.services.claims import MAX_MINUTES
from hitl_approvals.services.outcomes import OUTCOMES
from hitl_approvals.services.remote_requests import LENGTHS, MOST, MOST_SECONDS
from hitl_approvals.services.settlements import ANSWERS

REVISION = said(
    {"type": ["integer", "null"]}, "The revision that the person saw; or `If-Match`."
)
MINUTES = said(
    {"type": ["number", "null"], "exclusiveMinimum": 0, "maximum": MAX_MINUTES},
    "Else as long as the site says.",
)
THREAD = said(
    or_null(text(bodies.MAX_THREAD, NOT_BLANK, least=1)),
    "The conversation; without it the turn is its own.",
)
NOTE = or_null({"type": "string"})
NAMES = {
    DecisionType.APPROVE: "Approval",
    DecisionType.REJECT: "Rejection",
    DecisionType.EDIT: "Edit",
    DecisionType.RESPOND: "Response",
}
_OF_DECISIONS: dict[DecisionType, dict[str, Shape]] = {
    DecisionType.APPROVE: {},
    DecisionType.REJECT: {"reason": said(text(None, NOT_BLANK), "Goes to the agent.")},
    DecisionType.EDIT: {
        "args": said(OBJECT, "Replaces the proposed arguments as a whole."),
        "reason": or_null(text()),
    },
    DecisionType.RESPOND: {"value": said(ANY, "Any JSON that fits the question.")},
}
_NEEDED = {
    DecisionType.APPROVE: (),
    DecisionType.REJECT: ("reason",),
    DecisionType.EDIT: ("args",),
    DecisionType.RESPOND: ("value",),
}

_SPAN: Shape = {
    "type": ["number", "null"],
    "exclusiveMinimum": 0,
    "maximum": MOST_SECONDS,
}
_NAMED: Shape = said(or_null(list_of({"type": "string"})), "Names of arguments.")
RAISED: dict[str, Shape] = {
    "kind": said(
        or_null(ref("InterruptKind")),
        "`tool_call` unless given; a question has a `payload`.",
    ),
    "tool_name": said(or_null(text(LENGTHS["tool_name"])), "What you would run."),
    "args": said(or_null(OBJECT), "With which arguments."),
    "args_schema": said(or_null(OBJECT), "JSON Schema that an edit has to fit too."),
    "payload": said(ANY, "What is asked; only for a question."),
    "response_schema": said(or_null(OBJECT), "JSON Schema that an answer has to fit."),
    "tool_call_id": said(or_null(text(LENGTHS["tool_call_id"])), "The model's own id."),
    "tool_description": said(or_null(text()), "What the tool does, for the reviewer."),
    "agent": said(or_null(text(LENGTHS["agent"])), "The client's name unless given."),
    "thread_id": said(or_null(text(LENGTHS["thread_id"])), "The conversation."),
    "context": said(
        or_null(OBJECT),
        "What the reviewer should know: `asked`, `messages`, `agent_reason`, `metadata`.",
    ),
    "tags": or_null(list_of({"type": "string"})),
    "why": said(or_null(text()), "Why a person is asked."),
    "queue": said(or_null(text()), "Slug of the queue; the client's own unless given."),
    "priority": said(
        {"type": ["integer", "null"], "minimum": -MOST, "maximum": MOST},
        "Higher is more urgent.",
    ),
    "allowed_decisions": or_null(list_of(ref("OfferedDecision"), minItems=1)),
    "fixed": said(_NAMED, "Names of arguments that an edit must leave alone."),
    "redact": said(_NAMED, "Names of arguments that are hidden from reviewers."),
    "check_hint": said(
        or_null(text()), "How a person finds out whether the call happened."
    ),
    "expires_in": said(_SPAN, "Seconds to decide."),
    "execute_within": said(_SPAN, "Seconds from approval to fetching it."),
    "outcome_within": said(_SPAN, "Seconds from fetching to reporting."),
}


def components() -> Iterator[tuple[str, Shape]]:
    """Describe every body that is read."""
    for kind, name in NAMES.items():
        fields = {**_OF_DECISIONS[kind], "revision": REVISION}
        yield name, body(fields, _NEEDED[kind])
    yield "Decisions", body({"decisions": _decisions()}, ["decisions"])
    yield "Settlement", _settlement()
    yield "Claim", body({"minutes": MINUTES})
    yield "Release", body({"note": NOTE})
    yield (
        "Assignment",
        body(
            {"to": said(text(None, WITHOUT_NUL, 1), "The name somebody logs in by.")},
            ["to"],
        ),
    )
    yield "Request", body(RAISED, about="A call to approve, or a question to answer.")
    yield "Report", _report()
    yield "Seen", body({"revision": REVISION})
    yield "Reason", body({"reason": NOTE})
    yield "Nothing", body({})
    yield (
        "Start",
        body(
            {
                "agent": said({"type": "string"}, "Name of a registered agent."),
                "input": said(ANY, "What the agent is asked: any JSON."),
                "thread_id": THREAD,
                "execute_options": said(or_null(OBJECT), "Handed to the agent."),
            },
            ["agent", "input"],
        ),
    )
    yield "Restart", body({"input": ANY})
    yield (
        "Fork",
        body(
            {
                "at": said(
                    or_null({"type": "string"}),
                    "Id of an interrupt or a step of the turn; else its last interrupt.",
                ),
                "thread_id": THREAD,
            }
        ),
    )


def _decisions() -> Shape:
    return list_of(
        body(
            {
                "id": {"type": "string", "minLength": 1, "maxLength": bodies.MAX_KEY},
                "decision": {"oneOf": [_typed(kind) for kind in NAMES]},
                "revision": REVISION,
                "key": said(
                    or_null(text(bodies.MAX_KEY, r"\S", least=1)),
                    "Idempotency key of this decision; else the header's.",
                ),
            },
            ["id", "decision"],
        ),
        minItems=1,
        maxItems=bulk.MOST,
    )


def _report() -> Shape:
    fields: dict[str, Shape] = {
        "status": said(one_of(OUTCOMES), "`unknown` asks a person to find out."),
        "result": said(ANY, "What the call returned."),
        "error": or_null({"type": "string"}),
    }
    return body(fields, ["status"])


def _typed(kind: DecisionType) -> Shape:
    fields = {"type": one_of([kind]), **_OF_DECISIONS[kind]}
    return body(fields, ["type", *_NEEDED[kind]])


def _settlement() -> Shape:
    """Describe a settlement: only what happened has a result."""
    fields: dict[str, Shape] = {
        "answer": one_of(ANSWERS),
        "result": said(ANY, "What the call returned; only with `happened`."),
        "note": said(NOTE, "How you found out; goes to the audit trail."),
        "revision": REVISION,
    }
    return body(fields, ["answer"])
