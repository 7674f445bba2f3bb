"""The sweeper's trace: when one last came by. No step of the protocol asks for it."""

from __future__ import annotations

import logging
import os
import platform
from collections.abc import Mapping
from datetime import timedelta

from django.db import Error, IntegrityError, transaction
from django.db.models import QuerySet

from hitl_approvals.models import DbNow, SweepMark, db_now_plus
from hitl_approvals.services import rows
from hitl_approvals.services.transactions import alias, run_atomic

logger = logging.getLogger("hitl_approvals")

SWEEPER = "sweeper"
"""The name of the one row."""
EVERY = timedelta(seconds=5)
"""Many sweepers may run; the row is written no more often than this."""


def note_sweep(moved: dict[str, int]) -> bool:
    """Note that a pass was made, unless that was noted a moment ago.

    Never waits for another sweeper, and never ends a pass: what it cannot write now
    the next pass writes.

    Returns:
        Whether it was written.
    """
    report = {"moved": moved, "process": f"{platform.node()}:{os.getpid()}"}
    try:
        return _note(report)
    except Error:
        logger.warning("The sweeper could not note its pass.", exc_info=True)
        return False


def _note(report: Mapping[str, object]) -> bool:
    seen = _mark().values_list("swept_at", flat=True).first()
    if seen is None:
        return _first(report)
    due = _mark().filter(swept_at=seen, swept_at__lt=db_now_plus(-EVERY))
    # Looked at first: where a database has one writer, a pass must not ask for it in vain.
    if not due.exists():
        return False

    def work() -> bool:
        changes = {"swept_at": DbNow(), "report": report}
        return rows.take(due) and due.update(**changes) == 1

    return run_atomic(work)


def _first(report: Mapping[str, object]) -> bool:
    try:
        with transaction.atomic(using=alias()):
            mark = SweepMark(name=SWEEPER, swept_at=DbNow(), report=report)
            mark.save(using=alias(), force_insert=True)
    except IntegrityError:
        return False  # Two made their first pass at once.
    return True


def _mark() -> QuerySet[SweepMark]:
    return SweepMark.objects.using(alias()).filter(pk=SWEEPER)
