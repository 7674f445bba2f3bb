"""The page of numbers: what is open, and how a period's calls were decided."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import pairwise

from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.utils import timezone
from django.utils.formats import date_format, number_format
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from hitl_approvals import permissions
from hitl_approvals.admin import charts, paging, status_line
from hitl_approvals.admin.base import DeskAdmin, person
from hitl_approvals.admin.text import show
from hitl_approvals.admin.times import moment, span
from hitl_approvals.admin.widgets import zone_name
from hitl_approvals.enums import DecisionType
from hitl_approvals.figures.decided import KINDS, MOST, Shares
from hitl_approvals.figures.report import AGES, DEFAULT_PERIOD, PERIODS, Report, report
from hitl_approvals.figures.timing import SAMPLE, Times

ROWS = 25
"""Tools that the table shows; the rest are one row."""
LOOKS = {
    DecisionType.APPROVE: charts.Look("desk-f1"),
    DecisionType.EDIT: charts.Look("desk-f2"),
    DecisionType.RESPOND: charts.Look("desk-f5"),
    DecisionType.REJECT: charts.Look("desk-f3", charts.HATCH),
    DecisionType.EXPIRE: charts.Look("desk-f4", charts.DOTS),
}


@dataclass(frozen=True, slots=True)
class Line:
    """A row of a table about decisions."""

    name: SafeString | str
    is_tool: bool
    queue: SafeString | str
    total: str
    share: SafeString
    percents: list[str]
    median: str
    slowest: str


def numbers_view(desk: DeskAdmin, request: HttpRequest) -> HttpResponse:
    """Show the numbers of the last days, of the queues that a person may see."""
    if request.method not in ("GET", "HEAD"):
        return HttpResponseNotAllowed(["GET", "HEAD"])
    if not desk.has_view_permission(request):
        return desk.forbidden(request, permissions.why_not_see())
    zone = timezone.get_current_timezone()
    asked = request.GET.get("days", "")
    days = next((one for one in PERIODS if str(one) == asked), DEFAULT_PERIOD)
    found = report(person(request), days=days, zone=zone)
    context = {
        "title": _("Numbers"),
        "report": found,
        "when": _when(found),
        "counted_at": moment(found.now, found.now),
        "periods": [(one, _last_days(one), one == days) for one in PERIODS],
        "capped": _capped(found) if found.capped else "",
        "tiles": _tiles(found),
        "key": _key(),
        "ages": _ages(found),
        "age_chart": _age_chart(found),
        "kinds": list(_names().values()),
        "days": _days(found),
        "day_chart": _day_chart(found),
        "tools": _tools(found),
        "queues": _queues(found),
        "sample": _sample(found),
        "status": status_line.for_desk(desk, request),
        "zone": zone_name(),
    }
    return desk.page(request, "numbers.html", context)


def _names() -> dict[DecisionType, str]:
    return {
        DecisionType.APPROVE: _("Approved"),
        DecisionType.EDIT: _("Edited"),
        DecisionType.RESPOND: _("Answered"),
        DecisionType.REJECT: _("Rejected"),
        DecisionType.EXPIRE: _("Expired"),
    }


def _last_days(days: int) -> str:
    return ngettext("Last %d day", "Last %d days", days) % days


def _when(found: Report) -> str:
    days = list(found.by_day)
    first, last = (date_format(one, "j F Y") for one in (days[0], days[-1]))
    return _("%(first)s to %(last)s") % {"first": first, "last": last}


def _capped(found: Report) -> str:
    since = date_format(timezone.localtime(found.since), "j F Y, H:i:s")
    return _(
        "There were more decisions than are counted here. These are the newest "
        "%(most)s, since %(since)s."
    ) % {"most": number_format(MOST, force_grouping=True), "since": since}


def _sample(found: Report) -> str:
    size = found.timing.decide.sample
    if size < SAMPLE:
        return ""
    return _("Times are those of the newest %s decisions.") % number_format(
        size, force_grouping=True
    )


def _time(value: timedelta | None) -> str:
    if value is None:
        return "–"
    seconds = value.total_seconds()
    if seconds < 10:
        return _("%s s") % number_format(seconds, 1)
    return span(value)


def _tiles(found: Report) -> list[tuple[str, str, str]]:
    waiting, timing = found.waiting, found.timing
    ran = found.decided.counts["approve"] + found.decided.counts["edit"]
    return [
        (_("Open now"), paging.counted(waiting.count), ""),
        (_("Oldest open"), _time(waiting.oldest), ""),
        (_("Time to decide"), _time(timing.decide.median), _("median")),
        (_("Slowest 5 %"), _time(timing.decide.slowest), _("or more")),
        (_("Resumed after"), _time(timing.resume.median), _("median")),
        (
            _("In doubt"),
            paging.counted(waiting.in_doubt),
            _("now; %s let run") % number_format(ran, force_grouping=True),
        ),
    ]


def _key() -> list[tuple[SafeString, str]]:
    return [
        (charts.sample(LOOKS[kind], with_patterns=not number), name)
        for number, (kind, name) in enumerate(_names().items())
    ]


def _age_names() -> list[str]:
    ends = [span(age) for age in AGES]
    names = [_("under %s") % ends[1]]
    for begin, end in pairwise(ends[1:]):
        names.append(_("%(begin)s to %(end)s") % {"begin": begin, "end": end})
    return [*names, _("over %s") % ends[-1]]


def _ages(found: Report) -> list[tuple[str, str]]:
    counts = [paging.counted(one) for one in found.waiting.by_age]
    return list(zip(_age_names(), counts, strict=True))


def _age_chart(found: Report) -> SafeString:
    rows = _ages(found)
    told = ", ".join(f"{name}: {count}" for name, count in rows)
    bars = [
        charts.Bar(name, [charts.Piece(min(number, paging.CAP), _look(), "")], count)
        for (name, count), number in zip(rows, found.waiting.by_age, strict=True)
    ]
    # Out of the f-string, where the tools for translation do not look.
    words = _("Open interrupts by age")
    title = f"{words}. {told}."
    return charts.lying(bars, key="desk-chart-age", title=title)


def _look() -> charts.Look:
    return LOOKS[DecisionType.APPROVE]


def _day_name(day: date) -> str:
    return date_format(day, "j M")


def _pieces(shares: Shares, before: str = "") -> list[charts.Piece]:
    names = _names()
    return [
        charts.Piece(
            shares.counts[kind.value],
            LOOKS[kind],
            f"{before}{names[kind]} {shares.counts[kind.value]}",
        )
        for kind in KINDS
    ]


def _day_chart(found: Report) -> SafeString:
    bars = [
        charts.Bar(
            _day_name(day), _pieces(shares, f"{_day_name(day)}: "), str(shares.total)
        )
        for day, shares in found.by_day.items()
    ]
    title = _("Decisions per day, %s. The table below has every number.") % _when(found)
    return charts.standing(bars, key="desk-chart-day", title=title)


def _days(found: Report) -> list[tuple[str, list[str]]]:
    return [
        (
            date_format(day, "D j M"),
            [
                number_format(number, force_grouping=True)
                for number in (
                    *(shares.counts[kind.value] for kind in KINDS),
                    shares.total,
                )
            ],
        )
        for day, shares in reversed(found.by_day.items())
    ]


def _tools(found: Report) -> list[Line]:
    given = list(found.by_tool.items())
    lines = [
        _line(
            show(tool, limit=80, one_line=True).html if tool else _("Question"),
            shares,
            found.times_of(tool, queue),
            is_tool=bool(tool),
            queue=_title(found, queue),
        )
        for (tool, queue), shares in given[:ROWS]
    ]
    if rest := given[ROWS:]:
        whole = Shares()
        for _key_of, shares in rest:
            for decision, number in shares.counts.items():
                whole.add(decision, number)
        name = ngettext("%d more", "%d more", len(rest)) % len(rest)
        lines.append(_line(name, whole, Times.of([])))
    return lines


def _queues(found: Report) -> list[Line]:
    return [
        _line(_title(found, queue), shares, found.times_in(queue))
        for queue, shares in list(found.by_queue.items())[:ROWS]
    ]


def _title(found: Report, queue: str) -> SafeString:
    return show(found.queues.get(queue, queue), limit=60, one_line=True).html


def _line(
    name: SafeString | str,
    shares: Shares,
    times: Times,
    *,
    is_tool: bool = False,
    queue: SafeString | str = "",
) -> Line:
    percents = _percents([shares.counts[kind.value] for kind in KINDS])
    titled = [
        charts.Piece(piece.value, piece.look, f"{word} {percent}")
        for piece, word, percent in zip(
            _pieces(shares), _names().values(), percents, strict=True
        )
    ]
    return Line(
        name=name,
        is_tool=is_tool,
        queue=queue,
        total=number_format(shares.total, force_grouping=True),
        share=charts.share(titled),
        percents=percents,
        median=_time(times.median),
        slowest=_time(times.slowest),
    )


def _percents(numbers: Sequence[int]) -> list[str]:
    """Return shares in whole percent; what is there is never shown as none of it."""
    whole = sum(numbers) or 1
    made: list[str] = []
    for number in numbers:
        percent = round(100 * number / whole)
        made.append(_("under 1 %") if number and not percent else _("%d %%") % percent)
    return made
