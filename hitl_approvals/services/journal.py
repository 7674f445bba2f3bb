"""Writes what a run has recorded so far, where it must stand before the run goes on."""

from __future__ import annotations

from typing import Any

from hitl_approvals import failpoints
from hitl_approvals.conf import hitl_settings
from hitl_approvals.models import db_now_plus
from hitl_approvals.services.recording import record_events
from hitl_approvals.services.run import Run, fenced, flush, flushed
from hitl_approvals.services.transactions import run_atomic


def write(run: Run, **changes: Any) -> None:
    """Commit the buffered steps and resolutions, and extend the lease.

    Args:
        run: The run that goes on afterwards.
        **changes: Columns of the turn, such as the adapter's own `state`.

    Raises:
        LeaseLost: The turn is not this run's any more.
    """

    def work() -> None:
        fenced(run, lease_until=db_now_plus(hitl_settings.lease), **changes)
        record_events(flush(run))
        failpoints.reach("record.before_commit")

    run_atomic(work, durable=True)
    failpoints.reach("record.after_commit")
    flushed(run)
