"""What the interrupts of a graph mean to us: calls, reviews of calls, and questions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hitl_approvals.agents.framework import FrameworkTurn
from hitl_approvals.agents.langgraph.reviews import (
    RESPOND,
    Review,
    decision_for,
    is_batched,
    is_per_call,
    reviews_in,
)
from hitl_approvals.agents.langgraph.session import OURS
from hitl_approvals.agents.langgraph.shapes import jsonable
from hitl_approvals.exceptions import ApprovalRejected, RunDiverged
from hitl_approvals.registry import Tool

REVIEWED = "the agent's own middleware asks for a review of this call"
_OPEN = object()
"""Stands for an answer that nobody has given yet."""


def is_review(interrupt: Any) -> bool:
    """Tell whether an interrupt is one of `HumanInTheLoopMiddleware`."""
    return is_per_call(interrupt.value) or is_batched(interrupt.value)


def is_ours(interrupt: Any) -> bool:
    """Tell whether an interrupt is the gate's own: such a one needs no answer."""
    value = interrupt.value
    return isinstance(value, Mapping) and value.get("type") == OURS


class Pauses:
    """Asks people what a graph waits for, and answers it. In the worker's own thread."""

    def __init__(
        self, turn: FrameworkTurn, tools: Mapping[str, Tool[Any, Any]]
    ) -> None:
        self._turn = turn
        self._tools = tools
        self.reviewed: list[Any] = []
        """The calls that a middleware wanted to be reviewed, as the model asked."""

    def answers(
        self, interrupts: Iterable[Any], states: Sequence[Any]
    ) -> dict[str, Any]:
        """Return the answers that there are, by the id of the interrupt.

        What nobody has decided yet is noted as wanted.

        Args:
            interrupts: What the graph waits for, other than the gate's own.
            states: The values of the graph and of its subgraphs.

        Raises:
            RunDiverged: Nobody can be asked about one.
        """
        found = {}
        for one in interrupts:
            answer = (
                self._reviewed(one, states) if is_review(one) else self._question(one)
            )
            if answer is not _OPEN:
                found[one.id] = answer
        return found

    def _reviewed(self, interrupt: Any, states: Sequence[Any]) -> Any:
        reviews = reviews_in(interrupt, states)
        told = [self._decision(interrupt.id, n, one) for n, one in enumerate(reviews)]
        if any(one is _OPEN for one in told):
            return _OPEN
        return told[0] if is_per_call(interrupt.value) else {"decisions": told}

    def _decision(self, interrupt_id: str, number: int, review: Review) -> Any:
        asked = review.asked
        if asked.name not in self._tools:
            raise RunDiverged(
                f"The agent's middleware asks for a review of `{asked.name}`, which is not "
                "among the agent's tools here, so its effect could not be kept to what was "
                "approved. Nothing ran. Decorate it with @tool and name it in "
                "@agent(tools=[...])."
            )
        if set(review.allowed) == {RESPOND}:
            return self._response(f"{interrupt_id}:{number}", review)
        self.reviewed.append(asked)
        if self._wanted(review):
            return _OPEN
        (message,) = self._turn.perform(asked)
        return decision_for(review, message, self._turn.row_of(asked))

    def _wanted(self, review: Review) -> bool:
        before = set(self._turn.wanted)
        self._turn.line_up(*review.reply.all_asked())
        waits = self._turn.offer(
            review.asked, messages=review.reply.conversation(), anyway=REVIEWED
        )
        for key in set(self._turn.wanted) - before:
            fields = self._turn.wanted[key].fields
            both = [one for one in fields["allowed_decisions"] if one in review.allowed]
            if not both:
                raise RunDiverged(
                    f"`{review.asked.name}` allows {fields['allowed_decisions']}, and the "
                    f"agent's middleware takes {list(review.allowed)} for it: no decision "
                    "would do. Nothing ran."
                )
            fields["allowed_decisions"] = both
        return waits

    def _response(self, key: str, review: Review) -> Any:
        """Put a call that a person answers in the tool's place as a question."""
        payload = {
            "question": review.description,
            "tool": review.asked.name,
            "args": review.asked.args,
        }
        answer = self._answer(key, payload, {"type": "string"})
        if answer is _OPEN:
            return _OPEN
        if isinstance(answer, Mapping):
            answer = answer["message"]
        return {"type": RESPOND, "message": answer}

    def _question(self, interrupt: Any) -> Any:
        schema = interrupt.response_schema
        return self._answer(
            interrupt.id,
            jsonable(interrupt.value),
            schema if isinstance(schema, dict) else None,
        )

    def _answer(self, key: str, payload: Any, schema: dict[str, Any] | None) -> Any:
        if self._turn.offer_question(key, payload, schema):
            return _OPEN
        try:
            return self._turn.answer_to(key)
        except ApprovalRejected as refusal:
            return {"type": "reject", "message": refusal.reason}
