"""`GET /queues/`: where interrupts wait, how many are open, and where you may decide."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from hitl_approvals import permissions
from hitl_approvals.api.following import page_after
from hitl_approvals.api.views import ApprovalsViewSet, person
from hitl_approvals.figures.counting import CAP, glance
from hitl_approvals.models import PendingInterrupt, ReviewQueue
from hitl_approvals.selectors import OPEN
from hitl_approvals.types import Person


class QueueViewSet(ApprovalsViewSet[ReviewQueue]):
    """Queues whose interrupts you may see."""

    queryset = ReviewQueue.objects.none()

    def list(self, request: Request, **kwargs: Any) -> Response:
        """List them by their slug, without who their members are."""
        by = person(request)
        visible = permissions.queues_visible_to(by).order_by("slug")

        def rows(after: str | None, size: int) -> list[ReviewQueue]:
            if after is not None and "\x00" in after:
                raise ValueError(after)
            return list(visible.filter(slug__gt=after or "")[:size])

        return page_after(request, rows, lambda found: _shown(found, by), "slug")


def _shown(found: Sequence[ReviewQueue], by: Person) -> list[dict[str, Any]]:
    slugs = [one.pk for one in found]
    if not slugs:
        return []
    waiting = PendingInterrupt.objects.filter(status__in=OPEN)
    counts = glance({slug: waiting.filter(queue=slug) for slug in slugs}).counts
    decides = set(permissions.queues_decided_by(by).values_list("pk", flat=True))
    return [
        {
            "slug": one.pk,
            "title": one.title or None,
            "open": {"count": min(counts[one.pk], CAP), "capped": counts[one.pk] > CAP},
            "may_decide": one.pk in decides,
            "requester_may_decide": one.requester_may_decide,
        }
        for one in found
    ]
