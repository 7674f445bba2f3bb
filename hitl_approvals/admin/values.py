"""JSON values as HTML: exact, typed, bounded. Everything in them is foreign text."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from django.utils.formats import number_format
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from hitl_approvals.admin import dates, shapes
from hitl_approvals.admin.text import hidden_note, left_out_note, show, visible

MAX_ITEMS = 20
"""Entries of a list or object that are shown; the rest is counted."""
MAX_DEPTH = 4
INDENT = 2
WIDEST = 1000
"""Digits of one number that are shown."""
ROOM = 60_000
"""Bytes of HTML that one value may take; what does not fit is counted."""
_NOT_ASCII = re.compile(r"[^\x20-\x7e\n]+")


@dataclass(slots=True)
class Tally:
    """What was met while a value was rendered."""

    hidden: int = 0
    turning: int = 0
    in_part: bool = False
    room: int = ROOM

    def take(self, html: SafeString) -> SafeString:
        """Count what a piece of HTML takes of the room."""
        self.room -= len(html.encode())
        return html

    def note(self) -> str:
        """Say what the codes are; empty when there are none."""
        return hidden_note(self.hidden, self.turning)


@dataclass(frozen=True, slots=True)
class _Meant:
    """What the schema says of a value, if there is one."""

    schema: Any = None
    root: Any = None

    def date(self, text: str) -> SafeString | None:
        """Return a text as a date, if it is meant to be one."""
        if self.schema is None or not 9 < len(text) < 40:
            return None
        kind = shapes.read(self.schema, self.root).kind
        if kind == shapes.DATETIME:
            return dates.moment_html(text)
        return dates.day_html(text) if kind == shapes.DATE else None

    def inside(self, value: Any) -> Callable[[str], _Meant]:
        """Return what says, for a name or an item of a value, what it means."""
        if self.schema is None:
            return lambda _name: self
        inner = shapes.branch(self.schema, self.root, value)
        known = shapes.properties(inner)
        more = inner.get("items", inner.get("additionalProperties"))
        return lambda name: _Meant(known.get(name, more), self.root)


def is_scalar(value: Any) -> bool:
    """Tell whether a JSON value is neither a list nor an object."""
    return not isinstance(value, (list, tuple, Mapping))


def render(
    value: Any,
    tally: Tally,
    *,
    big: bool = False,
    schema: Any = None,
    root: Any = None,
) -> SafeString:
    """Return a value as HTML and note in `tally` what a reader must be told.

    With its schema, found inside `root`, dates are read as dates wherever they stand.
    """
    css = "desk-val desk-big" if big else "desk-val"
    return _render(value, tally, 0, css, _Meant(schema, root))


def brief(value: Any, room: int = 60) -> tuple[SafeString, int]:
    """Return a value on one line, and about how many characters it takes.

    Lists and objects are counted, not shown.
    """
    if isinstance(value, Mapping):
        count = ngettext("%s field", "%s fields", len(value))
        text = count % number_format(len(value), force_grouping=True)
        return format_html('<bdi class="desk-val">{}</bdi>', text), len(text)
    if not is_scalar(value):
        text = items(len(value))
        return format_html('<bdi class="desk-val">{}</bdi>', text), len(text)
    if value is None or value == "":
        html = _nothing(value)
        return html, 12
    text = value if isinstance(value, str) else scalar_text(value)
    shown = show(text, limit=room, one_line=True)
    html = format_html('<bdi class="desk-val">{}</bdi>', shown.html)
    if shown.left_out:
        html = format_html("{} {}", html, left_out_note(shown.left_out))
    return html, min(len(text), room) + (20 if shown.left_out else 0)


def items(count: int) -> str:
    """Say how many entries a list has."""
    number = number_format(count, force_grouping=True)
    return ngettext("%s item", "%s items", count) % number


def scalar_text(value: Any) -> str:
    """Return a number, boolean or null exactly as JSON writes it."""
    return json.dumps(value)


def json_text(value: Any, *, indent: int | None = INDENT) -> str:
    """Return JSON that reads back as the same value and in which all can be seen.

    What cannot be seen is written as an escape; other letters are left readable.
    """
    return escaped(json.dumps(value, ensure_ascii=False, indent=indent))


def escaped(text: str) -> str:
    """Return JSON with escapes for what cannot be seen in it."""
    return _NOT_ASCII.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    text = match.group()
    if visible(text) and "\t" not in text:
        return text
    return "".join(
        char if visible(char) and char != "\t" else json.dumps(char)[1:-1]
        for char in text
    )


def _render(
    value: Any, tally: Tally, depth: int, css: str, meant: _Meant
) -> SafeString:
    if value is None or value == "":
        return tally.take(_nothing(value))
    if isinstance(value, str) and (moment := meant.date(value)) is not None:
        return tally.take(moment)
    if isinstance(value, str):
        quoted = depth > 0 and _reads_as_other(value)
        return tally.take(_text(value, tally, css, quoted=quoted))
    if is_scalar(value):
        shown = show(scalar_text(value), limit=WIDEST)
        tally.in_part = tally.in_part or shown.left_out > 0
        html = format_html('<bdi class="{}">{}</bdi>', css, shown.html)
        if shown.left_out:
            html = format_html("{} {}", html, left_out_note(shown.left_out))
        return tally.take(html)
    if depth >= MAX_DEPTH:
        return tally.take(_deep(value, tally))
    if isinstance(value, Mapping):
        return _mapping(value, tally, depth, meant)
    return _sequence(value, tally, depth, meant)


def _deep(value: Any, tally: Tally) -> SafeString:
    """Return what is nested too deep for lists in lists, as JSON as far as it goes."""
    try:
        text = json_text(value, indent=None)
    except RecursionError:
        tally.in_part = True
        return _quiet(_("nested too deep to show"))
    shown = show(text, limit=400)
    html = format_html('<bdi class="desk-val desk-mono">{}</bdi>', shown.html)
    if not shown.left_out:
        return html
    tally.in_part = True
    return format_html("{} {}", html, left_out_note(shown.left_out))


def _nothing(value: Any) -> SafeString:
    words = _("no value (null)") if value is None else _("empty text")
    return format_html('<span class="desk-quiet">{}</span>', words)


def _text(value: str, tally: Tally, css: str, *, quoted: bool) -> SafeString:
    shown = show(value)
    tally.hidden += shown.hidden
    tally.turning += shown.turning
    template = '<bdi class="{}">“{}”</bdi>' if quoted else '<bdi class="{}">{}</bdi>'
    html = format_html(template, css, shown.html)
    if shown.left_out:
        tally.in_part = True
        return format_html("{} {}", html, left_out_note(shown.left_out))
    if value != value.strip() and not quoted:
        hint = _("begins or ends with white space")
        return format_html('{} <span class="desk-hint">{}</span>', html, hint)
    return html


def _reads_as_other(text: str) -> bool:
    """Tell whether bare text inside a list would be taken for another JSON value."""
    if text != text.strip():
        return True
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _mapping(
    value: Mapping[str, Any], tally: Tally, depth: int, meant: _Meant
) -> SafeString:
    if not value:
        return _quiet(_("no fields"))
    rows = []
    of = meant.inside(value)
    for key, item in islice(value.items(), MAX_ITEMS):
        if tally.room <= 0:
            break
        name = format_html("<code>{}</code>", show(key, limit=80, one_line=True).html)
        html = _render(item, tally, depth + 1, "desk-val", of(key))
        rows.append((tally.take(name), html))
    body = format_html_join("", '<li><span class="desk-k">{}</span> {}</li>', rows)
    flat = depth > 0 and len(value) <= 4 and all(_short(one) for one in value.values())
    left = len(value) - len(rows)
    return _nest("ul", body, left, tally, css="desk-flat" if flat else "")


def _sequence(
    value: Sequence[Any], tally: Tally, depth: int, meant: _Meant
) -> SafeString:
    if not value:
        return _quiet(_("no items"))
    rows = []
    of = meant.inside(value)
    for one in value[:MAX_ITEMS]:
        if tally.room <= 0:
            break
        rows.append((_render(one, tally, depth + 1, "desk-val", of("")),))
    body = format_html_join("", "<li>{}</li>", rows)
    head = format_html('<span class="desk-quiet">{}</span>', items(len(value)))
    left = len(value) - len(rows)
    return format_html("{}{}", head, _nest("ol", body, left, tally))


def _short(value: Any) -> bool:
    """Tell whether a value fits beside others on one line."""
    return is_scalar(value) and not (
        isinstance(value, str) and (len(value) > 24 or "\n" in value)
    )


def _nest(
    tag: str, body: SafeString, left: int, tally: Tally, css: str = ""
) -> SafeString:
    html = format_html('<{} class="desk-nest {}">{}</{}>', tag, css, body, tag)
    tally.room -= 60
    if not left:
        return html
    tally.in_part = True
    rest = number_format(left, force_grouping=True)
    more = _("and %s more, under “As JSON”") % rest
    return format_html("{}{}", html, _quiet(more))


def _quiet(text: str) -> SafeString:
    return format_html('<span class="desk-quiet">{}</span>', text)


def kind_words(value: Any) -> str:
    """Name the JSON type of a value."""
    return {
        "str": _("text"),
        "bool": _("true or false"),
        "int": _("a whole number"),
        "float": _("a number"),
        "NoneType": _("null"),
        "list": _("a list"),
    }.get(type(value).__name__, _("an object"))
