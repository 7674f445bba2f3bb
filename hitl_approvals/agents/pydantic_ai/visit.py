"""One run of Pydantic AI on behalf of a turn: which turn, which reply, what was decided."""

from __future__ import annotations

from collections.abc import Container, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from pydantic_ai import RunContext
from pydantic_ai.messages import ModelMessage, ModelResponse, ToolCallPart

from hitl_approvals.agents.framework import FrameworkTurn
from hitl_approvals.agents.pydantic_ai.conversation import neutral
from hitl_approvals.agents.snapshots import REMEDY
from hitl_approvals.exceptions import RunDiverged
from hitl_approvals.gate.framework import Asked
from hitl_approvals.registry import Tool


@dataclass(slots=True)
class Visit:
    """A run of the framework's agent, from its start or a pause up to the next pause."""

    turn: FrameworkTurn
    names: Container[str]
    """Of the tools that are ours."""
    steps_before: int = 0
    """Replies that the conversation held when this run began; the framework's own count
    of its steps begins anew in every run."""
    decided: dict[str, str] = field(default_factory=dict)
    """Names of the calls, by id, that were let through and whose tools must be entered
    before the model is asked again."""
    run_id: str = field(default_factory=lambda: str(uuid4()))
    steps: int = 0
    """Replies that the conversation holds by now."""

    asking: bool = False
    """The model is being asked, and has not replied."""

    def __post_init__(self) -> None:
        self.steps = self.steps_before

    @property
    def origin(self) -> str:
        """Name of the newest reply, the same in every run of the turn."""
        return f"reply-{self.steps}"

    def entered(self, context: RunContext[Any], tool: Tool[Any, Any]) -> Asked:
        """Return the call that the framework enters a tool for, as the model made it.

        Raises:
            RunDiverged: The model's last reply holds no such call.
        """
        call = _call_of(context.messages, context.tool_call_id)
        if call is None or context.run_id != self.run_id:
            # A call that nobody can find again would run twice after a crash.
            self.turn.stop(
                RunDiverged(
                    f"`{tool.name}` was entered for a call that the agent's own model did "
                    "not make (another agent's, or one made up on the way); it did not run."
                )
            )
        self.decided.pop(call.tool_call_id, None)
        return self.asked(call, tool.name)

    def asked(self, call: ToolCallPart, name: str) -> Asked:
        """Return a call of the newest reply as the gate reads it."""
        # The gate refuses what is no object; nothing at all is an object without names.
        args = {} if call.args is None else call.args
        return Asked(id=call.tool_call_id, name=name, args=args, origin=self.origin)

    def answer(
        self, asked: Asked, messages: Sequence[ModelMessage]
    ) -> tuple[dict[str, Any] | None, dict[str, Any]]:
        """Return what a call came to, or None and why a person has to decide first.

        Belongs to the worker's own thread.

        Raises:
            InterruptSuspended, RunDeferred, RunDiverged, LeaseLost: See `perform`.
        """
        told = neutral(messages)
        if not self.turn.offer(asked, messages=told):
            return self.turn.perform(asked, messages=told)[0], {}
        key = next(key for key, one in self.turn.waiting.items() if one == asked)
        policy = self.turn.wanted[key].fields["policy"]
        return None, {"why": policy["why"], "tags": policy["tags"]}

    def require_all_entered(self) -> None:
        """Refuse to go on while the framework has passed over a decided call.

        Raises:
            RunDiverged: The model would be told something else than what happened.
        """
        if self.decided:
            names = ", ".join(
                sorted(f"`{name}`" for name in set(self.decided.values()))
            )
            self.turn.stop(
                RunDiverged(
                    f"{names} was decided, and the agent passed over it: it has no such "
                    "tool now, or something between the model and its tools skipped it. "
                    f"{REMEDY}"
                )
            )


visiting: ContextVar[Visit | None] = ContextVar("hitl_pydantic_ai_visit", default=None)
"""The run that tools are entered in. The agent is shared by all turns of a process."""


def _call_of(
    messages: Sequence[ModelMessage], call_id: str | None
) -> ToolCallPart | None:
    """Return the newest call of an id: providers use ids again in later replies."""
    for message in reversed(messages):
        if isinstance(message, ModelResponse):
            for call in message.tool_calls:
                if call.tool_call_id == call_id:
                    return call
    return None
