"""What the adapters of other frameworks share: a turn for their loops, and its pauses."""

from __future__ import annotations

import operator
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn, TypeVar

from asgiref.sync import sync_to_async

from hitl_approvals.agents.base import Completed, Suspended
from hitl_approvals.agents.capabilities import Capabilities
from hitl_approvals.agents.guarding import guarded
from hitl_approvals.agents.snapshots import Maker, Snapshot, pack, unpack
from hitl_approvals.agents.turn import Turn
from hitl_approvals.awaiting import awaited
from hitl_approvals.exceptions import InterruptSuspended, RunDiverged
from hitl_approvals.gate.calls import call_key
from hitl_approvals.gate.framework import Asked, FrameworkGate
from hitl_approvals.models import PendingInterrupt
from hitl_approvals.registry import AgentDefinition, Tool
from hitl_approvals.services.requests import Request
from hitl_approvals.services.run import Run

R = TypeVar("R")
Messages = Sequence[Any] | None
REPLY = "model"
"""Name of the steps that hold a model's replies."""


@dataclass(frozen=True, slots=True)
class Paused:
    """The framework waits for people; `data` is what it can be resumed from, as JSON."""

    data: Any


class FrameworkTurn(Turn):
    """A turn that another framework's loop performs.

    Its verbs touch the database and belong to the worker's own thread: in a coroutine
    use `in_worker`. `wanted` holds what a person has to decide, in the order of asking.
    """

    _gate: FrameworkGate

    def __init__(
        self, run: Run, definition: AgentDefinition, *, replies: int = 0
    ) -> None:
        super().__init__(run, definition)
        self.thread_ident = threading.get_ident()
        """Names the worker's own thread: turns are made where they are performed."""
        # The replies in the snapshot were recorded by earlier runs.
        self._ordinals[REPLY] = replies
        self.wanted: dict[str, Request] = {}
        self.waiting: dict[str, Asked] = {}
        """The calls among what is wanted, by the key of their request."""

    @staticmethod
    def _make_gate(run: Run, definition: AgentDefinition) -> FrameworkGate:
        return FrameworkGate(run, definition)

    @property
    def restarts(self) -> int:
        """How often a person has begun this turn anew."""
        return self._run.turn.restarts

    def require_alive(self) -> None:
        """Stop a loop that would go on where the run has to end.

        Raises:
            LeaseLost: The turn is not this run's any more.
            Exception: Why the run has to end, as in `stopped`.
        """
        if self.stopped is not None:
            raise self.stopped
        self._run.check_lease()

    @property
    def replies(self) -> int:
        """How many replies the model has given in this turn so far."""
        return self._ordinals[REPLY]

    def reply(self, ask: Callable[..., Any], /, *args: Any, result_type: Any) -> Any:
        """Return the model's next reply: recorded once, replayed after a crash.

        Args:
            ask: Asks the model; may be async.
            *args: Passed to it.
            result_type: What pydantic reads the recorded JSON into; None for plain JSON.

        Raises:
            PayloadRejected: The reply cannot be recorded.
            LeaseLost: The turn is not this run's any more.
        """
        before = self._ordinals[REPLY]
        try:
            return self.step(REPLY, ask, *args, result_type=result_type)
        except BaseException:
            # A framework may ask again by itself, after a timeout that cancelled this
            # too: that is the same reply then.
            self._ordinals[REPLY] = before
            raise

    def line_up(self, *asked: Asked) -> None:
        """Say in which order people see these calls, whichever is offered first."""
        self._gate.line_up(asked)

    def offer(
        self,
        asked: Asked,
        *,
        messages: Messages = None,
        reason: str | None = None,
        anyway: str = "",
    ) -> bool:
        """Tell whether a call has to wait for a person, and note it as wanted if so.

        Args:
            asked: The call.
            messages: The conversation, shown to the reviewer as far as it fits.
            reason: The agent's stated reason; by default the text of the last message.
            anyway: Why a person has to decide even where the tool's policy lets it run.

        Raises:
            RunDiverged: A recorded call differs from the one that is asked now.
        """
        request = self._gate.offer(
            asked, messages=messages, reason=reason, anyway=anyway
        )
        if request is None:
            return False
        self.wanted.setdefault(request.key, request)
        self.waiting.setdefault(request.key, asked)
        return True

    def perform(self, *asked: Asked, messages: Messages = None) -> list[dict[str, Any]]:
        """Run calls that are free or decided, under the ledger; one message each.

        A call that ran before is not run again: its message is built from its record.

        Raises:
            InterruptSuspended: One has to go to a person again. Let it pass.
            RunDeferred: A call could not be started; the run is to be repeated.
            RunDiverged: Nobody was asked about a gated one. Nothing ran.
            LeaseLost: The turn is not this run's any more.
        """
        return self._gate.perform(asked, messages=messages)

    def value_of(self, tool: Tool[Any, Any], asked: Asked) -> Any:
        """Run a free or decided call of a plain function; return what it returned.

        Raises:
            ApprovalRejected: It did not run; the text says why.
            Exception: The same as `perform`.
        """
        return self._gate.value_of(tool, asked)

    def is_on_record(self, asked: Asked) -> bool:
        """Tell whether an earlier run of this turn has begun a call."""
        label = asked.id or asked.name
        key = call_key(self._run, asked.origin, label, asked.ordinal)
        return any(known == key for known, _generation in self._run.steps)

    def row_of(self, asked: Asked) -> PendingInterrupt | None:
        """Return the interrupt of a call, if it was asked for."""
        return self._gate.row_of(asked)

    def offer_question(
        self, key: str, payload: Any, response_schema: Mapping[str, Any] | None = None
    ) -> bool:
        """Tell whether a question has to wait for a person; note it as wanted if so.

        Raises:
            PayloadRejected: It is not JSON, too large or too deep.
        """
        request = self._gate.offer_question(key, payload, response_schema)
        if request is None:
            return False
        self.wanted.setdefault(request.key, request)
        return True

    def answer_to(self, key: str) -> Any:
        """Return the answer to a question that was offered in an earlier run.

        Raises:
            ApprovalRejected: A person refused to answer, or nobody did in time.
            RunDiverged: Nobody was asked.
        """
        return self._gate.answer_to(key)

    def stop(self, why: Exception) -> NoReturn:
        """End the run by `why`, even if the framework swallows what is raised here."""
        if self._gate.stopped is None:
            self._gate.stopped = why
        raise self._gate.stopped

    @property
    def stopped(self) -> Exception | None:
        """Why the run has to end, once it has to; a framework may have swallowed it."""
        return self._gate.stopped


