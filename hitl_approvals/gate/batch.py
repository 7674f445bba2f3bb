"""Gate: a batch of calls of one turn, from asking people to running what they allowed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar

from django.db import Error as DatabaseProblem

from hitl_approvals import canonical, results
from hitl_approvals.callshape import read_shape
from hitl_approvals.enums import (
    InterruptKind,
    OutcomeStatus,
    StepStatus,
    ToolMode,
)
from hitl_approvals.exceptions import (
    ApprovalRejected,
    InterruptSuspended,
    RunDeferred,
    RunDiverged,
    RunError,
)
from hitl_approvals.gate import questions
from hitl_approvals.gate.approved import WorldChanged
from hitl_approvals.gate.calls import (
    Call,
    call_key,
    judge,
    read_args,
    request_for,
)
from hitl_approvals.gate.perform import Open, answer
from hitl_approvals.models import PendingInterrupt
from hitl_approvals.policies import Verdict
from hitl_approvals.registry import (
    AgentDefinition,
    Tool,
    current_gate,
    unregistered,
)
from hitl_approvals.services.effects import StepTaken
from hitl_approvals.services.reopening import Reopening
from hitl_approvals.services.requests import Request, dedupe_key
from hitl_approvals.services.run import Run
from hitl_approvals.services.suspension import Doubt, suspend

Messages = Sequence[Any] | None
T = TypeVar("T")

STOPS = (InterruptSuspended, RunError, StepTaken, DatabaseProblem)
"""What leaves a call without an answer; an agent that goes on must not be believed."""


@dataclass(slots=True)
class _Unanswered:
    """What is open at the end of a batch."""

    doubts: list[Doubt] = field(default_factory=list)
    lapsed: list[PendingInterrupt] = field(default_factory=list)
    reopened: list[Reopening] = field(default_factory=list)
    later: str = ""
    """Why a call has to wait for the next run, if one has to."""
    not_before: datetime | None = None
    """When that call can be asked about."""

    def put_off(self, call: Call) -> None:
        """Note that a call is left for the next run."""
        step = call.step
        started = step is not None and step.status == StepStatus.STARTED
        what = "has no result yet" if started else "could not be started yet"
        error = "" if step is None else step.error
        self.later = f"`{call.name}` {what}. {error}".strip()
        if step is None or not started or step.mode != ToolMode.LOOKUP:
            return
        due = step.hard_deadline
        if due is not None and (self.not_before is None or due > self.not_before):
            self.not_before = due


class Gate:
    """The gate of one run: it knows the journal, the tools and what was asked so far."""

    def __init__(self, run: Run, definition: AgentDefinition) -> None:
        self.run = run
        self.tools: Mapping[str, Tool[Any, Any]] = definition.tools
        self.trip = 0
        self.stopped: Exception | None = None
        """Set once the run has to end, so that an agent cannot swallow the reason."""
        self._seen: Counter[tuple[str, ...]] = Counter()
        self._origin: dict[str, str] = {}
        self._judged: dict[str, Verdict] = {}

    def note_reply(self, step_key: str, reply: Any) -> None:
        """Remember from which recorded reply the calls with these ids came."""
        calls = reply.get("tool_calls") if isinstance(reply, Mapping) else None
        for raw in calls if isinstance(calls, Iterable) else ():
            call_id, _name, _args = read_shape(raw)
            if call_id:
                self._origin[call_id] = step_key

    def call_tools(
        self, raw_calls: Sequence[Any], *, messages: Messages, reason: str | None
    ) -> list[dict[str, Any]]:
        """Return one message a call, in the model's order.

        Free calls run first; then all undecided gated ones suspend together; no gated
        call runs before all are decided.

        Raises:
            InterruptSuspended: Something waits for a person.
            RunDeferred: A call could not be started; the run is to be repeated.
            RunDiverged: A recorded call differs from the one that is asked now.
            LeaseLost: The turn is not this run's any more.
        """
        return self._guarded(lambda: self._batch(raw_calls, messages, reason))

    def call_function(self, tool: Tool[Any, Any], args: dict[str, Any]) -> Any:
        """Run a tool that was called as a plain function inside this turn.

        Raises:
            ApprovalRejected: It did not run; the text says why.
        """
        read = tool.signature.dump_args(tool.signature.coerce(args))
        raw = {"name": tool.name, "args": read}
        if tool.name not in self.tools:
            self.tools = {**self.tools, tool.name: tool}
        message, found = self._guarded(lambda: self._one(raw))
        if message["status"] != results.OK or found.step is None:
            raise ApprovalRejected(tool.name, message["content"])
        return tool.signature.load_result(found.step.result)

    def once(self, key: str, fn: Callable[[], Any]) -> Any:
        """Run `fn` at most once in the life of the turn; return its recorded result.

        Raises:
            InterruptSuspended: Whether it happened is not known; a person is asked.
            ApprovalRejected: It failed cleanly, or nobody could find out.
        """
        message, call = self._guarded(lambda: self._once(key, fn))
        if message["status"] != results.OK or call.step is None:
            raise ApprovalRejected(call.name, message["content"])
        return call.step.result

    def _once(self, key: str, fn: Callable[[], Any]) -> tuple[dict[str, Any], Call]:
        tool = unregistered(fn, name=f"once:{key}"[:128])
        call_key = self.run.key("once", key)
        call = Call(
            id="",
            name=tool.name,
            key=call_key,
            dedupe_key=self._dedupe_key(call_key),
            tool=tool,
            position=self.ordinal("once"),
        )
        read_args(call, {})
        return self._answer_all([call], None, "")[0]

    def ask(
        self,
        payload: Any,
        *,
        response_schema: Mapping[str, Any] | None,
        key: str | None,
    ) -> Any:
        """Return a person's answer to a question, suspending until there is one.

        Raises:
            InterruptSuspended: Nobody has answered yet.
            ApprovalRejected: The question was refused or nobody answered in time.
            RunDiverged: The question of this ordinal was another one before.
        PayloadRejected: The question or its schema is not JSON, too large or too deep.
        """
        return self._guarded(lambda: questions.ask(self, payload, response_schema, key))

    def _guarded(self, work: Callable[[], T]) -> T:
        if self.stopped is not None:
            raise self.stopped
        token = current_gate.set(None)
        try:
            return work()
        except STOPS as stop:
            self.stopped = stop
            raise
        finally:
            current_gate.reset(token)

    def _batch(
        self, raw_calls: Sequence[Any], messages: Messages, reason: str | None
    ) -> list[dict[str, Any]]:
        return [message for message, _ in self._answers(raw_calls, messages, reason)]

    def _one(self, raw: Any) -> tuple[dict[str, Any], Call]:
        return self._answers([raw], None, None)[0]

    def _answers(
        self, raw_calls: Sequence[Any], messages: Messages, reason: str | None
    ) -> list[tuple[dict[str, Any], Call]]:
        calls = [self._read(raw) for raw in raw_calls]
        why = stated_reason(messages) if reason is None else reason
        return self._answer_all(calls, messages, why)

    def _answer_all(
        self, calls: Sequence[Call], messages: Messages, why: str
    ) -> list[tuple[dict[str, Any], Call]]:
        told: dict[str, dict[str, Any]] = {}

        def ask_for(call: Call) -> Request:
            return self._request(call, messages, why)

        while True:
            for call in calls:
                self._attach(call)
            open_ = _Unanswered()
            self._run_free(calls, told, open_, ask_for)
            new = [call for call in calls if call.gated and call.interrupt is None]
            if new:
                requests = [ask_for(call) for call in new]
                self.stop(suspend(self.run, requests=requests, doubts=open_.doubts))
            self._run_gated(calls, told, open_, ask_for)
            if open_.doubts or open_.lapsed or open_.reopened:
                self.stop(
                    suspend(
                        self.run,
                        doubts=open_.doubts,
                        lapsed=open_.lapsed,
                        reopened=open_.reopened,
                    )
                )
                # Somebody recorded what looked open: go on from the rows as they are.
                continue
            if open_.later:
                raise RunDeferred(open_.later, not_before=open_.not_before)
            self.trip += 1
            return [(told[call.key], call) for call in calls]

    def _request(self, call: Call, messages: Messages, why: str) -> Request:
        return request_for(
            self.run,
            call,
            position=call.position,
            trip=self.trip,
            messages=messages,
            reason=why,
        )

    def _run_free(self, calls: Sequence[Call], *rest: Any) -> None:
        for call in calls:
            if not call.gated:
                self._run(call, *rest)

    def _run_gated(self, calls: Sequence[Call], *rest: Any) -> None:
        for call in calls:
            if call.gated:
                self._run(call, *rest)

    def _run(
        self,
        call: Call,
        told: dict[str, dict[str, Any]],
        open_: _Unanswered,
        ask_for: Callable[[Call], Request],
    ) -> None:
        """Answer one call, or note why it has no answer yet."""
        if call.key in told:
            return
        try:
            outcome = self._answer(call)
        except WorldChanged as changed:
            if call.interrupt is None:
                text = results.world_changed(str(changed))
                told[call.key] = results.message(
                    call.id, call.name, text, results.ERROR
                )
                return
            reopening = Reopening(call.interrupt, str(changed), ask_for(call))
            open_.reopened.append(reopening)
            return
        if not isinstance(outcome, Open):
            told[call.key] = outcome
        elif outcome is Open.LAPSED and call.interrupt is not None:
            open_.lapsed.append(call.interrupt)
        elif outcome is Open.DOUBT and call.step is not None:
            if call.interrupt is None and call.tool is None:
                raise RunDiverged(
                    f"Whether `{call.name}` happened is not known, and it is not among "
                    "this agent's tools now."
                )
            request = ask_for(call) if call.interrupt is None else None
            open_.doubts.append(Doubt(call.step, call.interrupt, request))
        else:
            open_.put_off(call)

    def stop(self, waiting: Sequence[Any]) -> None:
        """End the run here, unless nothing turned out to wait."""
        if waiting:
            raise InterruptSuspended(waiting[0])

    def _answer(self, call: Call) -> dict[str, Any] | Open:
        if call.problem and call.interrupt is None and call.step is None:
            return results.message(call.id, call.name, call.problem, results.ERROR)
        outcome = answer(self.run, call)
        call.step = self._step_of(call) or call.step
        return outcome

    def _read(self, raw: Any) -> Call:
        call_id, name, args = read_shape(raw)
        origin = self._origin.get(call_id, "-") if call_id else "-"
        label = call_id or name
        key = call_key(self.run, origin, label, self.ordinal(origin, label))
        place = sum(self._seen.values())
        return self._call(call_id, name, args, key=key, place=place)

    def _call(
        self, call_id: str, name: str, args: Any, *, key: str, place: int
    ) -> Call:
        call = Call(
            id=call_id,
            name=name,
            key=key,
            dedupe_key=self._dedupe_key(key),
            tool=self.tools.get(name),
            position=place,
        )
        read_args(call, args)
        return call

    def _dedupe_key(self, key: str) -> str:
        return dedupe_key(self.run.turn.pk, InterruptKind.TOOL_CALL, key)

    def _pass_over_superseded(self, call: Call) -> None:
        """Give the call the key after those in whose place a person wanted another."""
        row = self.run.interrupts.get(call.dedupe_key)
        while row is not None and row.outcome_status == OutcomeStatus.SUPERSEDED:
            call.supersedes = row.pk
            call.key = canonical.key_digest("again", call.key)
            call.dedupe_key = self._dedupe_key(call.key)
            row = self.run.interrupts.get(call.dedupe_key)

    def ordinal(self, *what: str) -> int:
        """Return how many of this kind were asked for so far, this one included."""
        self._seen[what] += 1
        return self._seen[what]

    def _step_of(self, call: Call) -> Any:
        generation = 1 if call.interrupt is None else call.interrupt.generation
        step = self.run.steps.get((call.key, generation))
        if step is None:
            waiting = [s for s in self.run.buffer if s.key == call.key]
            step = waiting[-1] if waiting else None
        return step

    def _attach(self, call: Call) -> None:
        """Find what is on record under the call's key, and compare it.

        Raises:
            RunDiverged: The same key stands for another tool or other arguments.
        """
        self._pass_over_superseded(call)
        call.interrupt = self.run.interrupts.get(call.dedupe_key)
        call.step = self._step_of(call)
        if call.interrupt is not None:
            row = call.interrupt
            _compare(call, row.tool_name, row.requested_digest)
            return
        if call.step is not None:
            _compare(call, call.step.name, call.step.args_digest)
            return
        if call.tool is None and not call.problem:
            call.problem = results.unknown_tool(call.name, list(self.tools))
        if not call.problem and call.verdict is None:
            # Evaluated once; what it said is frozen on the row from here on.
            if call.key not in self._judged:
                self._judged[call.key] = judge(self.run, call, trip=self.trip)
            call.verdict = self._judged[call.key]


def _compare(call: Call, name: str, requested_digest: str) -> None:
    if (call.name, call.requested_digest) == (name, requested_digest):
        return
    raise RunDiverged(
        f"On record under this call's id is `{name}` ({requested_digest[:19]}…); the agent "
        f"asks now for `{call.name}` ({call.requested_digest[:19] or 'unreadable'}…). "
        "Nothing ran and the decision was kept."
    )


def stated_reason(messages: Messages) -> str:
    """Return the text of the reply that the calls came with: the agent's own claim."""
    last = messages[-1] if messages else None
    content = last.get("content") if isinstance(last, Mapping) else None
    return content if isinstance(content, str) else ""
