"""resume(): decide an interrupt and run on from it, over a store or in a turn of ours.

Imports neither rows nor settings before a turn is meant: an agent that keeps its
interrupts in memory or in Redis needs no configured site.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from asgiref.sync import sync_to_async
from django.apps import apps
from django.conf import settings

from hitl_approvals.approvals.resuming import resuming
from hitl_approvals.approvals.steps import adrive, drive
from hitl_approvals.decisions import Decision
from hitl_approvals.stores.base import InterruptStore
from hitl_approvals.types import AlreadyResolved, Applied, Person


def resume(
    interrupt_id: UUID | str,
    decision: Decision | Mapping[str, Any] | None,
    *,
    store: InterruptStore | None = None,
    agent: Any = None,
    input: Any = None,  # noqa: A002
    execute_options: Mapping[str, Any] | None = None,
    restart: bool = False,
    by: Person | None = None,
    via: str = "python",
) -> Applied | AlreadyResolved:
    """Decide an interrupt, and run on from it here.

    Without a store the interrupt is one of our own turns: it is decided, and if it was
    the turn's last open one, the turn runs here. With a store it is claimed from there:
    with an agent, the agent runs again with the decision for exactly that call
    (re-run); without one, the claim is handed to you (apply-only).

    Args:
        interrupt_id: What was suspended.
        decision: An `Approve`, `Reject`, `Edit` or `Respond`, or the same as a mapping.
            None stands for the decision that the store has on record.
        store: Where the gate kept the request.
        agent: What runs again: a function of its input, or an object with `execute` or
            `run`, whose tools go through the gate.
        input: Asked instead of the original input.
        execute_options: Passed to the agent that runs again.
        restart: For a turn that has recorded steps: run it from its beginning with
            other input. Its gated calls then ask again, this one included.
        by: Who decides; None is trusted code, recorded as `system`.
        via: The door, for the audit trail.

    Returns:
        `Applied`, or `AlreadyResolved` if there was nothing to decide or to claim.

    Raises:
        TypeError: The decision is malformed, or the arguments do not fit each other.
        UnsafeContext: A transaction is open.
        HitlApprovalsError: The decision was refused; nothing was stored or claimed.
        Exception: The bug of a handler in the run.
    """
    if store is not None:
        _refuse_restart(restart=restart)
        _refuse_transaction()
        return drive(
            resuming(
                interrupt_id,
                decision,
                store=store,
                agent=agent,
                input=input,
                execute_options=execute_options,
                by=by,
                via=via,
            )
        )
    return _resume_turn(
        interrupt_id, decision, agent, input, execute_options, restart, by, via
    )


async def aresume(
    interrupt_id: UUID | str,
    decision: Decision | Mapping[str, Any] | None,
    *,
    store: InterruptStore | None = None,
    agent: Any = None,
    input: Any = None,  # noqa: A002
    execute_options: Mapping[str, Any] | None = None,
    restart: bool = False,
    by: Person | None = None,
    via: str = "python",
) -> Applied | AlreadyResolved:
    """Do what `resume` does, with an agent, handlers and a store that may be async.

    Raises:
        TypeError: The decision is malformed, or the arguments do not fit each other.
        HitlApprovalsError: The decision was refused; nothing was stored or claimed.
        Exception: The bug of a handler in the run.
    """
    if store is not None:
        _refuse_restart(restart=restart)
        await sync_to_async(_refuse_transaction)()
        return await adrive(
            resuming(
                interrupt_id,
                decision,
                store=store,
                agent=agent,
                input=input,
                execute_options=execute_options,
                by=by,
                via=via,
            )
        )
    return await sync_to_async(_resume_turn)(
        interrupt_id, decision, agent, input, execute_options, restart, by, via
    )


def _refuse_restart(*, restart: bool) -> None:
    if restart:
        raise TypeError(
            "restart= is for turns. Over a store the agent always runs from its start."
        )


def _refuse_transaction() -> None:
    """Refuse to claim and run inside a transaction, where there may be one.

    Raises:
        UnsafeContext: A rollback would forget what the agent did.
    """
    if settings.configured and apps.ready and apps.is_installed("hitl_approvals"):
        from hitl_approvals.services.transactions import refuse_inside_transaction

        refuse_inside_transaction("resume()")


def _resume_turn(
    interrupt_id: UUID | str,
    decision: Decision | Mapping[str, Any] | None,
    agent: Any,
    given: Any,
    execute_options: Mapping[str, Any] | None,
    restart: bool,  # noqa: FBT001  private; passed on by position
    by: Person | None,
    via: str,
) -> Applied | AlreadyResolved:
    if agent is not None:
        raise TypeError("agent= goes with store=; a turn has an agent of its own.")
    if decision is None:
        raise TypeError(
            "None stands for the decision that a store has on record; a turn is "
            "resumed by its worker as soon as it is decided. Pass a decision."
        )
    from hitl_approvals import engine

    return engine.resume(
        interrupt_id,
        decision,
        input=given,
        execute_options=execute_options,
        restart=restart,
        by=by,
        via=via,
    )
