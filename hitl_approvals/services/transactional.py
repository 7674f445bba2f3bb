"""A `transactional` tool: gate, body and record as one transaction, or nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from django.db import OperationalError, connections

from hitl_approvals import failpoints
from hitl_approvals.enums import OutcomeStatus, StepStatus
from hitl_approvals.exceptions import LeaseLost
from hitl_approvals.models import DbNow, InterruptEvent, TurnStep
from hitl_approvals.services.effects import may_start, note_resolved, why_not
from hitl_approvals.services.recording import record_events
from hitl_approvals.services.run import (
    Run,
    fenced,
    flush,
    flushed,
    resolve,
)
from hitl_approvals.services.transactions import alias, is_transient, run_atomic


class BodyFailed(Exception):
    """The body of a transactional tool raised; its transaction was rolled back."""

    def __init__(self, error: Exception) -> None:
        self.error = error
        super().__init__(error)


def run_body(
    run: Run, step: TurnStep, body: Callable[[], Any], *, digest_run: str
) -> Any:
    """Run gate, body and record as one transaction: all of it happened, or none.

    Args:
        run: The run; the transaction's first statement extends its lease.
        step: A new row.
        body: Calls the tool and returns its result as JSON.
        digest_run: Digest of the arguments that run.

    Raises:
        LeaseLost, ApprovalLapsed, StepTaken: As in `start`.
        BodyFailed: The body raised; nothing was changed.
    """
    interrupt = step.interrupt

    def work() -> InterruptEvent | None:
        fenced(run, *may_start(interrupt))
        step.status = StepStatus.SUCCEEDED
        step.finished_at = DbNow()
        step.result = _call_body(body)
        failpoints.reach("transaction.after_body")
        if connections[alias()].needs_rollback:
            raise BodyFailed(
                RuntimeError("The tool marked its transaction for rollback.")
            )
        event = None
        if interrupt is not None:
            event = resolve(
                run,
                interrupt,
                OutcomeStatus.SUCCEEDED,
                digest_run=digest_run,
                result=step.result,
            )
            if event is None:
                raise LeaseLost
        written = flush(run, step)
        if event is not None:
            written.append(event)
        record_events(written)
        return event

    try:
        event = run_atomic(work, durable=True)
    except LeaseLost:
        run.check_lease()
        raise why_not(run, interrupt) from None
    failpoints.reach("transaction.after_commit")
    flushed(run, step)
    if interrupt is not None and event is not None:
        note_resolved(interrupt, event)
    return step.result


def _call_body(body: Callable[[], Any]) -> Any:
    """Run the body and tell its errors from those of our own statements."""
    try:
        with only_our_database():
            return body()
    except OperationalError as error:
        if is_transient(error):
            raise
        raise BodyFailed(error) from error
    except Exception as error:
        raise BodyFailed(error) from error


@contextmanager
def only_our_database() -> Iterator[None]:
    """Refuse writes on other aliases while a transactional tool runs."""
    ours = alias()
    with ExitStack() as stack:
        for name in connections:
            if name != ours:
                wrapper = connections[name].execute_wrapper(_refuse_write)
                stack.enter_context(wrapper)
        yield


def _refuse_write(
    execute: Callable[..., Any], sql: str, params: Any, many: Any, context: Any
) -> Any:
    if sql.lstrip("( \n\t").upper().startswith(("SELECT", "EXPLAIN", "SHOW", "PRAGMA")):
        return execute(sql, params, many, context)
    name = context["connection"].alias
    raise RuntimeError(
        f"A transactional tool wrote to the database `{name}`: that write would not be "
        'undone with the rest. Declare the tool effect="unsafe", or write elsewhere.'
    )
