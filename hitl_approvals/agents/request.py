"""The built-in agent whose turn is one call that code asked for, without an agent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from hitl_approvals import canonical
from hitl_approvals.agents.base import Completed, Suspended
from hitl_approvals.agents.guarding import guarded
from hitl_approvals.agents.turn import Turn
from hitl_approvals.conf import hitl_settings
from hitl_approvals.enums import Door
from hitl_approvals.exceptions import (
    InterruptSuspended,
    PayloadRejected,
    RunDiverged,
    UnsafeContext,
)
from hitl_approvals.gate.calls import Call, call_key, judge, read_args, request_for
from hitl_approvals.models import AgentTurn, PendingInterrupt
from hitl_approvals.registry import AgentDefinition, Tool, current_gate, registry
from hitl_approvals.services import requesting, starting
from hitl_approvals.services.requests import Request
from hitl_approvals.services.run import Run
from hitl_approvals.types import Person

KIND = "request"


class RequestAgent:
    """Runs the one call of a turn through the gate, like that of any other agent."""

    def __init__(self, definition: AgentDefinition) -> None:
        self._definition = definition

    def start(self, run: Run, input: Any) -> Completed | Suspended:  # noqa: A002
        """Perform a turn from its beginning."""
        return self._perform(run)

    def resume(
        self, run: Run, state: Any, decisions: Sequence[PendingInterrupt]
    ) -> Completed | Suspended:
        """Go on with a call that was decided."""
        return self._perform(run)

    def _perform(self, run: Run) -> Completed | Suspended:
        name, args = _wanted(run.turn)
        tool = registry.tools.get(name)
        if tool is None:
            raise LookupError(f"No tool is called {name!r} in this process.")
        turn = Turn(run, replace(self._definition, tools={name: tool}))
        calls = [{"name": name, "args": args}]
        try:
            return Completed(guarded(turn, lambda: turn.call_tools(calls)[0]))
        except InterruptSuspended:
            return Suspended()


def _wanted(turn: AgentTurn) -> tuple[str, Any]:
    """Return the tool and the arguments that were asked for.

    Raises:
        RunDiverged: They are not there any more.
    """
    options = turn.execute_options
    if not isinstance(options, dict) or not {"tool", "args"} <= set(options):
        raise RunDiverged(
            "The options of this turn are not the call that was asked for; nothing ran."
        )
    return str(options["tool"]), options["args"]


def requested(turn: Turn, given: Any) -> Any:
    """Stand for the built-in agent in the registry; `RequestAgent` runs its turns."""
    raise NotImplementedError


DEFINITION = AgentDefinition(name="hitl.request", target=requested, kind=KIND)
"""Every process has it, so every worker that knows the tool may run the call."""


def make(definition: AgentDefinition) -> RequestAgent:
    """Return the agent that runs calls without an agent."""
    return RequestAgent(definition)


def request_call(
    tool: Tool[Any, Any],
    args: Mapping[str, Any],
    *,
    key: str | None = None,
    requested_by: Person | None = None,
    reason: str = "",
    thread_id: str | None = None,
    expires_in: timedelta | None = None,
    via: str = Door.PYTHON,
) -> AgentTurn:
    """Ask for one call of a tool, without an agent: approve, and a worker runs it.

    Joins the caller's transaction. The turn's output is the message that a model would
    get of the call.

    Args:
        tool: What to run.
        args: With which arguments, as Python values or JSON.
        key: Idempotency key: a second request with it finds the first one's turn.
        requested_by: On whose behalf; that person may not decide.
        reason: Why, for the reviewer.
        thread_id: The conversation; None makes the turn its own.
        expires_in: Time to decide; else the tool's, else the site's.
        via: The door, for the audit trail.

    Returns:
        The turn: `suspended` with the call as its interrupt, or `ready` if the tool's
        policy lets it run without a person.

    Raises:
        KeyReused: The key stands for another request.
        PayloadRejected: The arguments do not fit; nothing was stored.
        ThreadBusy: `THREAD_POLICY` is `refuse` and the thread has an open turn.
        UnsafeContext: Inside a turn and without a key: its replay would ask again.
    """
    if key is None and current_gate.get() is not None:
        raise UnsafeContext(
            f"`{tool.name}` was requested inside a turn, which is replayed and would ask "
            "again. Call the tool itself, or pass key= to request_call."
        )
    limits = {
        "max_bytes": hitl_settings.max_payload_bytes,
        "max_depth": hitl_settings.max_depth,
    }
    read = tool.signature.dump_args(tool.signature.coerce(args))
    options = {"tool": tool.name, "args": read}
    label = "" if requested_by is None else requested_by.get_username()
    wait = None if expires_in is None else expires_in.total_seconds()
    asked = canonical.dumps([options, reason, thread_id, wait, label], **limits)
    turn = AgentTurn(
        agent=DEFINITION.name,
        agent_version=DEFINITION.version,
        input=reason or f"Run `{tool.name}`.",
        execute_options=options,
        start_key=None if key is None else canonical.key_digest("request", key),
        start_digest=canonical.digest(asked),
        max_attempts=hitl_settings.max_attempts,
        requested_by_id=None if requested_by is None else requested_by.pk,
        requested_by_label=label[:255],
    )
    found = starting.started_with(turn.start_key, turn.start_digest)
    if found is not None:
        return found
    # The thread is entered with the row; a policy is told of it before.
    turn.thread_id = thread_id or str(turn.pk)
    run = requesting.unwritten(turn)
    request = _judged(run, tool, read)
    if request is not None and expires_in is not None:
        request.expires_in = expires_in
    return requesting.begin(run, request, thread_id=thread_id, by=requested_by, via=via)


def _judged(run: Run, tool: Tool[Any, Any], args: Any) -> Request | None:
    """Return the call as its interrupt will show it; None if it may run without one.

    Raises:
        PayloadRejected: The arguments do not fit.
    """
    call = Call(
        id="",
        name=tool.name,
        key=call_key(run, "-", tool.name, 1),
        dedupe_key="",
        position=1,
        tool=tool,
    )
    read_args(call, args)
    if call.problem:
        raise PayloadRejected(call.problem)
    call.verdict = judge(run, call, trip=0)
    if not call.verdict.gated:
        return None
    return request_for(
        run, call, position=call.position, trip=0, messages=None, reason=""
    )
