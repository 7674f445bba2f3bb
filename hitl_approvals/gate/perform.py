"""One call, decided or free, run under the ledger. The only place that calls a tool."""

from __future__ import annotations

import time
from datetime import datetime
from enum import Enum
from typing import Any

from hitl_approvals import canonical, failpoints, results
from hitl_approvals.awaiting import awaited
from hitl_approvals.conf import hitl_settings
from hitl_approvals.enums import (
    DecisionType,
    InterruptStatus,
    OutcomeStatus,
    StepKind,
    StepStatus,
    ToolMode,
)
from hitl_approvals.exceptions import (
    InterruptSuspended,
    LeaseLost,
    RunDiverged,
    RunError,
    ToolNotStarted,
)
from hitl_approvals.gate.approved import (
    WorldChanged,
    approved_values,
    may_run,
    require_precondition,
)
from hitl_approvals.gate.calls import Call
from hitl_approvals.gate.written import (
    dumped,
    dumped_after,
    for_model,
    for_operator,
)
from hitl_approvals.models import PendingInterrupt, TurnStep
from hitl_approvals.registry import Tool
from hitl_approvals.services import effects, transactional
from hitl_approvals.services.run import Run
from hitl_approvals.underway import Underway, inside

NOT_RUN = (ToolNotStarted, ConnectionRefusedError)
"""The call certainly never left this process."""


class Open(Enum):
    """Why a call has no answer yet at the end of its batch."""

    DOUBT = "doubt"
    LAPSED = "lapsed"
    LATER = "later"


def answer(run: Run, call: Call) -> dict[str, Any] | Open:
    """Return the message for a call, running it now if it may and must.

    Raises:
        LeaseLost: The turn is not this run's any more.
        RunDiverged: What is frozen cannot be run as it stands.
    """
    row = call.interrupt
    if row is not None:
        refusal = _refusal(run, call, row)
        if refusal is not None:
            return refusal
    step = call.step
    if step is None or step.status == StepStatus.NOT_STARTED:
        return _begin(run, call, step)
    if step.status == StepStatus.SUCCEEDED:
        if row is not None and row.status == InterruptStatus.DECIDED:
            run.resolve_later(row, OutcomeStatus.SUCCEEDED, may_run(call), step.result)
        return _told(call, step)
    if step.status == StepStatus.FAILED:
        if row is not None and row.status == InterruptStatus.DECIDED:
            run.resolve_later(row, OutcomeStatus.FAILED, may_run(call), step.result)
        return _told(call, step)
    if step.status == StepStatus.STARTED:
        return _found_started(run, call, step)
    return _say(call, results.given_up(), results.UNKNOWN)


def _say(call: Call, content: str, status: str) -> dict[str, Any]:
    return results.message(call.id, call.name, content, status)


def _refusal(run: Run, call: Call, row: PendingInterrupt) -> dict[str, Any] | None:
    """Return the message for a call that will not run, or None if it may."""
    if row.status == InterruptStatus.CANCELLED:
        if row.outcome_status == OutcomeStatus.GIVEN_UP:
            return _say(call, results.given_up(), results.UNKNOWN)
        return _say(call, results.withdrawn(), results.REJECTED)
    if row.decision == DecisionType.REJECT:
        if row.status == InterruptStatus.DECIDED:
            run.resolve_later(row, OutcomeStatus.REFUSED)
        return _say(call, results.rejected(row.reason), results.REJECTED)
    if row.decision == DecisionType.EXPIRE:
        if row.status == InterruptStatus.DECIDED:
            run.resolve_later(row, OutcomeStatus.EXPIRED)
        return _say(call, results.expired(), results.EXPIRED)
    return None


