"""How much arrived since a list was opened: a small answer for a page that asks again."""

from __future__ import annotations

from urllib.parse import urlencode
from uuid import UUID

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from hitl_approvals.admin import queue
from hitl_approvals.admin.base import DeskAdmin, person
from hitl_approvals.models import PendingInterrupt

MOST = 100
"""Rows that are counted; a page that was told of so many asks no more."""
_ASKED = ("q", "queue", "tool", "kind", "o")
_BELOW_TIME = (1 << 80) - 1


def address(desk: DeskAdmin, filters: queue.Filters) -> str:
    """Return where a list asks what arrived; empty where nothing can arrive."""
    if filters.view != queue.OPEN:
        return ""
    asked = {"q": filters.q, "queue": filters.queue, "tool": filters.tool}
    asked |= {"kind": filters.kind, "o": filters.order, "since": str(_newest())}
    return f"{desk.link('arrived')}?{urlencode(asked)}"


def arrivals(desk: DeskAdmin, request: HttpRequest) -> HttpResponse:
    """Answer how many open rows of this list are newer than a page; changes nothing."""
    if request.method not in ("GET", "HEAD"):
        return HttpResponse(status=405, headers={"Allow": "GET, HEAD"})
    if not desk.has_view_permission(request):
        return JsonResponse({}, status=403)
    try:
        since = UUID(request.GET.get("since", ""))
    except ValueError:
        return JsonResponse({}, status=400)
    # Whatever page of the list it was asked from, what is new stands on the first.
    filters = queue.Filters.read({name: request.GET.get(name, "") for name in _ASKED})
    rows = queue.waiting(person(request), filters).filter(pk__gt=since)
    count = rows.order_by()[: MOST + 1].count()
    text = ngettext(
        "%(count)s more arrived since you opened this page.",
        "%(count)s more arrived since you opened this page.",
        count,
    )
    shown = f"{MOST}+" if count > MOST else str(count)
    return JsonResponse(
        {
            "count": count,
            "last": count > MOST,
            "text": text % {"count": shown} if count else "",
            "link": _("Show them"),
            "url": filters.query(),
        }
    )


def _newest() -> UUID:
    """Return a bound that every interrupt up to now lies below.

    Keys are UUIDv7. Only the time of the newest one is given away, not its random part:
    the row may be one that this person must not see.
    """
    latest = PendingInterrupt.objects.order_by("-pk").values_list("pk", flat=True)
    found = latest.first()
    return UUID(int=found.int | _BELOW_TIME) if found else UUID(int=0)
