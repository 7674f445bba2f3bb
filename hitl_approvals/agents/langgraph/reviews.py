"""Reads the interrupts of `HumanInTheLoopMiddleware`, and writes decisions in its form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hitl_approvals import canonical, results
from hitl_approvals.agents.langgraph.messages import Reply, find_reply, last_reply
from hitl_approvals.enums import DecisionType
from hitl_approvals.exceptions import RunDiverged
from hitl_approvals.gate.framework import Asked
from hitl_approvals.models import PendingInterrupt

RESPOND = "respond"
ALL = ("approve", "edit", "reject", RESPOND)


@dataclass(frozen=True, slots=True)
class Review:
    """One call that the middleware wants a person to see."""

    asked: Asked
    reply: Reply
    allowed: tuple[str, ...]
    """The kinds of decision that the middleware takes for it."""
    description: str


def is_per_call(value: Any) -> bool:
    """Tell whether an interrupt is the middleware's, for one call."""
    return isinstance(value, Mapping) and value.get("type") == "tool_approval"


def is_batched(value: Any) -> bool:
    """Tell whether an interrupt is the middleware's, for the calls of a whole reply."""
    return (
        isinstance(value, Mapping)
        and isinstance(value.get("action_requests"), list)
        and isinstance(value.get("review_configs"), list)
    )


def reviews_in(interrupt: Any, states: Sequence[Any]) -> list[Review]:
    """Return the calls that an interrupt of the middleware is about, in its order.

    Args:
        interrupt: One for which `is_per_call` or `is_batched` holds.
        states: The values of the graph and of its subgraphs, where the calls stand.

    Raises:
        RunDiverged: A call does not stand there, so nobody can be asked about it.
    """
    if is_per_call(interrupt.value):
        return [_one(interrupt, states)]
    for state in states:
        reply = last_reply(state)
        if reply is not None:
            found = _matched(interrupt.value, reply)
            if found is not None:
                return found
    names = [one.get("name") for one in interrupt.value["action_requests"]]
    raise _lost(", ".join(f"`{name}`" for name in names))


def decision_for(
    review: Review, message: Mapping[str, Any], row: PendingInterrupt | None
) -> dict[str, Any]:
    """Return what came of a call in the middleware's own form.

    The form only says where the middleware goes next: whether the tool runs, and with
    what, is settled by the row alone.
    """
    args = _edited(row)
    # "Rejected" is said of what a person refused. That nobody decided in time, or knows
    # what happened, the tool's body tells.
    wanted: dict[str, Any] = {"type": "approve"}
    if message["status"] == results.REJECTED:
        wanted = {"type": "reject", "message": message["content"]}
    elif args is not None:
        wanted = _edit(review, args)
    if wanted["type"] in review.allowed:
        return wanted
    if "approve" in review.allowed:
        # The body is gated: it finds the refusal or the edit on the row.
        return {"type": "approve"}
    if "edit" in review.allowed:
        return _edit(review, review.asked.args)
    return {"type": "reject", "message": message["content"]}


def _one(interrupt: Any, states: Sequence[Any]) -> Review:
    value = interrupt.value
    call_id, name = value.get("tool_call_id") or "", str(value.get("name"))
    for state in states:
        reply = find_reply(state, call_id)
        index = None if reply is None else reply.index_of(call_id, name, value["args"])
        if reply is not None and index is not None:
            return _review(reply, index, _types_in(interrupt.response_schema), value)
    raise _lost(f"`{name}`")


def _matched(value: Mapping[str, Any], reply: Reply) -> list[Review] | None:
    """Match requests and calls, both in the model's order; the requests hold no ids."""
    found: list[Review] = []
    at = 0
    configs = value["review_configs"]
    for n, request in enumerate(value["action_requests"]):
        wanted = (request.get("name"), request.get("args"))
        while at < len(reply.calls):
            call = reply.calls[at]
            at += 1
            if (call["name"], call["args"]) == wanted:
                allowed = (
                    configs[n].get("allowed_decisions") if n < len(configs) else ()
                )
                found.append(_review(reply, at - 1, tuple(allowed or ALL), request))
                break
        else:
            return None
    return found


def _review(
    reply: Reply, index: int, allowed: tuple[str, ...], request: Mapping[str, Any]
) -> Review:
    asked = reply.asked(index)
    return Review(asked, reply, allowed, str(request.get("description") or ""))


def _types_in(schema: Any) -> tuple[str, ...]:
    """Return the kinds of decision in a `response_schema` of the middleware."""
    if not isinstance(schema, Mapping):
        return ALL
    mapping = schema.get("discriminator", {}).get("mapping")
    if mapping:
        return tuple(mapping)
    own = schema.get("properties", {}).get("type", {})
    found = tuple(own.get("enum") or ([own["const"]] if "const" in own else ()))
    return found or ALL


def _edit(review: Review, args: Any) -> dict[str, Any]:
    return {
        "type": "edit",
        "edited_action": {"name": review.asked.name, "args": args},
    }


def _edited(row: PendingInterrupt | None) -> Any:
    if row is None or row.decision != DecisionType.EDIT:
        return None
    return canonical.stored(row.decision_args_text)


def _lost(what: str) -> RunDiverged:
    return RunDiverged(
        f"LangGraph waits for a decision on {what}, and no message in the graph's state "
        "holds that call. Nothing ran. Keep the model's messages in the state until their "
        "calls are answered."
    )
