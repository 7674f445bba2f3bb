"""What an adapter has to know of its engine, and what a look at a workflow may show."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, ClassVar

from hitl_approvals.agents.snapshots import Maker

NOBODY = "hitl-nobody"
"""A queue that nobody listens to: there, a workflow is kept and never performed."""


class EngineAway(Exception):
    """The engine, or what performs its workflows, does not answer; the text says why."""


class CannotCancel(Exception):
    """Nothing here may cancel workflows of this engine; the text says what is missing."""


@dataclass(frozen=True, slots=True)
class Absent:
    """The engine knows no such workflow."""


@dataclass(frozen=True, slots=True)
class Working:
    """It is under way and waits for nothing of ours."""

    why: str = ""


@dataclass(frozen=True, slots=True)
class Asking:
    """It waits for the answer of a round."""

    number: int
    pending: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Ended:
    """It is over, with a result."""

    output: Any


@dataclass(frozen=True, slots=True)
class Broken:
    """It is over without a result: failed, cancelled, out of time."""

    why: str


Seen = Absent | Working | Asking | Ended | Broken


class Link(ABC):
    """A connection to an engine.

    Every method may raise `EngineAway`; that is never an attempt of the turn.
    """

    @abstractmethod
    async def look(self, workflow: str) -> Seen:
        """Return what a workflow is doing, without waiting for it."""

    @abstractmethod
    async def start(self, workflow: str, given: Any) -> None:
        """Start a workflow under this id; one that was started is left as it is."""

    async def forestall(self, workflow: str) -> bool:
        """Take an id that no workflow has, so that a late start finds it taken.

        Nothing of the workflow's code runs for that. One that was started is left as it
        is. Whether or not, `cancel` comes next.

        Returns:
            Whether the engine can keep an id in this way.
        """
        return False

    @abstractmethod
    async def deliver(self, workflow: str, answer: Mapping[str, Any]) -> None:
        """Hand over the answer of a round; one that was delivered has no effect.

        Raises:
            AnswerRefused: It does not fit what the workflow waits for.
        """

    @abstractmethod
    async def cancel(self, workflow: str) -> None:
        """Ask a workflow to end; one that is over or unknown is left as it is.

        Raises:
            CannotCancel: The address lacks what this needs.
        """


class Engine(ABC):
    """An engine at an address."""

    name: ClassVar[str]
    maker: ClassVar[Maker]
    where: str
    """The address, without secrets, for the operator."""
    patience: float

    @abstractmethod
    def link(self) -> AbstractAsyncContextManager[Link]:
        """Connect for one run.

        Raises:
            EngineAway: It does not answer.
        """


def text_of(error: BaseException) -> str:
    """Return what an error says, down to what caused it, in one line."""
    said: list[str] = []
    seen: BaseException | None = error
    while seen is not None and len(said) < 5:
        text = str(seen).strip() or type(seen).__name__
        if text not in said:
            said.append(text)
        seen = seen.__cause__
    return ": ".join(said)


def asking(pending: Any) -> Asking | None:
    """Return the round that a workflow shows; None while it waits for nothing."""
    if not isinstance(pending, Mapping):
        return None
    if "question" not in pending and not pending.get("calls"):
        return None
    return Asking(number=pending["round"], pending=pending)
