"""The desk's list: saved views, filters and pages over what a person may see."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from django.db.models import QuerySet
from django.utils.translation import gettext as _
from django.utils.translation import ngettext, pgettext

from hitl_approvals import permissions, selectors
from hitl_approvals.admin import paging
from hitl_approvals.admin.paging import Part
from hitl_approvals.enums import InterruptKind, InterruptStatus
from hitl_approvals.figures.counting import glance
from hitl_approvals.figures.scope import Scope
from hitl_approvals.models import PendingInterrupt
from hitl_approvals.registry import registry
from hitl_approvals.types import Person

Rows = QuerySet[PendingInterrupt]

OPEN, DOUBT, DECIDED, ALL = "open", "doubt", "decided", "all"
OVER = (
    InterruptStatus.DECIDED,
    InterruptStatus.RESOLVED,
    InterruptStatus.CANCELLED,
)
MINE, NOBODYS = "mine", "nobodys"
URGENT, OLDEST, NEWEST = "urgent", "oldest", "newest"
MOST_QUEUES = 200
"""Queues that the filter offers."""

_HEAVY = (
    "args",
    "args_schema",
    "context",
    "decision_value",
    "outcome",
    "response_schema",
    "tool_description",
    "turn__execute_options",
    "turn__input",
    "turn__output",
    "turn__state",
)
"""Columns that no row of the list shows."""


@dataclass(frozen=True, slots=True)
class Tab:
    """One saved view."""

    label: str
    url: str
    count: str
    current: bool


@dataclass(frozen=True, slots=True)
class Filters:
    """What was asked of the list; anything unknown counts as not asked."""

    view: str = OPEN
    q: str = ""
    queue: str = ""
    tool: str = ""
    kind: str = ""
    hands: str = ""
    order: str = ""
    after: str = ""
    before: str = ""
    """Where the page begins or ends; `paging` reads it."""

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> Filters:
        """Read a query string; never fails."""
        view = str(data.get("view", ""))
        return cls(
            view=view if view in (DOUBT, DECIDED, ALL) else OPEN,
            q=str(data.get("q", "")).strip()[:200],
            queue=str(data.get("queue", ""))[:64],
            tool=str(data.get("tool", ""))[:128],
            kind=_known(data.get("kind"), InterruptKind.values),
            hands=_known(data.get("hands"), (MINE, NOBODYS)),
            order=_known(data.get("o"), (URGENT, OLDEST, NEWEST)),
            after=str(data.get("after", "")),
            before=str(data.get("before", "")),
        )

    def query(self, **changes: Any) -> str:
        """Return the query string of this list from its start, with some of it changed."""
        fields = {
            "view": self.view,
            "q": self.q,
            "queue": self.queue,
            "tool": self.tool,
            "kind": self.kind,
            "hands": self.hands,
            "o": self.order,
        } | changes
        given = {key: value for key, value in fields.items() if value}
        if given.get("view") == OPEN:
            del given["view"]
        return f"?{urlencode(given)}" if given else "?"


@dataclass(slots=True)
class Listing:
    """One page of the list."""

    rows: list[PendingInterrupt]
    tabs: list[Tab]
    after: str
    """Query string of the page after this one; empty if there is none."""
    before: str
    shown: str
    title: str
    filters: Filters
    queues: list[tuple[str, str]] = field(default_factory=list)
    tools: list[str] = field(default_factory=list)


def listing(user: Person, filters: Filters) -> Listing:
    """Return a page of the list, in a number of queries that does not depend on it."""
    scope = Scope.of(user)
    visible = scope.interrupts()
    views = {name: _view(visible, name) for name in _titles()}
    counts = glance(views, cap=paging.CAP).counts
    found = _matching(visible, filters)
    if filters.hands == MINE:
        found = found.filter(selectors.held(), assignee=user.pk)
    elif filters.hands == NOBODYS:
        found = found.filter(selectors.unheld())
    light = visible.select_related("turn", "queue", "assignee").defer(*_HEAVY)
    page = paging.page_of(
        _parts(found, filters), light, after=filters.after, before=filters.before
    )
    tabs = [
        Tab(
            label=label,
            url=Filters(view=name).query(),
            count=paging.counted(counts[name]),
            current=name == filters.view,
        )
        for name, label in _titles().items()
    ]
    return Listing(
        rows=page.rows,
        tabs=tabs,
        after=filters.query(after=page.after) if page.after else "",
        before=filters.query(before=page.before) if page.before else "",
        shown=_shown(len(page.rows)),
        title=_page_titles()[filters.view],
        filters=filters,
        queues=list(scope.queues.items())[:MOST_QUEUES],
        tools=sorted({*registry.tools, *([filters.tool] if filters.tool else [])}),
    )


def waiting(user: Person, filters: Filters) -> Rows:
    """Return what is open and matches the filters, in no order."""
    return _view(_matching(permissions.visible_to(user), filters), OPEN)


def _known(value: Any, allowed: Any) -> str:
    return str(value) if str(value) in allowed else ""


def _titles() -> dict[str, str]:
    return {
        OPEN: pgettext("interrupts", "Open"),
        DOUBT: _("In doubt"),
        DECIDED: pgettext("interrupts", "Decided"),
        ALL: pgettext("interrupts", "All"),
    }


def _page_titles() -> dict[str, str]:
    return {
        OPEN: _("Open interrupts"),
        DOUBT: _("Interrupts in doubt"),
        DECIDED: _("Decided interrupts"),
        ALL: _("All interrupts"),
    }


def _shown(count: int) -> str:
    if not count:
        return _("Nothing here.")
    return ngettext("%d row shown", "%d rows shown", count) % count


def _view(rows: Rows, name: str) -> Rows:
    statuses: dict[str, tuple[str, ...]] = {
        OPEN: (InterruptStatus.PENDING, InterruptStatus.IN_DOUBT),
        DOUBT: (InterruptStatus.IN_DOUBT,),
        DECIDED: OVER,
    }
    return rows.filter(status__in=statuses[name]) if name in statuses else rows


def _matching(rows: Rows, filters: Filters) -> Rows:
    if filters.queue:
        rows = rows.filter(queue=filters.queue)
    if filters.tool:
        rows = rows.filter(tool_name=filters.tool)
    if filters.kind:
        rows = rows.filter(kind=filters.kind)
    return rows.filter(selectors.search(filters.q)) if filters.q else rows


def _parts(rows: Rows, filters: Filters) -> list[Part[PendingInterrupt]]:
    """Return the view as parts to be laid end to end, each along one index."""
    if filters.view in (DECIDED, ALL):
        over = _view(rows, filters.view)
        # The key is a UUIDv7: its order is that of the requests.
        return [Part(over, descending=filters.order != OLDEST)]
    age = "requested_at"
    doubt = Part(rows.filter(status=InterruptStatus.IN_DOUBT), age)
    if filters.view == DOUBT:
        return [doubt]
    pending = rows.filter(status=InterruptStatus.PENDING)
    if filters.order in (OLDEST, NEWEST):
        return [doubt, Part(pending, age, descending=filters.order == NEWEST)]
    return [
        doubt,
        Part(pending.filter(expires_at__isnull=False), "expires_at"),
        Part(pending.filter(expires_at__isnull=True), age),
    ]
