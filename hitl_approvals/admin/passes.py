"""One pass over the queue: skipping goes on from row to row and comes to an end.

Where the pass began stands in the address, so nothing has to be remembered.
"""

from __future__ import annotations

from urllib.parse import urlencode

from django.http import HttpRequest

from hitl_approvals import selectors
from hitl_approvals.admin.base import DeskAdmin, person
from hitl_approvals.exceptions import InterruptNotFound
from hitl_approvals.models import PendingInterrupt

BEGUN = "pass"
OVER = "passed"


def begun(request: HttpRequest) -> PendingInterrupt | None:
    """Return the row where this pass began, if the address names one."""
    named = request.GET.get(BEGUN, "")
    if not named:
        return None
    try:
        return selectors.interrupt_get(named, person(request))
    except InterruptNotFound:
        return None


def with_pass(request: HttpRequest, url: str) -> str:
    """Return an address that keeps to the pass of this request."""
    start = begun(request)
    return f"{url}?{urlencode({BEGUN: str(start.pk)})}" if start and url else url


def skip_url(desk: DeskAdmin, request: HttpRequest, row: PendingInterrupt) -> str:
    """Return where skipping leads: to what was not looked at yet, else to the list."""
    start = begun(request) or row
    return onward_url(desk, request, row, start)


def onward_url(
    desk: DeskAdmin,
    request: HttpRequest,
    row: PendingInterrupt,
    start: PendingInterrupt | None,
    **query: str,
) -> str:
    """Return the address of the next row that this person may decide, or of the list.

    Args:
        desk: The model admin that the pages belong to.
        request: The request.
        row: The one that was looked at last.
        start: Where the pass began; None while nothing was skipped.
        query: What the address says besides.
    """
    following = selectors.next_open(person(request), row, begun=start)
    if following is not None:
        place = desk.link("change", following.pk)
        if start is not None:
            query[BEGUN] = str(start.pk)
    else:
        place = desk.link("changelist")
        if start is not None:
            query[OVER] = "1"
    return f"{place}?{urlencode(query)}" if query else place
