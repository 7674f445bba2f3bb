"""The rows of the page on which many calls are decided: each in full, or why not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.utils import timezone
from django.utils.formats import date_format
from django.utils.html import format_html_join, strip_tags
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from hitl_approvals import permissions, selectors
from hitl_approvals.admin import arguments, call_page, history, queue_rows, values
from hitl_approvals.admin.arguments import ArgumentRow, ArgumentTable, CallArguments
from hitl_approvals.admin.base import DeskAdmin
from hitl_approvals.admin.text import plain
from hitl_approvals.enums import DecisionType, InterruptKind, InterruptStatus
from hitl_approvals.models import PendingInterrupt
from hitl_approvals.types import Person

HALF_A_ROW = 28
"""Characters that fit beside another argument without a break."""


@dataclass(slots=True)
class BulkRow:
    """One interrupt that was chosen."""

    id: UUID
    value: str
    """What its tick sends: the row, and the revision that is shown."""
    name: str
    head: queue_rows.ListRow
    table: ArgumentTable | None
    question: SafeString | None
    warnings: list[str]
    left_out: str
    """Why it cannot be decided here; empty if it can."""
    ticked: bool
    changed: bool = False
    """Whether it is another one than when the form was made."""

    @property
    def args(self) -> list[tuple[ArgumentRow, bool]]:
        """Every argument, and whether its value takes the whole width."""
        rows = self.table.rows if self.table else []
        return [(one, one.wide or bool(one.note) or _long(one.html)) for one in rows]


def gather(
    desk: DeskAdmin,
    user: Person,
    chosen: Sequence[UUID],
    verb: str,
    now: datetime,
    ticked: Mapping[UUID, int] | None = None,
) -> list[BulkRow]:
    """Return what was chosen and may be seen, in order, those left out at the end.

    Args:
        desk: The model admin that the page belongs to.
        user: Who looks.
        chosen: The ids.
        verb: What is to be done with them, `approve` or `reject`.
        now: The moment of the page.
        ticked: The revisions of what was ticked in a form that comes back; without it
            everything that can be decided is ticked.
    """
    found = permissions.visible_to(user).filter(pk__in=chosen)
    rows = found.select_related("turn", "queue", "client", "assignee").in_bulk()
    decidable = permissions.decidable_by(user).filter(pk__in=chosen)
    mine = set(decidable.values_list("pk", flat=True))
    made = []
    for key in chosen:
        if key in rows:
            missing = None if key in mine else permissions.why_not(user, rows[key])
            held = _held(user, rows[key], now)
            made.append(_row(desk, rows[key], verb, missing or held, now, ticked))
    return sorted(made, key=lambda one: bool(one.left_out))


def tools(rows: Iterable[BulkRow]) -> SafeString:
    """Count rows by tool, in the words of the promise."""
    counts = Counter(one.head.label for one in rows)
    return format_html_join(
        ", ", "{} <code>{}</code>", ((count, name) for name, count in counts.items())
    )


def name_of(row: PendingInterrupt) -> str:
    """Return what a row is called where no markup is."""
    return plain(row.tool_name, 60) or _("question")


def _held(user: Person, row: PendingInterrupt, now: datetime) -> str:
    if not selectors.in_the_way_of(user, row, now) or row.claim_until is None:
        return ""
    return _("%(who)s holds it until %(time)s.") % {
        "who": plain(selectors.holder_name(row)),
        "time": date_format(timezone.localtime(row.claim_until), "H:i"),
    }


def _row(
    desk: DeskAdmin,
    row: PendingInterrupt,
    verb: str,
    missing: str | None,
    now: datetime,
    ticked: Mapping[UUID, int] | None,
) -> BulkRow:
    call = arguments.read(row)
    question = row.kind == InterruptKind.QUESTION
    tally = values.Tally()
    asked = values.render(row.payload, tally) if question else None
    table = None if question else arguments.table(call)
    in_part = tally.in_part if table is None else table.in_part > 0
    why = missing or _why_not(row, verb, call, in_part=in_part)
    seen = None if ticked is None else ticked.get(row.pk)
    changed = seen is not None and seen != row.revision
    return BulkRow(
        id=row.pk,
        value=f"{row.pk}:{row.revision}",
        name=name_of(row),
        head=queue_rows.list_row(row, desk.link("change", row.pk), now),
        table=table,
        question=asked,
        warnings=call_page.warnings(row, call),
        left_out=_state(row, now) or why,
        ticked=(ticked is None or seen is not None) and not changed,
        changed=changed,
    )


def _state(row: PendingInterrupt, now: datetime) -> str:
    """Say why nobody can decide a row any more; empty if somebody can."""
    if row.status == InterruptStatus.IN_DOUBT:
        return _("It may have run, or not. It is settled on its own page, not decided.")
    if row.status == InterruptStatus.CANCELLED:
        return _("It was withdrawn; there is nothing left to decide.")
    if row.status != InterruptStatus.PENDING:
        return _("It is decided already: %(what)s, by %(who)s.") % {
            "what": history.decided_words(row.decision),
            "who": plain(row.decided_by_label) or _("nobody"),
        }
    if row.expires_at is not None and row.expires_at <= now:
        return _("The time to decide this has passed.")
    return ""


def _why_not(
    row: PendingInterrupt, verb: str, call: CallArguments, *, in_part: bool
) -> str:
    approve = verb == DecisionType.APPROVE
    if approve and row.kind == InterruptKind.QUESTION:
        return _("A question is answered on its own page, not approved.")
    offered: Any = row.allowed_decisions
    if not isinstance(offered, list) or verb not in offered:
        return _("This decision is not offered for it.")
    if approve and not call.intact:
        return _("The stored arguments are not the ones that the agent asked for.")
    if approve and in_part:
        return _("It does not fit here in full; open it to see and approve all of it.")
    return ""


def _long(html: str) -> bool:
    """Tell whether a value would be broken in half a row."""
    return "desk-nest" in html or len(strip_tags(html)) > HALF_A_ROW
