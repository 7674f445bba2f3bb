"""`GET /stats/`: the numbers of the desk, for dashboards of one's own."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from hitl_approvals.api.errors import BadRequest
from hitl_approvals.api.parameters import refuse_unknown_parameters
from hitl_approvals.api.views import ApprovalsViewSet, person
from hitl_approvals.figures.counting import CAP
from hitl_approvals.figures.decided import KINDS, Shares
from hitl_approvals.figures.report import AGES, DEFAULT_PERIOD, PERIODS, Report, report
from hitl_approvals.figures.timing import Times
from hitl_approvals.models import PendingInterrupt


class StatsViewSet(ApprovalsViewSet[PendingInterrupt]):
    """Figures about the interrupts that you may see."""

    queryset = PendingInterrupt.objects.none()

    def list(self, request: Request, **kwargs: Any) -> Response:
        """Show what is open now, and how the last days' interrupts were decided."""
        refuse_unknown_parameters(request, ["days"])
        days = _days(request.query_params.get("days"))
        return Response(_shown(report(person(request), days=days, zone=UTC)))


def _days(text: str | None) -> int:
    if text is None:
        return DEFAULT_PERIOD
    for days in PERIODS:
        if text == str(days):
            return days
    message = f"Give one of {', '.join(map(str, PERIODS))}."
    raise BadRequest(f"days: {message}", errors=[{"loc": "days", "message": message}])


def _shown(found: Report) -> dict[str, Any]:
    waiting, timing = found.waiting, found.timing
    return {
        "days": found.asked,
        "counted_at": _moment(found.now),
        "open": {
            **_count(waiting.count),
            "oldest_seconds": _seconds(waiting.oldest),
            "in_doubt": _count(waiting.in_doubt),
            "by_age": [
                {"from_seconds": begin, "to_seconds": end, **_count(number)}
                for begin, end, number in _ages(waiting.by_age)
            ],
        },
        "decided": {
            "since": _moment(found.since),
            "capped": found.capped,
            **_shares(found.decided),
            "by_day": [
                {"day": day.isoformat(), **_shares(shares)}
                for day, shares in found.by_day.items()
            ],
            "by_tool": [
                {
                    "tool": tool or None,
                    "queue": queue,
                    **_shares(shares),
                    "time_to_decide": _times(found.times_of(tool, queue)),
                }
                for (tool, queue), shares in found.by_tool.items()
            ],
            "by_queue": [
                {
                    "queue": queue,
                    **_shares(shares),
                    "time_to_decide": _times(found.times_in(queue)),
                }
                for queue, shares in found.by_queue.items()
            ],
        },
        "time_to_decide": _times(timing.decide),
        "time_to_resume": _times(timing.resume),
    }


def _ages(numbers: list[int]) -> list[tuple[int, int | None, int]]:
    begins = [int(age.total_seconds()) for age in AGES]
    return list(zip(begins, [*begins[1:], None], numbers, strict=True))


def _count(number: int) -> dict[str, Any]:
    return {"count": min(number, CAP), "capped": number > CAP}


def _shares(shares: Shares) -> dict[str, int]:
    counts: Mapping[str, int] = shares.counts
    return {"count": shares.total, **{kind.value: counts[kind.value] for kind in KINDS}}


def _times(times: Times) -> dict[str, Any]:
    return {
        "sample": times.sample,
        "median_seconds": _seconds(times.median),
        "p95_seconds": _seconds(times.slowest),
    }


def _seconds(value: timedelta | None) -> float | None:
    return None if value is None else value.total_seconds()


def _moment(value: datetime) -> str:
    return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
