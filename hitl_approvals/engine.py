"""Runs turns: claim, let the agent's adapter perform, settle what came of it."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import nullcontext
from functools import partial
from typing import Any
from uuid import UUID

from hitl_approvals.agents import base, parting, request
from hitl_approvals.agents.request import request_call
from hitl_approvals.conf import hitl_settings
from hitl_approvals.decisions import Decision, parse_decision
from hitl_approvals.enums import Door, InterruptStatus, TurnStatus
from hitl_approvals.exceptions import (
    AgentNotFound,
    InterruptNotFound,
    LeaseLost,
    RunDeferred,
    RunDiverged,
    TransitionNotAllowed,
    TurnFailed,
)
from hitl_approvals.heartbeat import Heartbeat
from hitl_approvals.models import AgentTurn
from hitl_approvals.registry import AgentDefinition, registry
from hitl_approvals.services import reading, starting, turns
from hitl_approvals.services.control import KEEP
from hitl_approvals.services.decisions import decide
from hitl_approvals.services.rerunning import decide_and_change
from hitl_approvals.services.run import Run
from hitl_approvals.services.suspension import suspend
from hitl_approvals.services.transactions import refuse_inside_transaction
from hitl_approvals.text import cleaned
from hitl_approvals.types import AlreadyResolved, Applied, DecisionReceipt, Person

logger = logging.getLogger("hitl_approvals")

DROPPED = "dropped"
LOST = "lost"
SUSPENDED = "suspended"


def start_turn(
    agent: str,
    input: Any,  # noqa: A002  the word of the design
    *,
    thread_id: str | None = None,
    key: str | None = None,
    requested_by: Person | None = None,
    execute_options: Any = None,
    run: bool = False,
) -> AgentTurn:
    """Start a turn: owed to a worker, or with `run=True` performed here and now.

    Args:
        agent: Name of a registered agent.
        input: What the agent is asked, as JSON.
        thread_id: The conversation; None makes the turn its own.
        key: Idempotency key: a second start with it finds the first one's turn.
        requested_by: On whose behalf; that person may not decide its calls.
        execute_options: Passed to the agent as they stand.
        run: Perform the turn in this process, up to its first pause.

    Raises:
        AgentNotFound: No such agent is registered in this process.
        KeyReused: The key started another request.
        PayloadRejected: Input or options are not JSON, too large or too deep.
        UnsafeContext: `run=True` inside a transaction.
    """
    return start_or_find(
        agent,
        input,
        thread_id=thread_id,
        key=key,
        requested_by=requested_by,
        execute_options=execute_options,
        run=run,
    )[0]


def start_or_find(
    agent: str,
    input: Any,  # noqa: A002  as above
    *,
    thread_id: str | None = None,
    key: str | None = None,
    requested_by: Person | None = None,
    execute_options: Any = None,
    run: bool = False,
) -> tuple[AgentTurn, bool]:
    """Start like `start_turn`, and say whether the turn is a new one.

    Raises:
        The same as `start_turn`.
    """
    definition = registry.agents.get(agent)
    # A call without an agent begins by its tool, which reads and judges it first.
    if definition is None or definition.kind == request.KIND:
        names = (n for n, one in registry.agents.items() if one.kind != request.KIND)
        raise AgentNotFound(
            f"No agent is called {agent!r}. Registered: "
            f"{', '.join(sorted(names)) or 'none'}."
        )
    if run:
        refuse_inside_transaction("start_turn(run=True)")
    turn, made = starting.create(
        agent=agent,
        agent_version=definition.version,
        input=input,
        thread_id=thread_id,
        key=key,
        requested_by=requested_by,
        execute_options=execute_options,
        claimed=run,
    )
    if run and made and turn.fence:
        _perform(starting.adopt(turn), definition)
        turn = reading.turn(turn.pk)
    return turn, made


def run_turn(turn_id: UUID | str) -> str:
    """Claim a turn and perform it up to its next pause or its end.

    Of a cancelled turn only its workflow is ended, where an engine still has one.

    Returns:
        `dropped` if there was nothing to do here, `lost` if another worker took it
        over, else the status that the turn was left in.

    Raises:
        UnsafeContext: A transaction is open.
    """
    refuse_inside_transaction("run_turn()")
    try:
        known_id = UUID(str(turn_id))
    except ValueError:
        return DROPPED
    run = turns.claim(known_id, registry.runnable())
    if run is None:
        return str(TurnStatus.CANCELLED) if parting.let_go(known_id) else DROPPED
    definition = registry.agents.get(run.turn.agent)
    if definition is None:
        # MariaDB's collation took `Support` for `support`: it is not this process's.
        return turns.release(run, f"No agent is called {run.turn.agent!r} here.")
    return _perform(run, definition)


def resume(
    interrupt_id: UUID | str,
    decision: Decision | Mapping[str, Any],
    *,
    input: Any = None,  # noqa: A002
    execute_options: Any = None,
    restart: bool = False,
    by: Person | None = None,
    via: str = Door.PYTHON,
) -> Applied | AlreadyResolved:
    """Decide, and if it was the turn's last open decision, run the turn here.

    The part of `hitl_approvals.resume` that is about turns; None keeps what the turn
    has of input and options.

    Raises:
        TypeError: The decision is malformed, or other input needs `restart=True`.
        UnsafeContext: A transaction is open.
        HitlApprovalsError: The decision was refused; nothing was stored.
    """
    refuse_inside_transaction("resume()")
    parsed = parse_decision(decision)
    receipt: DecisionReceipt | None
    if restart or input is not None or execute_options is not None:
        receipt = decide_and_change(
            interrupt_id,
            parsed,
            by=by,
            via=via,
            input=KEEP if input is None else input,
            execute_options=KEEP if execute_options is None else execute_options,
            restart=restart,
        )
    else:
        try:
            receipt = decide(interrupt_id, parsed, by=by, via=via)
        except (InterruptNotFound, TransitionNotAllowed):
            receipt = None
    if receipt is None:
        return AlreadyResolved(interrupt_id=str(interrupt_id))
    applied = partial(Applied, interrupt_id=str(receipt.interrupt_id), decision=parsed)
    if receipt.turn_id is None:
        # A remote agent's: it fetches the decision itself.
        return applied(result=None, status=str(InterruptStatus.DECIDED), waiting=0)
    run_turn(receipt.turn_id)
    turn = AgentTurn.objects.get(pk=receipt.turn_id)
    return applied(result=turn.output, status=turn.status, waiting=turn.undecided)


def _perform(run: Run, definition: AgentDefinition) -> str:
    inline = hitl_settings.dispatcher == "inline"
    try:
        with nullcontext() if inline else Heartbeat(run):
            return _outcome(run, definition)
    except LeaseLost:
        logger.info("Turn %s was taken over by another worker.", run.turn.pk)
        return LOST


def _outcome(run: Run, definition: AgentDefinition) -> str:
    """Let the adapter perform, and write what came of it.

    Raises:
        LeaseLost: The turn is not this run's any more.
    """
    try:
        agent = base.load(definition)
        if run.resumed:
            outcome = agent.resume(run, run.turn.state, list(run.interrupts.values()))
        else:
            outcome = agent.start(run, run.turn.input)
        if isinstance(outcome, base.Completed):
            return turns.complete(run, outcome.output)
        if outcome.requests:
            suspend(run, requests=outcome.requests, state=outcome.state)
        return SUSPENDED
    except LeaseLost:
        raise
    except RunDiverged as error:
        return turns.need_attention(run, cleaned(error.detail, 4000))
    except RunDeferred as error:
        why = cleaned(error.detail, 4000)
        if error.wait is not None:
            return turns.put_off(run, why, error.wait, state=error.state)
        return turns.release(run, why, not_before=error.not_before)
    except TurnFailed as error:
        return turns.fail(run, cleaned(str(error), 4000))
    except Exception as error:
        logger.exception("Turn %s of agent %s failed.", run.turn.pk, run.turn.agent)
        return turns.release(run, cleaned(f"{type(error).__name__}: {error}", 4000))


__all__ = [
    "DROPPED",
    "LOST",
    "SUSPENDED",
    "request_call",
    "run_turn",
    "start_turn",
]
