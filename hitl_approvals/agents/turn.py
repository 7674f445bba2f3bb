"""Turn: what an agent function is handed. Importable before the apps are ready."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from pydantic import TypeAdapter

from hitl_approvals import failpoints
from hitl_approvals.agents.recording import copied, plain
from hitl_approvals.awaiting import awaited
from hitl_approvals.enums import StepKind
from hitl_approvals.registry import AgentDefinition, Tool
from hitl_approvals.underway import current_call

if TYPE_CHECKING:
    from hitl_approvals.gate import Gate
    from hitl_approvals.services.run import Run

STEP_HINT = "Return JSON, or pass result_type=."


class Turn:
    """What an agent function is handed: recorded steps, gated tools, questions.

    The function runs from its top on every resume. Whatever it does through this object
    is recorded once and replayed; whatever it does beside it is done again.
    """

    def __init__(self, run: Run, definition: AgentDefinition) -> None:
        self._run = run
        self._gate = self._make_gate(run, definition)
        self._ordinals: Counter[str] = Counter()

    @staticmethod
    def _make_gate(run: Run, definition: AgentDefinition) -> Gate:
        # Loaded only now: a turn's class is importable before the apps are ready.
        from hitl_approvals.gate import Gate

        return Gate(run, definition)

    @property
    def id(self) -> UUID:
        """Primary key of the turn."""
        return self._run.turn.pk

    @property
    def thread_id(self) -> str:
        """The conversation that the turn belongs to."""
        return self._run.turn.thread_id

    @property
    def execute_options(self) -> Any:
        """What `start_turn(execute_options=...)` was given."""
        return self._run.turn.execute_options

    @property
    def deadline(self) -> datetime | None:
        """Inside a tool: when its call must be over. None elsewhere."""
        underway = current_call()
        return None if underway is None else underway.deadline

    def step(
        self,
        name: str,
        fn: Callable[..., Any],
        /,
        *args: Any,
        result_type: Any = None,
        **kwargs: Any,
    ) -> Any:
        """Run `fn` once in the life of this turn and return its recorded result.

        Args:
            name: Label in the journal; the n-th step of a name is one step.
            fn: What to run when nothing is recorded. It has no effect on the world.
            *args: Passed to `fn`.
            result_type: A type that pydantic can read the recorded JSON into.
            **kwargs: Passed to `fn`.

        Raises:
            PayloadRejected: The result is not JSON and no `result_type` makes it so.
            LeaseLost: The turn is not this run's any more.
        """
        if self._gate.stopped is not None:
            raise self._gate.stopped
        self._ordinals[name] += 1
        key = self._run.key("step", name, self._ordinals[name])
        adapter = None if result_type is None else TypeAdapter(result_type)
        recorded = self._run.steps.get((key, 1))
        if recorded is None:
            self._run.check_lease()
            value = awaited(fn, *args, **kwargs)
            failpoints.reach("model.after_reply")
            if adapter is not None:
                value = adapter.dump_python(value, mode="json")
            recorded = self._run.journal(
                key,
                StepKind.MODEL,
                name,
                result=plain(value, f"Step `{name}`", STEP_HINT),
            )
        self._gate.note_reply(key, recorded.result)
        if adapter is not None:
            return adapter.validate_python(recorded.result)
        return copied(recorded.result)

    def once(self, key: str, fn: Callable[[], Any]) -> Any:
        """Have an effect at most once in the life of this turn; return its result.

        For effects outside of tools. Like a tool that nobody has to approve: it is on
        record before it begins, and after a crash in it a person is asked what happened.

        Args:
            key: Name of the effect within this turn.
            fn: What to do; returns JSON.

        Raises:
            InterruptSuspended: Whether it happened is not known. Let it pass.
            ApprovalRejected: It failed with nothing done, or nobody could find out.
        """
        return self._gate.once(key, fn)

    def call_tools(
        self,
        calls: Sequence[Any],
        *,
        messages: Sequence[Any] | None = None,
        reason: str | None = None,
    ) -> list[dict[str, Any]]:
        """Run a model's tool calls through the gate; one message each, in order.

        Args:
            calls: `{"id", "name", "args"}` with arguments as a dict or JSON text, or
                OpenAI's nesting.
            messages: The conversation, shown to the reviewer as far as it fits.
            reason: The agent's stated reason; by default the text of the last message.

        Returns:
            `{"role": "tool", "tool_call_id", "name", "content", "status"}` a call;
            status is one of ok, error, rejected, expired, unknown.

        Raises:
            InterruptSuspended: A person has to decide. Let it pass.
        """
        return self._gate.call_tools(list(calls), messages=messages, reason=reason)

    def call_tool(
        self,
        tool: Tool[Any, Any] | str,
        args: Mapping[str, Any] | str,
        *,
        id: str | None = None,  # noqa: A002  the word of every model API
        messages: Sequence[Any] | None = None,
        reason: str | None = None,
    ) -> dict[str, Any]:
        """Run one tool call through the gate and return its message.

        Raises:
            InterruptSuspended: A person has to decide. Let it pass.
        """
        name = tool if isinstance(tool, str) else tool.name
        call = {"id": id, "name": name, "args": args}
        return self.call_tools([call], messages=messages, reason=reason)[0]

    def interrupt(
        self,
        payload: Any,
        *,
        response_schema: Mapping[str, Any] | None = None,
        key: str | None = None,
    ) -> Any:
        """Ask a person a question and return the answer.

        Args:
            payload: The question, as JSON.
            response_schema: JSON schema that the answer has to fit.
            key: Name of the question within this turn; without it the order counts.

        Raises:
            InterruptSuspended: Nobody has answered yet. Let it pass.
            ApprovalRejected: A person refused to answer, or nobody did in time.
        """
        return self._gate.ask(payload, response_schema=response_schema, key=key)
