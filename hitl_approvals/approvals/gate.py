"""The gate: policy, decision, application, around a tool of anybody's agent."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import Any

from asgiref.sync import sync_to_async

from hitl_approvals import canonical
from hitl_approvals.approvals import journal
from hitl_approvals.approvals.asking import Asker, Handler
from hitl_approvals.approvals.edits import require_untouched
from hitl_approvals.approvals.outcomes import (
    SUCCEEDED,
    Execution,
    ToolResult,
    failed_result,
    suspended_result,
)
from hitl_approvals.approvals.performing import perform
from hitl_approvals.approvals.runs import (
    CallKey,
    Run,
    current_run,
    input_as_json,
    inside_gated_call,
    is_inside_gated_call,
    running,
)
from hitl_approvals.approvals.steps import Step, Steps, adrive, drive, is_async
from hitl_approvals.approvals.targets import Target
from hitl_approvals.callshape import read_shape
from hitl_approvals.decisions import Decision, Edit, Reject
from hitl_approvals.exceptions import (
    ApprovalRejected,
    HitlConfigurationError,
    InterruptSuspended,
    PayloadRejected,
)
from hitl_approvals.policies import Verdict, evaluate_policy
from hitl_approvals.registry import registry
from hitl_approvals.stores.base import ALLOWED_DECISIONS, InterruptStore
from hitl_approvals.types import CallInfo


@dataclass(frozen=True, slots=True)
class Asked:
    """One call that was read: what it would run, and which call of its run it is."""

    target: Target
    key: CallKey
    args: dict[str, Any]
    """JSON, as the tool reads it."""
    call_id: str
    trip: int
    verdict: Verdict | None
    """None for a call that was decided before: its policy is not asked again."""


class ApprovalGate:
    """Lets a person decide over the tool calls that a policy picks."""

    def __init__(
        self,
        policy: object,
        asker: Asker,
        *,
        name: str,
        tools: Iterable[Any] | None,
    ) -> None:
        self.name = name
        self.policy = policy
        self._asker = asker
        self._wrapped: set[str] = set()
        if tools is not None:
            self._wrapped.update(_name_of(tool) for tool in tools)
            self._refuse_misspelt_names()

    def invoke(self, call: Mapping[str, Any], tool: Any) -> ToolResult:
        """Run one call through the gate.

        Args:
            call: What the model sent: `{"id", "name", "args"}` with arguments as an
                object or as JSON text, or OpenAI's nesting. Only the arguments are
                needed.
            tool: One of our tools, or a function.

        Returns:
            What became of it; a refusal, a suspension and an exception of the tool are
            failed results.

        Raises:
            TypeError: A handler returned no decision, or one that is not offered.
            Exception: Whatever a handler raised: its bug is not an answer.
        """
        run = current_run() or Run()
        asked = self._read(run, call, tool)
        if isinstance(asked, ToolResult):
            return asked
        if not _is_gated(asked) or is_inside_gated_call():
            return drive(self._pass(run, asked))
        with run.gated:
            return drive(self._pass(run, asked))

    async def ainvoke(self, call: Mapping[str, Any], tool: Any) -> ToolResult:
        """Do what `invoke` does; handlers, stores and tools may be async.

        Raises:
            TypeError: A handler returned no decision, or one that is not offered.
            Exception: Whatever a handler raised.
        """
        run = current_run() or Run()
        # A policy is the site's code and may read the database.
        asked = await sync_to_async(self._read)(run, call, tool)
        if isinstance(asked, ToolResult):
            return asked
        if not _is_gated(asked) or is_inside_gated_call():
            return await adrive(self._pass(run, asked))
        async with run.agated():
            return await adrive(self._pass(run, asked))

    def wrap(self, tool: Any) -> Callable[..., Any]:
        """Return the tool as a function that goes through the gate, for any framework.

        The function has the tool's name and signature, and is async if the tool is. It
        returns the tool's value and raises what a failed result carries:
        `ApprovalRejected`, `InterruptSuspended`, or the tool's own exception.
        """
        target = Target.of(tool)
        self._wrapped.add(target.name)

        @wraps(target.function)
        def gated(*args: Any, **options: Any) -> Any:
            call = {"name": target.name, "args": target.named(args, options)}
            return self.invoke(call, tool).unwrap()

        @wraps(target.function)
        async def agated(*args: Any, **options: Any) -> Any:
            call = {"name": target.name, "args": target.named(args, options)}
            return (await self.ainvoke(call, tool)).unwrap()

        return agated if is_async(target.function) else gated

    def execute(
        self,
        agent: Any,
        input: Any,  # noqa: A002
        **execute_options: Any,
    ) -> Execution:
        """Run an agent; a suspension is an outcome, never an exception.

        Args:
            agent: A function of its input, or an object with `execute` or `run`.
            input: What it is asked. A resume asks it again, so it should be JSON.
            **execute_options: Passed to the agent; `thread_id` or `session_id` is noted
                on the requests, too.

        Raises:
            HitlConfigurationError: The policy names a tool that there is not.
            Exception: The bug of a handler, also if the agent swallowed it.
        """
        self._refuse_misspelt_names()
        run = current_run()
        if run is not None:
            # An agent inside another one: what is resumed is the outer one.
            return drive(perform(run, agent, input, execute_options))
        with running(_new_run(agent, input, execute_options)) as run:
            return drive(perform(run, agent, input, execute_options))

    async def aexecute(
        self,
        agent: Any,
        input: Any,  # noqa: A002
        **execute_options: Any,
    ) -> Execution:
        """Do what `execute` does, with an agent that may be async.

        Raises:
            HitlConfigurationError: The policy names a tool that there is not.
            Exception: The bug of a handler, also if the agent swallowed it.
        """
        self._refuse_misspelt_names()
        run = current_run()
        if run is not None:
            return await adrive(perform(run, agent, input, execute_options))
        with running(_new_run(agent, input, execute_options)) as run:
            return await adrive(perform(run, agent, input, execute_options))

    def __repr__(self) -> str:
        return f"<approval gate {self.name}>"

    def _read(self, run: Run, call: Mapping[str, Any], tool: Any) -> Asked | ToolResult:
        """Read a call, and ask the policy about it unless it was decided before."""
        target = Target.of(tool)
        call_id, _name, given = read_shape(call)
        try:
            if isinstance(given, (str, bytes)):
                given = canonical.loads(given or "{}")
            if not isinstance(given, Mapping):
                raise PayloadRejected("The arguments must be an object of names.")
            args = target.read(given)
            digest = canonical.digest(_text_of(given, args))
        except PayloadRejected as error:
            return failed_result(error)
        key, trip = run.number(self.name, target.name, digest)
        verdict = None
        if not run.decided_before(key, args, target.args_schema):
            info = CallInfo(
                tool_name=target.name,
                description=target.description,
                args=target.values(args),
                agent=run.agent,
                turn_id=run.id,
                thread_id=run.thread_id,
                trip=trip,
                tags=target.tags,
            )
            verdict = evaluate_policy(self.policy, info)
        return Asked(target, key, args, call_id, trip, verdict)

    def _pass(self, run: Run, asked: Asked) -> Steps[ToolResult]:
        """Take one call through: what ran before is told, a decision is applied."""
        before = run.journal.get(asked.key)
        if before is not None:
            return journal.replay(before, asked.target)
        if run.bug is not None:
            raise run.bug
        if run.broken is not None:
            return failed_result(run.broken)
        if run.interrupt_id is not None:
            # The run will be made again from its start; it starts nothing more now.
            return suspended_result(run.interrupt_id)
        if not _is_gated(asked):
            return (yield from self._enter(run, asked, asked.args))
        seed = run.take_seed(asked.key, asked.args, asked.target.args_schema)
        if seed is not None:
            decision, interrupt_id = seed.decision, seed.request.interrupt_id
        else:
            answer = yield from self._asker.ask(self._request(run, asked), run)
            if isinstance(answer, ToolResult):
                return answer
            interrupt_id, decision = answer
        return (yield from self._apply(run, asked, interrupt_id, decision))

    def _request(self, run: Run, asked: Asked) -> Any:
        return self._asker.request(run, asked, gate=self.name)

    def _apply(
        self, run: Run, asked: Asked, interrupt_id: str, decision: Decision
    ) -> Steps[ToolResult]:
        """Do what was decided, and put it into the journal of the run."""
        entry = journal.begun(asked.key, interrupt_id, decision)
        run.journal[asked.key] = entry
        args, ran = asked.args, False
        if isinstance(decision, Reject):
            error = ApprovalRejected(asked.target.name, decision.reason)
            result = failed_result(error, interrupt_id)
        else:
            try:
                if isinstance(decision, Edit):
                    args = asked.target.read(decision.args)
                    require_untouched(
                        asked.target.name, asked.target.fixed, asked.args, args
                    )
                ran = True
                with inside_gated_call():
                    result = yield from self._enter(run, asked, args, interrupt_id)
            except PayloadRejected as refusal:
                result = failed_result(refusal, interrupt_id)
        journal.finish(entry, asked.target, result, ran=ran)
        return result

    def _enter(
        self,
        run: Run,
        asked: Asked,
        args: Mapping[str, Any],
        interrupt_id: str | None = None,
    ) -> Steps[ToolResult]:
        """Run the tool's body; what it raises is a failed result."""
        try:
            positional, named = asked.target.prepared(args)
            value = yield Step(asked.target.function, positional, named)
        except InterruptSuspended as suspended:
            # A free tool whose own calls wait: an agent as a tool.
            return suspended_result(run.suspend(str(suspended.interrupt_id)))
        except Exception as error:
            if run.bug is not None:
                raise
            return failed_result(error, interrupt_id)
        return ToolResult(SUCCEEDED, value=value, interrupt_id=interrupt_id)

    def _refuse_misspelt_names(self) -> None:
        """Refuse a policy that names a tool which no one has.

        Raises:
            HitlConfigurationError: It does; a call would slip through unasked.
        """
        if not self._wrapped:
            return
        known = self._wrapped | registry.tools.keys()
        unknown = sorted(set(getattr(self.policy, "tools", ())) - known)
        if unknown:
            raise HitlConfigurationError(
                f"The policy of gate `{self.name}` names {', '.join(unknown)}; the "
                f"tools are {', '.join(sorted(known))}."
            )


