"""What is kept of a paused run, and what the decisions are to the framework."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic_ai import (
    DeferredToolRequests,
    DeferredToolResults,
    ToolApproved,
    ToolDenied,
)
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.usage import RunUsage
from pydantic_core import PydanticSerializationError

from hitl_approvals import canonical, results
from hitl_approvals.agents.framework import FrameworkTurn
from hitl_approvals.agents.pydantic_ai.conversation import dumped, loaded, neutral
from hitl_approvals.agents.pydantic_ai.visit import Visit
from hitl_approvals.agents.snapshots import REMEDY
from hitl_approvals.enums import DecisionType
from hitl_approvals.exceptions import RunDiverged
from hitl_approvals.gate.framework import Asked

_REQUESTS: TypeAdapter[Any] = TypeAdapter(DeferredToolRequests)
_USAGE: TypeAdapter[Any] = TypeAdapter(RunUsage)
MARKED = "the agent marks this tool as one that needs an approval"


@dataclass(frozen=True, slots=True)
class Pause:
    """A run that waits for people, as the framework needs it to go on."""

    messages: list[ModelMessage]
    requests: DeferredToolRequests
    usage: RunUsage
    steps: int

    def dump(self) -> dict[str, Any]:
        """Return it as JSON.

        Raises:
            RunDiverged: A result, or what a hook or a tool put beside one, is none.
        """
        try:
            return {
                "messages": dumped(self.messages),
                "requests": _REQUESTS.dump_python(self.requests, mode="json"),
                "usage": _USAGE.dump_python(self.usage, mode="json"),
                "steps": self.steps,
            }
        except PydanticSerializationError as error:
            # Another try would run the site's own tools again, and end in the same way.
            raise RunDiverged(
                f"This turn's messages cannot be kept as JSON: {error} Let tools and hooks "
                "return plain data, also as metadata, and restart the turn, or cancel it."
            ) from error

    @classmethod
    def load(cls, data: Any) -> Pause:
        """Read what `dump` wrote.

        Raises:
            RunDiverged: The installed version of the framework cannot read it.
        """
        try:
            return cls(
                messages=loaded(data["messages"]),
                requests=_REQUESTS.validate_json(json.dumps(data["requests"])),
                usage=_USAGE.validate_json(json.dumps(data["usage"])),
                steps=int(data["steps"]),
            )
        except (KeyError, TypeError, ValidationError) as error:
            raise RunDiverged(
                f"This turn's messages cannot be read by the Pydantic AI that is installed "
                f"here: {error}. {REMEDY}"
            ) from error


def offer_rest(pause: Pause, visit: Visit) -> None:
    """Let our gate ask for what the framework waits for, and for nothing else.

    A tool of ours that the agent marks as needing an approval is never entered before
    there is one, so its own body could not ask. Belongs to the worker's own thread.

    Args:
        pause: What the framework waits for.
        visit: The run that it waits in.

    Raises:
        RunDiverged: It waits for something else, or does not wait for one of ours.
    """
    turn = visit.turn
    waiting = {
        asked.id: asked
        for asked in turn.waiting.values()
        if asked.origin == visit.origin
    }
    approvals = {call.tool_call_id: call for call in pause.requests.approvals}
    foreign = [call.tool_name for call in pause.requests.calls]
    told = neutral(_up_to_the_reply(pause.messages))
    for call_id, call in approvals.items():
        if call_id in waiting:
            continue
        if call.tool_name in visit.names:
            asked = visit.asked(call, call.tool_name)
            turn.offer(asked, messages=told, anyway=MARKED)
        else:
            foreign.append(call.tool_name)
    if foreign:
        raise RunDiverged(
            f"{_listed(foreign)} waits for an approval or a result by Pydantic AI's own "
            "means, which nobody here can give; nothing of it ran. Make it a tool with "
            "`@tool` and name it in `tools=` of the agent: the gate asks for it then."
        )
    lost = [
        asked.name
        for asked in turn.waiting.values()
        if asked.origin != visit.origin or asked.id not in approvals
    ]
    if lost:
        raise RunDiverged(
            f"{_listed(lost)} waits for a person, and Pydantic AI went on as if it did "
            "not; nothing of that ran. Something between the model and its tools "
            "answered in the person's place."
        )


def let_in(requests: DeferredToolRequests) -> DeferredToolResults:
    """Return what makes the framework enter every tool, whose bodies ask the gate."""
    return DeferredToolResults(
        approvals={call.tool_call_id: ToolApproved() for call in requests.approvals},
        metadata=requests.metadata,
    )


def decided(
    turn: FrameworkTurn,
    pause: Pause,
    calls: Sequence[Asked],
    messages: Mapping[tuple[str, str, int], dict[str, Any]],
) -> DeferredToolResults:
    """Return the decisions in the framework's own words.

    What was let through has run by now: the framework enters the tool, and the tool's
    body finds the record. What was not is refused with the gate's text. Belongs to the
    worker's own thread.
    """
    answers = let_in(pause.requests)
    for call in calls:
        message = messages[call.origin, call.id, call.ordinal]
        row = turn.row_of(call)
        if message["status"] not in (results.OK, results.ERROR):
            answers.approvals[call.id] = ToolDenied(message["content"])
        elif row is not None and row.decision == DecisionType.EDIT:
            edited: Any = canonical.stored(row.decision_args_text)
            answers.approvals[call.id] = ToolApproved(override_args=edited)
        if row is not None and row.decided_by_label:
            answers.answered_by[call.id] = row.decided_by_label
    return answers


def _up_to_the_reply(messages: Sequence[ModelMessage]) -> Sequence[ModelMessage]:
    """Return a conversation without the results of calls beside the one that waits."""
    end = len(messages)
    while end and not isinstance(messages[end - 1], ModelResponse):
        end -= 1
    return messages[:end]


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in dict.fromkeys(names))
