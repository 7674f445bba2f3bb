"""Asks every question in order; one that cannot be answered is a line of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial

from django.db import Error, connections

from hitl_approvals.health import configuration, outside, work, workflows
from hitl_approvals.health.lines import Level, Line

DEFAULT_MAX_OWED = timedelta(minutes=5)

Question = Callable[[], Line | list[Line]]


def examine(*, max_owed: timedelta = DEFAULT_MAX_OWED) -> list[Line]:
    """Look at everything and return a line for each thing.

    Args:
        max_owed: For how long a run may be owed before that is a failure.
    """
    lines = _answer("database", _database)
    if lines[0].level is Level.OK:
        lines += _answer("migrations", configuration.migrations)
        if lines[-1].level is Level.OK:
            for name, question in _about_rows(max_owed):
                lines += _answer(name, question)
    lines += _answer("broker", configuration.broker)
    lines += _answer("approvals", configuration.time_to_start)
    lines += _answer("checks", configuration.system_checks)
    return lines


def _about_rows(max_owed: timedelta) -> Sequence[tuple[str, Question]]:
    return (
        ("owed", partial(work.owed, max_owed)),
        ("announced", work.unheard),
        ("blocked", work.blocked),
        ("sweeper", work.sweeper),
        ("leases", work.leases),
        ("calls", work.overdue),
        ("doubts", work.doubts),
        ("attention", work.attention),
        ("workflows", workflows.cancelled),
        ("reviewers", work.reviewers),
        ("remote", work.remote),
        ("clients", outside.clients),
        ("deliveries", outside.deliveries),
        ("endpoints", outside.failing_endpoints),
        ("agents", configuration.agents),
    )


def _database() -> Line:
    alias = configuration.alias()
    connections[alias].ensure_connection()
    return Line("database", Level.OK, f"Database `{alias}` answers.")


def _answer(name: str, question: Question) -> list[Line]:
    """Return what a question comes to; failing to answer it must not hide the others."""
    try:
        answer = question()
    except Error as error:
        text = f"The database did not answer this: {error}"
        return [Line(name, Level.FAIL, text.strip(), "Look at the database first.")]
    except Exception as error:  # noqa: BLE001  a site's own settings can raise anything
        text = f"This could not be looked at: {type(error).__name__}: {error}"
        return [Line(name, Level.FAIL, text, "Correct the settings first.")]
    return answer if isinstance(answer, list) else [answer]
