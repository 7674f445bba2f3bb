"""What an edit changes, argument by argument, changed ones first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from hitl_approvals.admin import values
from hitl_approvals.admin.arguments import CallArguments
from hitl_approvals.admin.shapes import MISSING
from hitl_approvals.admin.text import show
from hitl_approvals.admin.widgets import same

AROUND = 200
"""Characters of unchanged text shown before and after a change."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One argument before and after."""

    name: SafeString
    before: SafeString
    after: SafeString
    words: str
    changed: bool


def rows(call: CallArguments, edited: Mapping[str, Any]) -> list[Difference]:
    """Return every argument of a call beside its edited value; secrets stay hidden."""
    names = [name for name in call.order if name in call.given or name in edited]
    names += [name for name in edited if name not in call.order]
    made = [
        _row(
            name,
            call.given.get(name, MISSING),
            edited.get(name, MISSING),
            hidden=name in call.secret,
        )
        for name in names
    ]
    return sorted(made, key=lambda one: not one.changed)


def _row(name: str, before: Any, after: Any, *, hidden: bool) -> Difference:
    label = format_html("<code>{}</code>", show(name, limit=120, one_line=True).html)
    changed = not same(before, after)
    words = _words(before, after) if changed else _("same")
    if hidden:
        html = format_html('<span class="desk-quiet">{}</span>', _("hidden"))
        return Difference(label, html, html, words, changed)
    if not changed:
        html = _value(before)
        return Difference(label, html, html, words, changed=False)
    if isinstance(before, str) and isinstance(after, str) and before and after:
        old, new = _texts(before, after)
    else:
        old = format_html("<del>{}</del>", _value(before))
        new = format_html("<ins>{}</ins>", _value(after))
    return Difference(label, old, new, words, changed=True)


def _words(before: Any, after: Any) -> str:
    if before is MISSING:
        return _("added")
    if after is MISSING:
        return _("left out")
    old, new = values.kind_words(before), values.kind_words(after)
    if old != new:
        return _("changed, from %(old)s to %(new)s") % {"old": old, "new": new}
    return _("changed")


def _value(value: Any) -> SafeString:
    if value is MISSING:
        return format_html('<span class="desk-quiet">{}</span>', _("left out"))
    return values.render(value, values.Tally())


def _texts(before: str, after: str) -> tuple[SafeString, SafeString]:
    """Mark what differs between two texts, with some of what does not around it."""
    start = 0
    most = min(len(before), len(after))
    while start < most and before[start] == after[start]:
        start += 1
    end = 0
    while end < most - start and before[-1 - end] == after[-1 - end]:
        end += 1
    # A word with one changed letter reads badly; mark from its beginning.
    while start and not before[start - 1].isspace():
        start -= 1
    while end and not before[len(before) - end].isspace():
        end -= 1
    return _marked(before, start, end, "del"), _marked(after, start, end, "ins")


def _marked(text: str, start: int, end: int, tag: str) -> SafeString:
    stop = len(text) - end
    head, tail = text[:start], text[stop:]
    lead = "…" if len(head) > AROUND else ""
    trail = "…" if len(tail) > AROUND else ""
    middle = show(text[start:stop])
    mark = format_html("<{}>{}</{}>", tag, middle.html, tag) if text[start:stop] else ""
    more = _("…%d more characters") % middle.left_out if middle.left_out else ""
    return format_html(
        '<bdi class="desk-val">{}{}{}{}{}{}</bdi>',
        lead,
        show(head[-AROUND:]).html,
        mark,
        more,
        show(tail[:AROUND]).html,
        trail,
    )