def approval(
    policy: object = True,  # noqa: FBT002  a policy may be a boolean
    handler: Handler | None = None,
    store: InterruptStore | None = None,
    name: str = "human-approval",
    *,
    tools: Iterable[Any] | None = None,
    allowed_decisions: Iterable[str] = ALLOWED_DECISIONS,
) -> ApprovalGate:
    """Return a gate for the tools of any agent.

    Args:
        policy: Which calls need a person; by default all.
        handler: Gets an `ApprovalRequest`. It returns a decision (interactive), or
            raises `InterruptSuspended(request.interrupt_id)` (durable). May be async.
        store: Where a request is kept until somebody decides. Without a handler, every
            gated call is kept there and suspends the run.
        name: Tells two gates of one agent apart.
        tools: The tools that the policy may name; a misspelt name is refused at once.
        allowed_decisions: What a person may say.

    Raises:
        TypeError: Neither handler nor store was given, or something is of another kind.
        HitlConfigurationError: An unknown kind of decision, or a misspelt tool.
    """
    if not isinstance(policy, bool) and not callable(policy):
        raise TypeError(
            f"policy= must be a policy or a boolean; got a {type(policy).__name__}."
        )
    asker = Asker(handler, store, tuple(allowed_decisions), gate=name)
    return ApprovalGate(policy, asker, name=name, tools=tools)


def _new_run(agent: Any, given: Any, options: Mapping[str, Any]) -> Run:
    kept, has_input = input_as_json(given)
    thread = options.get("thread_id") or options.get("session_id") or ""
    name = getattr(agent, "name", None) or getattr(agent, "__name__", None)
    return Run(
        agent=str(name or type(agent).__name__),
        thread_id=str(thread),
        input=kept,
        has_input=has_input,
    )


def _is_gated(asked: Asked) -> bool:
    return asked.verdict is None or asked.verdict.gated


def _text_of(given: Mapping[str, Any], read: Mapping[str, Any]) -> str:
    """Return the canonical text of the model's own arguments.

    A call made as a plain function may hold values that are no JSON; then what the
    signature made of them stands for them.
    """
    try:
        return canonical.dumps(dict(given))
    except PayloadRejected:
        return canonical.dumps(dict(read))


def _name_of(tool: Any) -> str:
    return tool if isinstance(tool, str) else Target.of(tool).name