async def in_worker(work: Callable[..., R], /, *args: Any, **kwargs: Any) -> R:
    """Run a turn's verb on the worker's own thread, with its database connection."""
    return await _in_worker(work, *args, **kwargs)


# Made once: it costs as much as a part of the way there.
_in_worker = sync_to_async(operator.call, thread_sensitive=True)


class FrameworkAgent(ABC):
    """An agent whose loop is another framework's, performed by our worker."""

    maker: ClassVar[Maker]
    capabilities: ClassVar[Capabilities]

    def __init__(self, definition: AgentDefinition) -> None:
        self.definition = definition

    @abstractmethod
    async def begin(self, turn: FrameworkTurn, given: Any) -> Completed | Paused:
        """Perform a turn from its beginning."""

    @abstractmethod
    async def go_on(
        self,
        turn: FrameworkTurn,
        snapshot: Snapshot,
        messages: Mapping[tuple[str, str, int], dict[str, Any]],
    ) -> Completed | Paused:
        """Go on from a pause.

        `messages` holds what came of each call that was waited for, by origin, id and
        ordinal: they have been run by now, or refused.
        """

    def start(self, run: Run, input: Any) -> Completed | Suspended:  # noqa: A002
        """Perform a turn from its beginning."""
        return _performed(self, run, None, input)

    def resume(
        self, run: Run, state: Any, decisions: Sequence[PendingInterrupt]
    ) -> Completed | Suspended:
        """Go on from the last pause: first all decided calls, then the framework."""
        # Without a state it never paused by itself: a call was in doubt before that.
        snapshot = None if state is None else unpack(self.maker, state)
        return _performed(self, run, snapshot, run.turn.input)


# Functions, not methods: an adapter's own methods may be called whatever they like.


def _performed(
    agent: FrameworkAgent, run: Run, snapshot: Snapshot | None, given: Any
) -> Completed | Suspended:
    replies = 0 if snapshot is None else snapshot.replies
    turn = FrameworkTurn(run, agent.definition, replies=replies)

    def work() -> Completed | Paused:
        if snapshot is None:
            return _played(agent.begin, turn, given)
        told = turn.perform(*snapshot.calls)
        messages = {
            (call.origin, call.id, call.ordinal): message
            for call, message in zip(snapshot.calls, told, strict=True)
        }
        return _played(agent.go_on, turn, snapshot, messages)

    try:
        outcome = guarded(turn, work)
    except InterruptSuspended:
        return Suspended()
    if isinstance(outcome, Completed):
        return _completed(turn, outcome)
    return _suspended(agent.maker, turn, outcome)


def _played(loop: Callable[..., Any], *args: Any) -> Completed | Paused:
    outcome: Completed | Paused = awaited(loop, *args)
    return outcome


def _completed(turn: FrameworkTurn, outcome: Completed) -> Completed:
    if turn.wanted:
        # Whatever made the loop go on: nobody has decided, so it is not over.
        raise RunDiverged(
            f"The agent ended while {_named(turn)} waits for a person; nothing of "
            "that ran. Something between the model and its tools swallowed the pause."
        )
    return outcome


def _suspended(maker: Maker, turn: FrameworkTurn, outcome: Paused) -> Suspended:
    if not turn.wanted:
        raise RunDiverged(f"{maker.framework} paused, and nothing waits for a person.")
    return Suspended(
        requests=list(turn.wanted.values()),
        state=pack(
            maker,
            outcome.data,
            calls=list(turn.waiting.values()),
            replies=turn.replies,
        ),
    )


def _named(turn: FrameworkTurn) -> str:
    names = {asked.name for asked in turn.waiting.values()} or {"a question"}
    return ", ".join(sorted(f"`{name}`" for name in names))