def _told(call: Call, step: TurnStep) -> dict[str, Any]:
    """Build the message of a recorded call; a replay builds the very same."""
    if step.status == StepStatus.FAILED:
        text = (step.result or {}).get("text", "")
        return _say(call, results.failed(text), results.ERROR)
    content = results.readable(step.result)
    row = call.interrupt
    if row is not None and row.decision == DecisionType.EDIT:
        content = results.edited(
            canonical.stored(row.args_text),  # type: ignore[arg-type]
            canonical.stored(row.decision_args_text),  # type: ignore[arg-type]
            result=content,
            reason=row.reason,
        )
    return _say(call, content, results.OK)


def _begin(run: Run, call: Call, step: TurnStep | None) -> dict[str, Any] | Open:
    tool = call.tool
    if tool is None:
        raise RunDiverged(
            f"`{call.name}` was asked for, and is not among this agent's tools now."
        )
    run.check_lease()
    values = approved_values(call, tool)
    if tool.effect != ToolMode.TRANSACTIONAL:
        require_precondition(tool, values)
    if tool.effect == ToolMode.NONE:
        if call.interrupt is not None and effects.has_lapsed(call.interrupt):
            # Nothing is written before a reading call, so no statement would ask.
            return Open.LAPSED
        return _read_only(run, call, tool, values)
    if step is None:
        step = effects.new_step(
            run,
            key=call.key,
            name=call.name,
            args_text=call.args_text,
            args_digest=call.requested_digest,
            mode=tool.effect,
            interrupt=call.interrupt,
        )
        step.idempotency_key = canonical.key_digest(
            str(run.turn.pk), call.key, step.generation
        )
    try:
        if tool.effect == ToolMode.TRANSACTIONAL:
            return _transactional(run, call, tool, step)
        return _effectful(run, call, tool, values, step)
    except effects.ApprovalLapsed:
        return Open.LAPSED


def _read_only(
    run: Run, call: Call, tool: Tool[Any, Any], values: dict[str, Any]
) -> dict[str, Any]:
    try:
        result = dumped(tool, _called(tool, values, None))
    except tool.clean_errors as error:
        status, outcome = StepStatus.FAILED, OutcomeStatus.FAILED
        result = {"text": str(error)}
    else:
        status, outcome = StepStatus.SUCCEEDED, OutcomeStatus.SUCCEEDED
    step = run.journal(
        call.key,
        StepKind.TOOL,
        call.name,
        args_digest=call.requested_digest,
        mode=ToolMode.NONE,
        status=status,
        result=result,
        interrupt=call.interrupt,
        generation=1 if call.interrupt is None else call.interrupt.generation,
    )
    if call.interrupt is not None:
        run.resolve_later(call.interrupt, outcome, may_run(call), result)
    return _told(call, step)


def _transactional(
    run: Run,
    call: Call,
    tool: Tool[Any, Any],
    step: TurnStep,
) -> dict[str, Any] | Open:
    def body() -> Any:
        # Inside the transaction: what it read still holds when the effect commits.
        require_precondition(tool, approved_values(call, tool))
        # Anew: a body that runs again may have changed what it was given before.
        return dumped(tool, _called(tool, approved_values(call, tool), step))

    try:
        transactional.run_body(run, step, body, digest_run=may_run(call))
    except transactional.BodyFailed as failure:
        error = failure.error
        if isinstance(error, WorldChanged):
            raise error from None
        if isinstance(error, NOT_RUN):
            # Rolled back and not on record: the same call begins anew in the next run.
            step.error = for_operator(error)
            call.step = step
            return Open.LATER
        effects.record_clean_failure(
            run,
            step,
            error=for_operator(error),
            text=for_model(error, tool),
            digest_run=may_run(call),
        )
    return _told(call, step)


