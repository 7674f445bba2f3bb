"""How long people took to decide, from a period's newest decisions.

A percentile here is a value that occurred: the smallest that at least so many of the
sample are no larger than.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from math import ceil

from hitl_approvals.enums import DecisionType
from hitl_approvals.figures.decided import Rows

SAMPLE = 500
"""Decisions whose times are looked at."""


@dataclass(frozen=True, slots=True)
class Times:
    """A median and the time that the slowest twentieth took at least."""

    sample: int
    median: timedelta | None
    slowest: timedelta | None

    @classmethod
    def of(cls, spans: Sequence[timedelta]) -> Times:
        """Return the percentiles of some spans; None where there is none."""
        if not spans:
            return cls(0, None, None)
        ordered = sorted(spans)
        return cls(len(ordered), _at(ordered, 50), _at(ordered, 95))


@dataclass(frozen=True, slots=True)
class Timing:
    """Times of the sample, as a whole and in parts."""

    decide: Times
    """From the request to the decision, of people only."""
    resume: Times
    """From the decision until it had been applied."""
    by_tool: dict[tuple[str, str], Times]
    by_queue: dict[str, Times]

    @classmethod
    def of(cls, rows: Rows) -> Timing:
        """Read the newest decisions of some rows."""
        people = rows.exclude(decision=DecisionType.EXPIRE).order_by("-decided_at")
        found = people.values_list(
            "tool_name", "queue_id", "requested_at", "decided_at", "resolved_at"
        )
        whole: list[timedelta] = []
        resumed: list[timedelta] = []
        tools: dict[tuple[str, str], list[timedelta]] = {}
        queues: dict[str, list[timedelta]] = {}
        for tool, queue, requested, decided, resolved in found[:SAMPLE]:
            if decided is None:
                continue
            # Two clocks are compared where a request came from elsewhere.
            span = max(decided - requested, timedelta())
            whole.append(span)
            tools.setdefault((tool, queue), []).append(span)
            queues.setdefault(queue, []).append(span)
            if resolved is not None:
                resumed.append(max(resolved - decided, timedelta()))
        return cls(
            Times.of(whole),
            Times.of(resumed),
            {key: Times.of(spans) for key, spans in tools.items()},
            {key: Times.of(spans) for key, spans in queues.items()},
        )


def _at(ordered: Sequence[timedelta], percent: int) -> timedelta:
    return ordered[max(ceil(len(ordered) * percent / 100), 1) - 1]
