"""What goes into a graph and what comes out of it, as plain JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain_core.messages import BaseMessage
from pydantic_core import to_jsonable_python

MESSAGES = "messages"


def graph_input(graph: Any, given: Any) -> Any:
    """Return the input of a turn as the graph takes it.

    A graph of messages is given a text as what the user says, and a list as messages;
    everything else is handed over as it stands.
    """
    if MESSAGES not in graph.channels or isinstance(given, Mapping):
        return given
    if isinstance(given, list):
        return {MESSAGES: given}
    return {MESSAGES: [{"role": "user", "content": as_text(given)}]}


def output_of(values: Any) -> Any:
    """Return what a finished graph has to say, as JSON.

    The structured response of an agent, else the text of the last message, else all the
    values of the state.
    """
    if isinstance(values, Mapping):
        if values.get("structured_response") is not None:
            return jsonable(values["structured_response"])
        messages = values.get(MESSAGES)
        if isinstance(messages, list) and messages:
            last = messages[-1]
            if isinstance(last, BaseMessage):
                return str(last.text)
    return jsonable(values)


def kept_for_output(graph: Any, values: Any) -> Any:
    """Return those values of a state that the graph puts out when it ends."""
    if isinstance(values, Mapping) and isinstance(graph.output_channels, (list, tuple)):
        return {key: values[key] for key in graph.output_channels if key in values}
    return values


def as_text(value: Any) -> str:
    """Return a value as a user would write it."""
    return value if isinstance(value, str) else str(jsonable(value))


def jsonable(value: Any) -> Any:
    """Return a value as JSON; what has no form of its own there becomes its text."""
    return to_jsonable_python(value, fallback=str, inf_nan_mode="strings")