def _effectful(
    run: Run,
    call: Call,
    tool: Tool[Any, Any],
    values: dict[str, Any],
    step: TurnStep,
) -> dict[str, Any] | Open:
    timeout = tool.timeout or hitl_settings.timeout
    # An earlier attempt may have landed: whatever becomes of this one, the call as a
    # whole can no longer be said not to have started.
    tried_before = step.status == StepStatus.STARTED and step.fence != run.fence
    gate_passed = time.monotonic()
    effects.start(run, step, timeout=timeout)
    if time.monotonic() - gate_passed > timeout.total_seconds():
        # This process slept so long that others may think the call is over.
        if not tried_before:
            effects.not_started(run, step, "The process was paused before the call.")
        return Open.LATER
    deadline = run.clock.now() + timeout
    try:
        value = _called(tool, values, step, deadline)
        failpoints.reach("tool.after_call")
    except tool.clean_errors as error:
        return _recorded(
            run,
            call,
            step,
            StepStatus.FAILED,
            OutcomeStatus.FAILED,
            {"text": str(error)},
            for_operator(error),
        )
    except NOT_RUN as error:
        if tried_before:
            step.error = for_operator(error)
        else:
            effects.not_started(run, step, for_operator(error))
        return Open.LATER
    except (InterruptSuspended, RunError):
        raise
    except Exception as error:  # noqa: BLE001  its fate is unknown: a person is asked
        step.error = for_operator(error)
        return Open.DOUBT if tool.effect == ToolMode.UNSAFE else Open.LATER
    return _recorded(
        run,
        call,
        step,
        StepStatus.SUCCEEDED,
        OutcomeStatus.SUCCEEDED,
        dumped_after(tool, value),
    )


def _recorded(
    run: Run,
    call: Call,
    step: TurnStep,
    status: StepStatus,
    outcome: OutcomeStatus,
    result: Any,
    error: str = "",
) -> dict[str, Any]:
    recorded = effects.record(
        run,
        step,
        status=status,
        outcome=outcome,
        digest_run=may_run(call),
        result=result,
        error=error,
    )
    if not recorded:
        raise LeaseLost
    return _told(call, step)


def _found_started(run: Run, call: Call, step: TurnStep) -> dict[str, Any] | Open:
    """Deal with a call that a predecessor began and did not record."""
    tool = call.tool
    if tool is None or step.mode == ToolMode.UNSAFE:
        return Open.DOUBT
    if step.mode == ToolMode.IDEMPOTENT and tool.retention is not None:
        if run.clock.now() - step.started_at < tool.retention:
            try:
                values = approved_values(call, tool)
            except WorldChanged:
                # Begun, so it cannot go back to a person as if it had not been.
                return Open.DOUBT
            return _effectful(run, call, tool, values, step)
        return Open.DOUBT
    if step.mode == ToolMode.LOOKUP and tool.lookup is not None:
        return _looked_up(run, call, tool, step)
    return Open.DOUBT


def _looked_up(
    run: Run, call: Call, tool: Tool[Any, Any], step: TurnStep
) -> dict[str, Any] | Open:
    """Ask the other side, once nobody can be in the call any more."""
    if step.hard_deadline is not None and run.clock.now() < step.hard_deadline:
        return Open.LATER
    assert tool.lookup is not None  # noqa: S101  checked at registration
    try:
        found = awaited(tool.lookup, step.idempotency_key)
    except Exception as error:  # noqa: BLE001  the other side is away: ask again later
        step.error = for_operator(error)
        return Open.LATER
    state, value = found if isinstance(found, tuple) else (found, None)
    if state == "done":
        effects.adopt(run, step)
        return _recorded(
            run,
            call,
            step,
            StepStatus.SUCCEEDED,
            OutcomeStatus.SUCCEEDED,
            dumped_after(tool, value),
        )
    if state == "absent":
        effects.adopt(run, step)
        effects.not_started(run, step, "The other side has no such call.")
        return _begin(run, call, step)
    return Open.DOUBT


def _called(
    tool: Tool[Any, Any],
    values: dict[str, Any],
    step: TurnStep | None,
    deadline: datetime | None = None,
) -> Any:
    underway = Underway(
        idempotency_key=(step.idempotency_key or "") if step is not None else "",
        deadline=deadline,
        interrupt_id=str(step.interrupt_id or "") if step is not None else "",
    )
    with inside(underway):
        return awaited(tool.function, **values)
