"""What each endpoint takes and answers: one line an operation, keyed as the router knows it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

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
    query: tuple[Shape, ...] = ()
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


def _decision(verb: str, component: str, *, needed: bool = True) -> Operation:
    return Operation(
        f"interrupts_{verb}",
        {200: "Interrupt"},
        body=component,
        needed=needed,
        parameters=("IdempotencyKey", "IfMatch"),
        refusals=ON_DECISIONS,
        headers=("Replayed",),
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
    ("interrupt", "retrieve"): Operation("interrupts_read", {200: "Interrupt"}),
    ("interrupt", "approve"): _decision("approve", "Approval", needed=False),
    ("interrupt", "reject"): _decision("reject", "Rejection"),
    ("interrupt", "edit"): _decision("edit", "Edit"),
    ("interrupt", "respond"): _decision("respond", "Response"),
    ("interrupt", "settle"): Operation(
        "interrupts_settle",
        {200: "Interrupt"},
        body="Settlement",
        needed=True,
        parameters=("IfMatch",),
        refusals=(409, 423),
    ),
    ("interrupt", "claim"): Operation(
        "interrupts_claim", {200: "Interrupt"}, body="Claim", refusals=(409, 410, 423)
    ),
    ("interrupt", "release"): Operation(
        "interrupts_release", {200: "Interrupt"}, body="Release", refusals=(409, 423)
    ),
    ("interrupt", "assign"): Operation(
        "interrupts_assign",
        {200: "Interrupt"},
        body="Assignment",
        needed=True,
        refusals=(409, 410, 423),
    ),
    ("interrupt", "re_review"): Operation(
        "interrupts_re_review", {200: "Interrupt"}, body="Nothing", refusals=(409,)
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
        headers=("Location",),
        links=_OF_TURNS,
        described={202: "The turn is owed to a worker."},
    ),
    ("turn", "retrieve"): Operation("turns_read", {200: "Turn"}),
    ("turn", "cancel"): Operation(
        "turns_cancel", {200: "Turn"}, body="Reason", refusals=(409,)
    ),
    ("turn", "retry"): Operation(
        "turns_retry", {200: "Turn"}, body="Nothing", refusals=(409,)
    ),
    ("turn", "restart"): Operation(
        "turns_restart", {200: "Turn"}, body="Restart", refusals=(409,)
    ),
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
    shape: Shape = {
        "description": operation.described.get(status, "As it is now."),
        "headers": headers,
        "content": {
            "application/json": {"schema": ref(operation.answers[status])},
        },
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
