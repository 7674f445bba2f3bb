"""The gate in front of tools whose calls come from another framework's loop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hitl_approvals import results
from hitl_approvals.exceptions import ApprovalRejected, RunDiverged
from hitl_approvals.gate import questions
from hitl_approvals.gate.batch import Gate, Messages, stated_reason
from hitl_approvals.gate.calls import Call, call_key
from hitl_approvals.models import PendingInterrupt
from hitl_approvals.policies import Verdict
from hitl_approvals.registry import AgentDefinition, Tool
from hitl_approvals.services.requests import Request
from hitl_approvals.services.run import Run


@dataclass(frozen=True, slots=True)
class Asked:
    """A call as another framework's loop hands it over, with a place of its own.

    Such a loop runs a tool's body when it pleases, again at each resume: the call is
    known by where it came from, not by how many were asked for before it.
    """

    id: str
    """The model's id of the call; unique within the reply."""
    name: str
    args: Any
    """The model's own arguments, as an object or JSON text."""
    origin: str
    """Names the reply that held the call, the same in every run of the turn."""
    ordinal: int = 1
    """Which of the calls with this id within the reply."""


class FrameworkGate(Gate):
    """Asks and performs in separate moves: between them the framework keeps its state.

    `offer` says what a person has to decide and writes nothing; once all is decided, in
    a later run, `perform` runs what may run.
    """

    def __init__(self, run: Run, definition: AgentDefinition) -> None:
        super().__init__(run, definition)
        self._places: dict[str, int] = {}

    def line_up(self, asked: Sequence[Asked]) -> None:
        """Give calls their places, in this order, whichever is offered first."""
        for one in asked:
            self._placed(one)

    def offer(
        self,
        asked: Asked,
        *,
        messages: Messages = None,
        reason: str | None = None,
        anyway: str = "",
    ) -> Request | None:
        """Return what a person has to decide before a call may run.

        None if it may run as it stands, cannot run at all, or was asked before.

        Args:
            asked: The call.
            messages: The conversation, shown to the reviewer as far as it fits.
            reason: The agent's stated reason.
            anyway: Why a person has to decide even where the tool's policy lets it run.

        Raises:
            RunDiverged: A recorded call differs from the one that is asked now.
        """
        why = stated_reason(messages) if reason is None else reason

        def work() -> Request | None:
            call = self._attached(asked)
            if anyway and not (call.gated or call.problem or call.step):
                call.verdict = Verdict(gated=True, why=anyway)
                self._judged[call.key] = call.verdict
            if not _is_undecided(call):
                return None
            return self._request(call, messages, why)

        return self._guarded(work)

    def perform(
        self,
        asked: Sequence[Asked],
        *,
        messages: Messages = None,
        reason: str | None = None,
    ) -> list[dict[str, Any]]:
        """Run calls that are free or decided; one message each, in order.

        Raises:
            InterruptSuspended: One has to go to a person again.
            RunDeferred: A call could not be started; the run is to be repeated.
            RunDiverged: Nobody was ever asked about a gated one, or what is recorded differs
                from what is asked now. Nothing ran.
            LeaseLost: The turn is not this run's any more.
        """
        why = stated_reason(messages) if reason is None else reason

        def work() -> list[dict[str, Any]]:
            calls = [self._attached(one) for one in asked]
            for call in calls:
                # Whoever took a decision back wants the call to be asked about again.
                if _is_undecided(call) and call.supersedes is None:
                    raise RunDiverged(
                        f"`{call.name}` was to run and nobody was asked about it; "
                        "nothing ran."
                    )
            return [message for message, _ in self._answer_all(calls, messages, why)]

        return self._guarded(work)

    def value_of(self, tool: Tool[Any, Any], asked: Asked) -> Any:
        """Run a free or decided call of a plain function; return what it returned.

        Raises:
            ApprovalRejected: It did not run; the text says why.
            Exception: The same as `perform`.
        """
        (message,) = self.perform([asked])
        step = self._guarded(lambda: self._attached(asked)).step
        if message["status"] != results.OK or step is None:
            raise ApprovalRejected(tool.name, message["content"])
        return tool.signature.load_result(step.result)

    def row_of(self, asked: Asked) -> PendingInterrupt | None:
        """Return the interrupt of a call, if there is one."""
        return self._guarded(lambda: self._attached(asked).interrupt)

    def offer_question(
        self, key: str, payload: Any, response_schema: Mapping[str, Any] | None
    ) -> Request | None:
        """Return a question to be put to a person; None if it was asked before.

        Raises:
            PayloadRejected: It is not JSON, too large or too deep.
        """
        return self._guarded(
            lambda: questions.offer(self, payload, response_schema, key)
        )

    def answer_to(self, key: str) -> Any:
        """Return the answer to a question that was offered in an earlier run.

        Raises:
            ApprovalRejected: A person refused to answer, or nobody did in time.
            RunDiverged: Nobody was asked.
        """
        return self._guarded(lambda: questions.answer(self, key))

    def _request(self, call: Call, messages: Messages, why: str) -> Request:
        if call.supersedes is not None and messages is None:
            # The framework does not ask again: show what the one before showed.
            rows = {row.pk: row for row in self.run.interrupts.values()}
            before = rows[call.supersedes].context or {}
            messages = before.get("messages")
            why = why or before.get("agent_reason", "")
        return super()._request(call, messages, why)

    def _attached(self, asked: Asked) -> Call:
        call = self._read(asked)
        self._attach(call)
        return call

    def _read(self, raw: Any) -> Call:
        if not isinstance(raw, Asked):
            return super()._read(raw)
        key, place = self._placed(raw)
        return self._call(raw.id, raw.name, raw.args, key=key, place=place)

    def _placed(self, asked: Asked) -> tuple[str, int]:
        key = call_key(self.run, asked.origin, asked.id or asked.name, asked.ordinal)
        return key, self._places.setdefault(key, len(self._places) + 1)


def _is_undecided(call: Call) -> bool:
    return call.gated and call.interrupt is None
