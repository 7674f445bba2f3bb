"""What an edit changes, argument by argument, changed ones first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from hitl_approvals.admin import shapes, values
from hitl_approvals.admin.arguments import CallArguments
from hitl_approvals.admin.shapes import MISSING
from hitl_approvals.admin.text import show
from hitl_approvals.admin.widgets import same

Path = tuple[str | int, ...]
"""Where a part stands: names, and numbers of items from 1."""
MAX_DEPTH = 6
MOST_INSIDE = 40
"""Parts of one value that may differ and still be shown one by one."""
MOST_ALIKE = 60
"""Arguments that stay the same and have a row."""
ROOM = 300_000
"""Bytes of HTML that all values may take."""
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


@dataclass(slots=True)
class _Budget:
    """What a page has room for."""

    root: Any
    room: int = ROOM

    def html(self, schema: Any, value: Any) -> SafeString:
        """Return a value as far as there is room."""
        if value is MISSING:
            return format_html('<span class="desk-quiet">{}</span>', _("left out"))
        tally = values.Tally(room=max(min(values.ROOM, self.room), 0))
        html = values.render(value, tally, schema=schema, root=self.root)
        self.room -= len(html.encode())
        return html


def rows(call: CallArguments, edited: Mapping[str, Any]) -> list[Difference]:
    """Return what an edit changes, field by field, and then what stays the same.

    Secrets stay hidden. Only so many rows of the same are made; `not_shown` counts on.
    """
    budget = _Budget(call.schema)
    made: list[Difference] = []
    alike = []
    for name in _names(call, edited):
        before, after = call.given.get(name, MISSING), edited.get(name, MISSING)
        if same(before, after):
            alike.append(name)
            continue
        if name in call.secret:
            made.append(_hidden(name, _words(before, after), changed=True))
            continue
        made += (
            _row(path, _schema_at(call, path), old, new, budget)
            for path, old, new in _leaves((name,), before, after)
        )
    for name in alike[:MOST_ALIKE]:
        if name in call.secret:
            made.append(_hidden(name, _("same"), changed=False))
            continue
        html = budget.html(_schema_at(call, (name,)), call.given[name])
        made.append(Difference(_label((name,)), html, html, _("same"), changed=False))
    return made


def counts(call: CallArguments, edited: Mapping[str, Any]) -> tuple[int, int]:
    """Return how many arguments differ, and how many there are."""
    names = _names(call, edited)
    changed = sum(
        not same(call.given.get(name, MISSING), edited.get(name, MISSING))
        for name in names
    )
    return changed, len(names)


def not_shown(total: int, changed: int) -> int:
    """Return how many arguments that stay the same have no row."""
    return max(total - changed - MOST_ALIKE, 0)


def _names(call: CallArguments, edited: Mapping[str, Any]) -> list[str]:
    known = set(call.order)
    names = [name for name in call.order if name in call.given or name in edited]
    return names + [name for name in edited if name not in known]


def _leaves(path: Path, before: Any, after: Any) -> Iterator[tuple[Path, Any, Any]]:
    """Yield the smallest parts that differ, each with its place."""
    inside = list(_inside(path, before, after))
    if not inside or len(path) > MAX_DEPTH or len(inside) > MOST_INSIDE:
        yield path, before, after
        return
    for place, old, new in inside:
        yield from _leaves(place, old, new)


def _inside(path: Path, before: Any, after: Any) -> Iterator[tuple[Path, Any, Any]]:
    """Yield the parts of two objects, or of two lists of one length, that differ."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for name in dict.fromkeys([*before, *after]):
            old, new = before.get(name, MISSING), after.get(name, MISSING)
            if not same(old, new):
                yield (*path, name), old, new
    elif isinstance(before, list) and isinstance(after, list):
        if len(before) == len(after):
            for number, (old, new) in enumerate(zip(before, after, strict=True), 1):
                if not same(old, new):
                    yield (*path, number), old, new
            return
        yield from _moved(path, before, after)


def _moved(
    path: Path, before: list[Any], after: list[Any]
) -> Iterator[tuple[Path, Any, Any]]:
    """Yield the items that were added or removed, if nothing else differs."""
    fewer, more = sorted((before, after), key=len)
    extra = []
    at = 0
    for number, one in enumerate(more, 1):
        if at < len(fewer) and same(fewer[at], one):
            at += 1
        else:
            extra.append((number, one))
    if at < len(fewer):
        return
    for number, one in extra:
        added = more is after
        yield (*path, number), MISSING if added else one, one if added else MISSING


def _schema_at(call: CallArguments, path: Path) -> Any:
    """Return what the schema says of a part; None if it says nothing."""
    name = str(path[0])
    schema = shapes.properties(call.schema).get(name)
    value: Any = call.given.get(name)
    for step in path[1:]:
        inner = shapes.branch(schema, call.schema, value)
        if isinstance(step, int):
            schema = inner.get("items")
            inside = isinstance(value, list) and step <= len(value)
            value = value[step - 1] if inside else MISSING
        else:
            more = inner.get("additionalProperties")
            schema = shapes.properties(inner).get(step, more)
            value = value.get(step, MISSING) if isinstance(value, Mapping) else MISSING
    return schema


def _label(path: Path) -> SafeString:
    parts = [
        show(str(one) if isinstance(one, int) else one, limit=120, one_line=True).html
        for one in path
    ]
    return format_html(
        "<code>{}</code>", format_html_join(" › ", "{}", ((one,) for one in parts))
    )


def _hidden(name: str, words: str, *, changed: bool) -> Difference:
    html = format_html('<span class="desk-quiet">{}</span>', _("hidden"))
    return Difference(_label((name,)), html, html, words, changed)


def _row(
    path: Path, schema: Any, before: Any, after: Any, budget: _Budget
) -> Difference:
    if isinstance(before, str) and isinstance(after, str) and before and after:
        old, new = _texts(before, after)
        budget.room -= len(old.encode()) + len(new.encode())
    else:
        old = format_html("<del>{}</del>", budget.html(schema, before))
        new = format_html("<ins>{}</ins>", budget.html(schema, after))
    return Difference(_label(path), old, new, _words(before, after), changed=True)


def _words(before: Any, after: Any) -> str:
    if before is MISSING:
        return _("added")
    if after is MISSING:
        return _("left out")
    old, new = values.kind_words(before), values.kind_words(after)
    if old != new:
        return _("changed, from %(old)s to %(new)s") % {"old": old, "new": new}
    return _("changed")


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
