"""Charts as SVG that the server writes: attributes and classes only, no style, no script.

Every chart has its numbers as a title, and stands beside a table. Kinds of decision are
told apart by pattern and not by colour alone: rejected is hatched, expired dotted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

HATCH, DOTS = "desk-p-hatch", "desk-p-dots"
_WIDTH, _HEIGHT = 520, 190
_LEFT, _TOP, _BOTTOM = 36, 15, 160
_STEPS = 4
_NICE = (1, 2, 4, 6, 8, 10, 12)


@dataclass(frozen=True, slots=True)
class Look:
    """How one kind of value is drawn."""

    fill: str
    """A class."""
    pattern: str = ""
    """What is laid over it."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a bar."""

    value: int
    look: Look
    title: str


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar with its name below it, or before it."""

    label: str
    pieces: Sequence[Piece]
    shown: str
    """Its number as text; a count may have ended at a cap."""

    @property
    def value(self) -> int:
        """The whole bar."""
        return sum(piece.value for piece in self.pieces)


def patterns() -> SafeString:
    """Return the patterns; once a page, and every chart of it may use them."""
    return format_html(
        '<defs><pattern id="{}" width="6" height="6" patternUnits="userSpaceOnUse"'
        ' patternTransform="rotate(45)"><path class="desk-hatch" d="M0 0V6"/></pattern>'
        '<pattern id="{}" width="5" height="5" patternUnits="userSpaceOnUse">'
        '<circle cx="2.5" cy="2.5" r="1" class="desk-dot"/></pattern></defs>',
        HATCH,
        DOTS,
    )


def sample(look: Look, *, with_patterns: bool = False) -> SafeString:
    """Return the little square of a key."""
    return format_html(
        '<svg viewBox="0 0 14 14" aria-hidden="true">{}{}</svg>',
        patterns() if with_patterns else "",
        _rects(look, "", "0", "0", "14", "14"),
    )


def lying(bars: Sequence[Bar], *, key: str, title: str) -> SafeString:
    """Return bars that lie below each other, each with its name before it."""
    most = max((bar.value for bar in bars), default=0) or 1
    rows = []
    for number, bar in enumerate(bars):
        top = 2 + 37 * number
        length = 364 * bar.value / most
        (piece,) = bar.pieces
        rows.append(
            format_html(
                '<text x="96" y="{}" text-anchor="end">{}</text>'
                '<rect class="{}" x="108" y="{}" width="{}" height="24" rx="2"/>'
                '<text x="{}" y="{}">{}</text>',
                top + 16,
                bar.label,
                piece.look.fill,
                top,
                _px(length),
                _px(116 + length),
                top + 16,
                bar.shown,
            )
        )
    return _chart(rows, key, title)


def standing(bars: Sequence[Bar], *, key: str, title: str) -> SafeString:
    """Return bars of pieces that stand beside each other on a scale."""
    most = max((bar.value for bar in bars), default=0)
    top = _scale(most)
    tall = _BOTTOM - _TOP
    parts = []
    for step in range(_STEPS + 1):
        at = _BOTTOM - tall * step / _STEPS
        parts.append(
            format_html(
                '<path class="desk-grid" d="M{} {}H{}"/>'
                '<text class="desk-axis" x="{}" y="{}" text-anchor="end">{}</text>',
                _LEFT,
                _px(at),
                _WIDTH,
                _LEFT - 6,
                _px(at + 4),
                top * step // _STEPS,
            )
        )
    room = (_WIDTH - _LEFT) / max(len(bars), 1)
    named = ceil(len(bars) / 8) or 1
    for number, bar in enumerate(bars):
        parts += _bar(
            bar,
            middle=_LEFT + room * (number + 0.5),
            width=min(40.0, room * 0.7),
            unit=tall / top,
            # The last day is today: it is named, and every so many before it.
            named=(len(bars) - 1 - number) % named == 0,
            counted=len(bars) <= 8,
        )
    return _chart(parts, key, title)


def share(pieces: Iterable[Piece]) -> SafeString:
    """Return one bar of a fixed length, divided into shares; its table says the numbers."""
    given = [piece for piece in pieces if piece.value]
    whole = sum(piece.value for piece in given) or 1
    at = 0.0
    parts = []
    for piece in given:
        length = 300 * piece.value / whole
        parts.append(_rects(piece.look, piece.title, _px(at), "0", _px(length), "18"))
        at += length
    return format_html(
        '<svg viewBox="0 0 300 18" aria-hidden="true" preserveAspectRatio="none">{}</svg>',
        _joined(parts),
    )


def _bar(
    bar: Bar, *, middle: float, width: float, unit: float, named: bool, counted: bool
) -> list[SafeString]:
    parts = []
    left, at = _px(middle - width / 2), float(_BOTTOM)
    for piece in bar.pieces:
        if not piece.value:
            continue
        tall = piece.value * unit
        at -= tall
        parts.append(
            _rects(piece.look, piece.title, left, _px(at), _px(width), _px(tall))
        )
    if counted and bar.value:
        parts.append(_word(middle, at - 6, bar.shown))
    if named:
        parts.append(_word(middle, _BOTTOM + 18, bar.label, "desk-axis"))
    return parts


def _word(x: float, y: float, text: str, kind: str = "") -> SafeString:
    return format_html(
        '<text class="{}" x="{}" y="{}" text-anchor="middle">{}</text>',
        kind,
        _px(x),
        _px(y),
        text,
    )


def _rects(
    look: Look, title: str, x: str, y: str, width: str, height: str
) -> SafeString:
    place = format_html('x="{}" y="{}" width="{}" height="{}"', x, y, width, height)
    told = format_html("<title>{}</title>", title) if title else ""
    rect = format_html('<rect class="{} desk-seg" {}>{}</rect>', look.fill, place, told)
    if not look.pattern:
        return rect
    return format_html(
        '{}<rect fill="url(#{})" {} pointer-events="none"/>', rect, look.pattern, place
    )


def _chart(parts: Iterable[SafeString], key: str, title: str) -> SafeString:
    # Where a page runs from right to left, the ends of texts would change sides.
    return format_html(
        '<svg viewBox="0 0 {} {}" role="img" direction="ltr" aria-labelledby="{}">'
        '<title id="{}">{}</title>{}</svg>',
        _WIDTH,
        _HEIGHT,
        key,
        key,
        title,
        _joined(parts),
    )


def _joined(parts: Iterable[SafeString]) -> SafeString:
    return format_html_join("", "{}", ((part,) for part in parts))


def _scale(most: int) -> int:
    """Return the top of a scale: a round number whose quarters are whole."""
    power: int = 10 ** (len(str(most)) - 1)
    tops = (nice * power for nice in _NICE)
    return next(top for top in tops if top >= most and top % _STEPS == 0)


def _px(value: float) -> str:
    """Return a coordinate, with a point in every language."""
    return f"{value:.1f}"
