"""What a kind of agent can do and what it leaves to the gate, as data. Imports no framework."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Literal

KINDS = (
    "function",
    "graph",
    "langgraph",
    "pydantic_ai",
    "openai_agents",
    "temporal",
    "dbos",
    "restate",
)
"""Kinds that sites name in `@agent(kind=...)`, in the order in which the docs list them."""
DISTRIBUTIONS = {
    "langgraph": "langgraph",
    "pydantic_ai": "pydantic-ai-slim",
    "openai_agents": "openai-agents",
    "temporal": "temporalio",
    "dbos": "dbos",
    "restate": "restate-sdk",
}
"""What has to be installed for a kind to run, each by the extra that bears its name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What one kind of agent can do. Its module says so as `CAPABILITIES`."""

    partial_resume: bool
    """The framework itself could go on with some decisions still open.

    A turn of ours never does: it goes on once all of them are made.
    """
    native_edit: bool
    """Edited arguments are known to the loop itself; else only the tool's result tells."""
    reject_text: bool
    """The model reads the reviewer's reason for a refusal."""
    questions: bool
    """The agent can ask a person something beside "may this run?"."""
    replays_replies: bool
    """A reply of the model that was recorded is not asked for again after a crash."""
    durability: Literal["package", "framework", "engine"]
    """Who keeps the turn while it waits: our rows, the framework's own store, an engine."""
    state_format: Literal["journal", "json", "external"]
    """What our row keeps of a paused turn: steps only, the state itself, or where it is."""
    streaming: bool = False
    """Tokens of a reply are passed on while the model still writes."""


def module_of(kind: str) -> str:
    """Return the module of a kind: one of this package, or a dotted one of the site's."""
    return kind if "." in kind else f"hitl_approvals.agents.{kind}"


def capabilities_of(kind: str) -> Capabilities:
    """Return what a kind of agent declares; its framework need not be installed.

    Raises:
        ModuleNotFoundError: There is no such kind.
    """
    declared: Capabilities = import_module(module_of(kind)).CAPABILITIES
    return declared
