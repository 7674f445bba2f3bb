"""Resuming over a store: claim the interrupt, run the agent again with the decision.

The order is the point: everything that can be refused is refused before the claim, and
nothing is forgotten before it was used.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from hitl_approvals import canonical
from hitl_approvals.approvals.edits import require_untouched
from hitl_approvals.approvals.outcomes import FAILED, SUCCEEDED, Execution
from hitl_approvals.approvals.performing import perform, step_of
from hitl_approvals.approvals.runs import (
    Run,
    Seed,
    input_as_json,
    journal_of,
    running,
)
from hitl_approvals.approvals.steps import Step, Steps, of_store
from hitl_approvals.decisions import (
    Decision,
    Edit,
    Reject,
    decision_body,
    parse_decision,
)
from hitl_approvals.exceptions import (
    DecisionNotAllowed,
    InterruptNotFound,
    PayloadRejected,
    TransitionNotAllowed,
)
from hitl_approvals.schemas import validate_against
from hitl_approvals.stores.base import (
    DECIDED,
    TAKEN,
    ApprovalRequest,
    InterruptRecord,
    InterruptStore,
    RecordingStore,
    ReleasingStore,
    implements,
)
from hitl_approvals.types import AlreadyResolved, Applied, Person

logger = logging.getLogger("hitl_approvals")

COMPLETED, SUSPENDED, CLAIMED = "completed", "suspended", "claimed"
"""Values of `Applied.status` over a store, beside `failed`."""


@dataclass(frozen=True, slots=True)
class Claim:
    """An interrupt in the hands of this process."""

    store: InterruptStore
    taken: InterruptRecord
    key: str

    def reported(self, status: str, outcome: Any) -> Step:
        """Return the step that tells a recording store what came of the call."""
        return of_store(
            self.store,
            "report",
            self.taken.interrupt_id,
            key=self.key,
            status=status,
            outcome=outcome,
        )


def resuming(
    interrupt_id: Any,
    decision: Decision | Mapping[str, Any] | None,
    *,
    store: InterruptStore,
    agent: Any = None,
    input: Any = None,  # noqa: A002
    execute_options: Mapping[str, Any] | None = None,
    by: Person | None = None,
    via: str = "python",
) -> Steps[Applied | AlreadyResolved]:
    """Take a decision through: see `hitl_approvals.resume`.

    Raises:
        TypeError: Decision, store, agent or options are malformed; nothing was claimed.
        DecisionNotAllowed: This kind of decision is not offered.
        PayloadRejected: Edited arguments do not fit; nothing was claimed.
        TransitionNotAllowed: The recorded decision was asked for, and there is none yet.
    """
    name = str(interrupt_id)
    parsed = _parsed(decision, store)
    options = _checked_options(agent, execute_options)
    record = yield of_store(store, "load", name)
    if record is None or record.status == TAKEN:
        return AlreadyResolved(interrupt_id=name)
    asked = _prompt(record.request, agent, input)
    if not (yield from _decide(store, record, parsed, by=by, via=via)):
        return AlreadyResolved(interrupt_id=name)
    key = uuid4().hex
    taken = yield of_store(store, "take", name, key=key)
    if taken is None:
        return AlreadyResolved(interrupt_id=name)
    ruling = taken.decision or parsed
    assert ruling is not None  # noqa: S101  it was passed, or it is on record
    if agent is None:
        # Whoever drives the turn reports the outcome, where a store keeps outcomes.
        if not implements(store, RecordingStore):
            yield of_store(store, "delete", name)
        return Applied(
            interrupt_id=name,
            decision=ruling,
            result=None,
            status=CLAIMED,
            waiting=0,
            record=taken,
        )
    claim = Claim(store, taken, key)
    return (yield from _run_again(claim, ruling, agent, asked, options))


def _run_again(
    claim: Claim,
    ruling: Decision,
    agent: Any,
    asked: Any,
    options: Mapping[str, Any],
) -> Steps[Applied]:
    request = claim.taken.request
    seed = Seed(request, ruling)
    kept, has_input = input_as_json(asked)
    run = Run(
        agent=request.agent,
        thread_id=request.thread_id,
        input=kept,
        has_input=has_input,
        seed=seed,
        journal=journal_of(request.journal),
    )
    try:
        with running(run):
            execution = yield from perform(run, agent, asked, options)
    except Exception:
        # The bug of a handler, before or after the call.
        if not seed.used:
            yield from _release(claim)
        raise
    yield from _settle(claim, run, seed, execution)
    return Applied(
        interrupt_id=claim.taken.interrupt_id,
        decision=ruling,
        result=execution.output,
        status=_status(execution),
        waiting=1 if execution.suspended else 0,
        record=claim.taken,
        error=execution.error,
        next_interrupt_id=execution.interrupt_id,
        used=seed.used,
    )


def _settle(claim: Claim, run: Run, seed: Seed, execution: Execution) -> Steps[None]:
    """Forget the interrupt, or record what came of it.

    A run that failed before it came to the call gives the claim back: the decision was
    not used, and may be applied again.
    """
    if not seed.used and execution.error is not None and not execution.suspended:
        yield from _release(claim)
        return
    interrupt_id = claim.taken.interrupt_id
    try:
        if not implements(claim.store, RecordingStore):
            yield of_store(claim.store, "delete", interrupt_id)
        elif not isinstance(seed.decision, Reject):
            status, outcome = _outcome(run, seed)
            yield claim.reported(status, outcome)
    except Exception:
        # What ran has run; the record stays visible as taken.
        logger.exception("Interrupt %s could not be settled.", interrupt_id)


def _release(claim: Claim) -> Steps[None]:
    """Give a claim back, or record that nothing was run with it.

    In a store that can do neither it stays visible as taken.
    """
    if implements(claim.store, ReleasingStore):
        interrupt_id = claim.taken.interrupt_id
        yield of_store(claim.store, "release", interrupt_id, key=claim.key)
    elif implements(claim.store, RecordingStore):
        error = "The agent failed before it asked for this call again."
        yield claim.reported("failed", {"error": error})


def _outcome(run: Run, seed: Seed) -> tuple[str, Any]:
    entry = run.journal.get(seed.key)
    if entry is None:
        return "failed", {"error": "The agent did not ask for this call again."}
    if entry["status"] == SUCCEEDED:
        return "succeeded", entry["value"]
    clean = entry["status"] == FAILED and entry["clean"]
    return "failed" if clean else "unknown", {"error": entry["error"]}


def _parsed(
    decision: Decision | Mapping[str, Any] | None, store: InterruptStore
) -> Decision | None:
    if not implements(store, InterruptStore):
        raise TypeError(
            f"store= must be an interrupt store; got a {type(store).__name__}."
        )
    if decision is not None:
        return parse_decision(decision)
    if implements(store, RecordingStore):
        return None
    raise TypeError(
        "None stands for the decision that the store has on record, and a "
        f"{type(store).__name__} records none. Pass a decision."
    )


def _checked_options(
    agent: Any, execute_options: Mapping[str, Any] | None
) -> dict[str, Any]:
    if execute_options is not None and not isinstance(execute_options, Mapping):
        raise TypeError(
            "execute_options= must be a mapping of names to values; got a "
            f"{type(execute_options).__name__}."
        )
    options = dict(execute_options or {})
    if agent is not None:
        step_of(agent, None, options)
    return options


def _prompt(request: ApprovalRequest, agent: Any, given: Any) -> Any:
    """Return what the agent is asked.

    Raises:
        TypeError: Nothing was given, and nothing is on record.
    """
    if agent is None or given is not None:
        return given
    if not request.input_kept:
        raise TypeError(
            "This request holds no input: it was made outside of gate.execute(), or "
            "the input was not JSON. Pass input=."
        )
    return request.original_input


def _decide(
    store: InterruptStore,
    record: InterruptRecord,
    parsed: Decision | None,
    *,
    by: Person | None,
    via: str,
) -> Steps[bool]:
    """Record the decision where the store records any; False if another one stands.

    Raises:
        DecisionNotAllowed: This kind of decision is not offered.
        PayloadRejected: Edited arguments do not fit.
        TransitionNotAllowed: Nobody has decided yet.
    """
    if parsed is None:
        if record.status != DECIDED:
            raise TransitionNotAllowed(
                "Nobody has decided this yet; there is no decision to apply.",
                interrupt_id=record.interrupt_id,
                status=record.status,
            )
        return True
    if record.status == DECIDED and record.decision is not None:
        # A caller that died between deciding and claiming comes again.
        return _same(record.decision, parsed)
    _require_fitting(parsed, record.request)
    if implements(store, RecordingStore):
        try:
            yield of_store(store, "decide", record.interrupt_id, parsed, by=by, via=via)
        except (InterruptNotFound, TransitionNotAllowed):
            return False
    return True


def _require_fitting(decision: Decision, request: ApprovalRequest) -> None:
    if decision.type not in request.allowed_decisions:
        raise DecisionNotAllowed(
            f"For {request.tool_name} one may decide "
            f"{', '.join(request.allowed_decisions) or 'nothing'}; got {decision.type}."
        )
    if not isinstance(decision, Edit):
        return
    args: Any = canonical.loads(canonical.dumps(dict(decision.args)))
    require_untouched(request.tool_name, request.fixed, request.args, args)
    if request.args_schema is None:
        return
    if errors := validate_against(dict(request.args_schema), args):
        lines = "; ".join(f"{one['loc']}: {one['message']}" for one in errors)
        raise PayloadRejected(
            f"Not accepted as the arguments of {request.tool_name}: {lines}",
            errors=errors,
        )


def _same(one: Decision, other: Decision) -> bool:
    return decision_body(one) == decision_body(other)


def _status(execution: Execution) -> str:
    if execution.suspended:
        return SUSPENDED
    return COMPLETED if execution.error is None else FAILED
