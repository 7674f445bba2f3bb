"""Finds a model's tool calls in the state of a graph, and writes messages as plain JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage

from hitl_approvals.gate.framework import Asked

ROLES = {"human": "user", "ai": "assistant", "system": "system", "tool": "tool"}
SHOWN = 12
"""How many messages of a conversation a reviewer is shown at most."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A model's message that holds tool calls, and the conversation that it ends."""

    message: Any
    before: Sequence[Any]

    @property
    def origin(self) -> str:
        """Names the reply; LangGraph keeps a message's id with the message."""
        return f"reply:{self.message.id}" if self.message.id else ""

    @property
    def calls(self) -> list[Any]:
        """The tool calls in the model's order."""
        return list(self.message.tool_calls)

    def asked(self, index: int) -> Asked:
        """Return the call at `index`, as the model asked for it."""
        call = self.calls[index]
        return Asked(
            id=call["id"],
            name=call["name"],
            args=dict(call["args"]),
            origin=self.origin,
            ordinal=self.ordinal(index),
        )

    def all_asked(self) -> list[Asked]:
        """Return all the calls, in the model's order."""
        return [self.asked(index) for index in range(len(self.calls))]

    def conversation(self) -> list[dict[str, Any]]:
        """Return the end of the conversation as plain messages, this reply last."""
        return [plain_message(one) for one in [*self.before, self.message][-SHOWN:]]

    def ordinal(self, index: int) -> int:
        """Return which of the calls with its id the call at `index` is."""
        wanted = self.calls[index]["id"]
        return sum(one["id"] == wanted for one in self.calls[: index + 1])

    def index_of(self, call_id: str, name: str, args: Any) -> int | None:
        """Return the place of a call in the reply; its id may stand there twice."""
        same = [n for n, one in enumerate(self.calls) if one["id"] == call_id]
        exact = [
            n
            for n in same
            if (self.calls[n]["name"], self.calls[n]["args"]) == (name, args)
        ]
        return next(iter([*exact, *same]), None)


def find_reply(values: Any, call_id: str) -> Reply | None:
    """Return the last reply in a graph's state that holds a call with this id."""
    for messages in _conversations(values):
        for n in range(len(messages) - 1, -1, -1):
            message = messages[n]
            if isinstance(message, AIMessage) and any(
                one["id"] == call_id for one in message.tool_calls
            ):
                return Reply(message, messages[:n])
    return None


def last_reply(values: Any) -> Reply | None:
    """Return the last reply in a graph's state that holds tool calls."""
    for messages in _conversations(values):
        for n in range(len(messages) - 1, -1, -1):
            message = messages[n]
            if isinstance(message, AIMessage) and message.tool_calls:
                return Reply(message, messages[:n])
    return None


def plain_message(message: Any) -> dict[str, Any]:
    """Return a message in the shape that chat APIs use, as JSON."""
    told: dict[str, Any] = {
        "role": ROLES.get(message.type, message.type),
        "content": str(message.text),
    }
    if isinstance(message, AIMessage) and message.tool_calls:
        told["tool_calls"] = [
            {"id": one["id"], "name": one["name"], "args": one["args"]}
            for one in message.tool_calls
        ]
    return told


def _conversations(values: Any) -> Iterator[Sequence[Any]]:
    """Yield every list of messages in a state, whatever the state is made of."""
    if isinstance(values, (list, tuple)):
        found: list[Any] = [values]
    elif isinstance(values, Mapping):
        found = list(values.values())
    else:
        found = list(getattr(values, "__dict__", {}).values())
    for one in found:
        if isinstance(one, (list, tuple)) and any(
            isinstance(message, BaseMessage) for message in one
        ):
            yield one
