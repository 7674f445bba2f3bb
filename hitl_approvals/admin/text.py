"""Text that an agent or a user wrote, made safe to look at. Everything is escaped here.

What cannot be seen, or changes the order of what can, is shown as its code in place.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from hitl_approvals import text as plain_text

LIMIT = 4000
"""Characters of one value that a page shows; the rest is counted."""

_PLAIN = re.compile(r"[\x20-\x7e\n\t]*")
# Printable by Unicode's categories, and yet nothing is to be seen of them.
_BLANK = frozenset(
    "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0"
) | {chr(code) for code in (*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))}
_TURNING = frozenset(
    "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
)
_BREAK = "break"
_BLANKS = re.compile(f"[{''.join(sorted(_BLANK))}]")
_CHIP = 10
"""What one code weighs against characters, so that no text makes a page of codes."""
_EMOJI_STYLE, _JOINER, _KEYCAP = "\ufe0f", "\u200d", "\u20e3"
_SKIN = "\U0001f3fb\U0001f3fc\U0001f3fd\U0001f3fe\U0001f3ff"


@dataclass(frozen=True, slots=True)
class Shown:
    """A text as HTML, with what a reader has to be told about it."""

    html: SafeString
    hidden: int = 0
    """Characters shown as codes."""
    turning: int = 0
    """Those of them that change the reading direction."""
    left_out: int = 0
    """Characters that the page does not show."""

    def note(self) -> str:
        """Say what the codes are; empty when there are none."""
        return hidden_note(self.hidden, self.turning)


class Redactor(plain_text.Redactor):
    """Says in the reader's language that something was taken out."""

    @property
    def word(self) -> str:
        """What stands in place of a secret."""
        return f"[{_('hidden')}]"


NOTHING_SECRET = Redactor()


def hidden_note(hidden: int, turning: int) -> str:
    """Say how many characters are shown as codes; empty when there are none."""
    notes = []
    if turning:
        notes.append(
            ngettext(
                "%d character that changes the reading direction, shown as a code.",
                "%d characters that change the reading direction, shown as codes.",
                turning,
            )
            % turning
        )
    if rest := hidden - turning:
        notes.append(
            ngettext(
                "%d invisible character, shown as a code.",
                "%d invisible characters, shown as codes.",
                rest,
            )
            % rest
        )
    if notes:
        notes.append(_("They are part of the value."))
    return " ".join(notes)


def show(text: str, *, limit: int | None = LIMIT, one_line: bool = False) -> Shown:
    """Return a text as HTML in which nothing is markup and nothing is invisible.

    Args:
        text: What somebody else wrote.
        limit: How many characters to show; None shows them all.
        one_line: Show line breaks as codes too, so that a row stays a row.
    """
    left_out = 0
    if limit is not None and len(text) > limit:
        left_out, text = len(text) - limit, text[:limit]
    if _PLAIN.fullmatch(text) and not (one_line and "\n" in text):
        return Shown(format_html("{}", text), left_out=left_out)
    parts: list[SafeString] = []
    hidden = turning = done = spent = 0
    for code, run in groupby(
        _marked(text, one_line=one_line), key=lambda pair: pair[0]
    ):
        if limit is not None and spent >= limit:
            break
        chars = "".join(char for _code, char in run)
        done += len(chars)
        spent += _CHIP if code else len(chars)
        if code == _BREAK:
            parts.append(_chip(chars))
        elif code:
            parts.append(_chip(chars))
            hidden += len(chars)
            turning += sum(char in _TURNING for char in chars)
        else:
            parts.append(format_html("{}", chars))
    left_out += len(text) - done
    html = format_html_join("", "{}", ((part,) for part in parts))
    return Shown(html, hidden, turning, left_out)


def plain(text: str, limit: int = 80) -> str:
    """Return a text for titles and attributes: one line, codes instead of the unseen."""
    cut = text if len(text) <= limit else text[: limit - 1] + "…"
    return "".join(
        " " if code == _BREAK else f"[U+{code}]" if code else char
        for code, char in _marked(cut, one_line=True)
    )


def visible(text: str) -> bool:
    """Tell whether a text holds nothing that `show` would show as a code."""
    if text.translate({9: None, 10: None}).isprintable() and not _BLANKS.search(text):
        return True
    return not any(code for code, _char in _marked(text, one_line=False))


def val(text: str, *, one_line: bool = False, limit: int | None = LIMIT) -> SafeString:
    """Return a text in the element that sets off what somebody else wrote."""
    shown = show(text, one_line=one_line, limit=limit)
    html = format_html('<bdi class="desk-val">{}</bdi>', shown.html)
    if shown.left_out:
        html = format_html("{} {}", html, left_out_note(shown.left_out))
    return html


def left_out_note(count: int) -> SafeString:
    """Say how many characters are not shown."""
    text = ngettext("…%d more character", "…%d more characters", count) % count
    return format_html('<span class="desk-quiet">{}</span>', text)


def _marked(text: str, *, one_line: bool) -> Iterator[tuple[str, str]]:
    """Yield each character with its code, or with an empty one if it can be seen."""
    for index, char in enumerate(text):
        if char == "\n":
            yield (_BREAK if one_line else ""), char
        elif (
            (char.isprintable() and char not in _BLANK)
            or char == "\t"
            or _in_emoji(text, index)
        ):
            yield "", char
        else:
            yield f"{ord(char):04X}", char


def _in_emoji(text: str, index: int) -> bool:
    """Tell whether an invisible character only joins or styles a pictogram."""
    char, before = text[index], text[max(index - 1, 0) : index]
    after = text[index + 1 : index + 2]
    if char == _EMOJI_STYLE:
        return after == _KEYCAP or (before > "\x7f" and _symbol(before))
    if char == _JOINER:
        joins = before in (_EMOJI_STYLE, *_SKIN) or _symbol(before)
        return joins and _symbol(after)
    return False


def _symbol(char: str) -> bool:
    return char != "" and unicodedata.category(char) in ("So", "Po", "Sm")


def _chip(chars: str) -> SafeString:
    """Return the code of one character, or of a run of the same one."""
    times = f" ×{len(chars)}" if len(chars) > 1 else ""
    code = "↵" if chars[0] == "\n" else f"U+{ord(chars[0]):04X}"
    return format_html('<span class="desk-code">{}{}</span>', code, times)
