"""What each endpoint takes and answers: one line an operation, keyed as the router knows it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hitl_approvals.api.schema import examples
from hitl_approvals.api.schema.refusals import ALWAYS, ON_BODIES
from hitl_approvals.api.schema.shapes import Shape, ref

ON_DECISIONS = (409, 410, 423)
_OF_INTERRUPTS = (
    "interrupts_read",
    "interrupts_approve",
    "interrupts_reject",
    "interrupts_edit",
    "interrupts_respond",
    "interrupts_claim",
    "interrupts_release",
    "interrupts_settle",
)
_OF_RAISED = (
    "interrupts_read",
    "interrupts_consume",
    "interrupts_outcome",
    "interrupts_give_back",
    "interrupts_cancel",
    *_OF_INTERRUPTS,
)
_OF_TURNS = ("turns_read", "turns_cancel", "turns_retry", "turns_restart", "turns_fork")


@dataclass(frozen=True, slots=True)
class Operation:
    """One method of one address."""

    id: str
    """Stable: generated clients name their functions by it."""
    answers: Mapping[int, str]
    """Component of each status that is no refusal."""
    body: str | None = None
    needed: bool = False
    """Whether the body must say something."""
    parameters: tuple[str, ...] = ()
    refusals: tuple[int, ...] = ()
    """Beside those that any address may answer with."""
    headers: tuple[str, ...] = ()
    """Of its answers, beside those that every answer has."""
    links: tuple[str, ...] = ()
    """Operations that take the id in its answer."""
    id_at: str = "/id"
    described: Mapping[int, str] = field(default_factory=dict)
    """What a status means here, where it is not plain."""

    @property
    def tag(self) -> str:
        return self.id.partition("_")[0]

    def statuses(self) -> list[int]:
        """Return every refusal that this operation may answer with."""
        always = (status for status in ALWAYS if status != 405)
        bodies = ON_BODIES if self.body is not None else ()
        return sorted({*always, *bodies, *self.refusals})


def _command(
    identifier: str,
    component: str,
    body: str,
    *refusals: int,
    needed: bool = False,
    parameters: tuple[str, ...] = ("IdempotencyKey",),
    links: tuple[str, ...] = (),
) -> Operation:
    return Operation(
        identifier,
        {200: component},
        body=body,
        needed=needed,
        parameters=parameters,
        refusals=refusals,
        headers=("Replayed",),
        links=links,
    )


def _decision(verb: str, component: str, *, needed: bool = True) -> Operation:
    return _command(
        f"interrupts_{verb}",
        "Interrupt",
        component,
        *ON_DECISIONS,
        needed=needed,
        parameters=("IdempotencyKey", "IfMatch"),
        links=("interrupts_read",),
    )


OPERATIONS: dict[tuple[str, str], Operation] = {
    ("interrupt", "list"): Operation(
        "interrupts_list",
        {200: "InterruptPage"},
        refusals=(400,),
        links=_OF_INTERRUPTS,
        id_at="/results/0/id",
    ),
    ("interrupt", "retrieve"): Operation(
        "interrupts_read", {200: "Interrupt"}, refusals=(400,)
    ),
    ("interrupt", "events"): Operation(
        "interrupts_events",
        {200: "EventPage"},
        parameters=("AfterNumber", "PageSize"),
        refusals=(400,),
    ),
    ("interrupt", "approve"): _decision("approve", "Approval", needed=False),
    ("interrupt", "reject"): _decision("reject", "Rejection"),
    ("interrupt", "edit"): _decision("edit", "Edit"),
    ("interrupt", "respond"): _decision("respond", "Response"),
    ("interrupt", "settle"): _command(
        "interrupts_settle",
        "Interrupt",
        "Settlement",
        409,
        423,
        needed=True,
        parameters=("IdempotencyKey", "IfMatch"),
    ),
    ("interrupt", "claim"): _command(
        "interrupts_claim", "Interrupt", "Claim", 409, 410, 423
    ),
    ("interrupt", "release"): _command(
        "interrupts_release", "Interrupt", "Release", 409, 410, 423
    ),
    ("interrupt", "assign"): _command(
        "interrupts_assign", "Interrupt", "Assignment", 409, 410, 423, needed=True
    ),
    ("interrupt", "re_review"): _command(
        "interrupts_re_review",
        "Interrupt",
        "Seen",
        409,
        parameters=("IdempotencyKey", "IfMatch"),
    ),
    ("interrupt", "create"): Operation(
        "interrupts_raise",
        {201: "Interrupt", 200: "Interrupt"},
        body="Request",
        needed=True,
        parameters=("NeededIdempotencyKey",),
        refusals=(409,),
        headers=("Location", "Replayed"),
        links=_OF_RAISED,
        described={
            201: "It waits for a person.",
            200: "This very request had been raised before; as it is now.",
        },
    ),
    ("interrupt", "consume"): _command(
        "interrupts_consume",
        "ConsumedDecision",
        "Nothing",
        409,
        410,
        parameters=("NeededIdempotencyKey",),
        links=("interrupts_outcome", "interrupts_give_back"),
    ),
    ("interrupt", "outcome"): _command(
        "interrupts_outcome",
        "OutcomeReceipt",
        "Report",
        409,
        needed=True,
        parameters=("NeededIdempotencyKey",),
    ),
    ("interrupt", "give_back"): _command(
        "interrupts_give_back",
        "Interrupt",
        "Reason",
        409,
        parameters=("NeededIdempotencyKey",),
    ),
    ("interrupt", "cancel"): Operation(
        "interrupts_cancel",
        {200: "Interrupt"},
        body="Reason",
        refusals=(409,),
        headers=("Replayed",),
        links=("interrupts_read",),
    ),
    ("interrupt", "decide_many"): Operation(
        "interrupts_decide_many",
        {200: "Outcomes"},
        body="Decisions",
        needed=True,
        parameters=("IdempotencyKey",),
        described={200: "What became of each decision, in the order they were sent."},
    ),
    ("turn", "create"): Operation(
        "turns_start",
        {202: "Turn"},
        body="Start",
        needed=True,
        parameters=("IdempotencyKey",),
        refusals=(409,),
        headers=("Location", "Replayed"),
        links=_OF_TURNS,
        described={202: "The turn is owed to a worker."},
    ),
    ("turn", "list"): Operation(
        "turns_list",
        {200: "TurnPage"},
        refusals=(400,),
        links=_OF_TURNS,
        id_at="/results/0/id",
    ),
    ("turn", "retrieve"): Operation("turns_read", {200: "Turn"}, refusals=(400,)),
    ("turn", "events"): Operation(
        "turns_events",
        {200: "EventPage"},
        parameters=("AfterNumber", "PageSize"),
        refusals=(400,),
    ),
    ("turn", "steps"): Operation(
        "turns_steps",
        {200: "StepPage"},
        parameters=("AfterId", "PageSize"),
        refusals=(400,),
    ),
    ("turn", "cancel"): _command("turns_cancel", "Turn", "Reason", 409),
    ("turn", "retry"): _command("turns_retry", "Turn", "Nothing", 409),
    ("turn", "restart"): _command("turns_restart", "Turn", "Restart", 409),
    ("turn", "fork"): Operation(
        "turns_fork",
        {201: "Turn", 200: "Turn"},
        body="Fork",
        parameters=("IdempotencyKey",),
        refusals=(409,),
        headers=("Location", "Replayed"),
        links=("turns_read", "turns_cancel"),
        described={
            201: "A new turn.",
            200: "The turn that this very request made before.",
        },
    ),
    ("queue", "list"): Operation(
        "queues_list",
        {200: "QueuePage"},
        parameters=("AfterSlug", "PageSize"),
        refusals=(400,),
    ),
    ("stats", "list"): Operation("stats_read", {200: "Stats"}, refusals=(400,)),
    ("schema", "list"): Operation("schema_read", {200: "Document"}),
}
"""By (basename, action); one that is missing here is missing in the document."""


def answer_of(operation: Operation, status: int) -> Shape:
    """Describe one answer that is no refusal."""
    headers: dict[str, Any] = {
        "X-Request-ID": ref("RequestID", "headers"),
        "Cache-Control": ref("CacheControl", "headers"),
    }
    for name in operation.headers:
        spelled = "Idempotency-Replayed" if name == "Replayed" else name
        headers[spelled] = ref(name, "headers")
    content: Shape = {"schema": ref(operation.answers[status])}
    shown = examples.of(operation.id).get("answers", {})
    if str(status) in shown:
        content["example"] = shown[str(status)]
    shape: Shape = {
        "description": operation.described.get(status, "As it is now."),
        "headers": headers,
        "content": {"application/json": content},
    }
    if operation.links:
        shape["links"] = {
            target: {
                "operationId": target,
                "parameters": {"id": f"$response.body#{operation.id_at}"},
            }
            for target in operation.links
        }
    return shape
