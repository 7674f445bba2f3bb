"""The arguments of one call as rows of a page: in order, typed, with secrets left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext, pgettext

from hitl_approvals import canonical, selectors
from hitl_approvals.admin import shapes, values
from hitl_approvals.admin.text import Redactor, show
from hitl_approvals.exceptions import PayloadRejected
from hitl_approvals.models import PendingInterrupt
from hitl_approvals.text import texts_in

WIDE = 60
"""Longer texts take the type's column too."""
MOST_ROWS = 100
"""Arguments that a page shows; the rest is counted."""
PAGE_ROOM = 200_000
"""Bytes of HTML that all arguments of a page may take."""


@dataclass(slots=True)
class CallArguments:
    """What a row says of its arguments, read once for a page."""

    given: dict[str, Any]
    order: list[str]
    schema: Any
    secret: frozenset[str]
    fixed: frozenset[str]
    intact: bool
    """False if the stored text is not the one that was digested."""
    digest: str

    def redactor(self) -> Redactor:
        """Return what takes this call's secrets out of other texts."""
        found: list[str] = []
        for name in self.secret:
            found += texts_in(self.given.get(name))
        return Redactor(found)

    def shape(self, name: str) -> shapes.Shape:
        """Return what the frozen schema says of one argument."""
        return shapes.read(shapes.properties(self.schema).get(name), self.schema)

    def without_secrets(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """Return arguments in order, each secret one replaced by a word."""
        hidden = f"[{_('hidden')}]"
        names = [name for name in self.order if name in args]
        names += [name for name in args if name not in self.order]
        return {name: hidden if name in self.secret else args[name] for name in names}


@dataclass(slots=True)
class ArgumentRow:
    """One line of the argument table."""

    name: SafeString
    html: SafeString
    type: str
    description: SafeString | None = None
    note: str = ""
    wide: bool = False
    state: str = "given"
    """`given`, `default`, `absent` or `secret`."""


@dataclass(slots=True)
class ArgumentTable:
    """The argument table with the figures of its foot."""

    rows: list[ArgumentRow] = field(default_factory=list)
    secrets: int = 0
    clipped: int = 0
    left_out: int = 0
    """Arguments of which the page shows nothing."""
    tally: values.Tally = field(default_factory=values.Tally)

    @property
    def partial(self) -> bool:
        """Whether anything but secrets is not on the page."""
        return self.in_part > 0

    @property
    def in_part(self) -> int:
        """Arguments that the page does not show in full, or not at all."""
        return self.clipped + self.left_out

    @property
    def summary(self) -> str:
        """Say how much of the call is shown."""
        total = len(self.rows) + self.left_out
        parts = [ngettext("%d argument", "%d arguments", total) % total]
        if self.left_out:
            parts.append(_("%d not shown") % self.left_out)
        if self.clipped:
            parts.append(_("%d shown in part") % self.clipped)
        if self.secrets:
            hidden = ngettext("%d hidden, secret", "%d hidden, secret", self.secrets)
            parts.append(hidden % self.secrets)
        if len(parts) == 1:
            parts.append(_("all shown in full"))
        return ", ".join(parts)


def read(row: PendingInterrupt, *, text: str | None = None) -> CallArguments:
    """Return a call's arguments; `text` stands in for the proposed ones.

    What cannot be read, because somebody changed the row, is empty and not intact.
    """
    stored = row.args_text if text is None else text
    given: Any = {}
    intact = False
    try:
        given = canonical.stored(stored)
        intact = isinstance(given, dict) and (
            text is not None or canonical.digest(stored or "") == row.args_digest
        )
    except (PayloadRejected, UnicodeEncodeError):
        pass
    if not isinstance(given, dict):
        given = {}
    policy: Mapping[str, Any] = row.policy if isinstance(row.policy, dict) else {}
    # The list does without the schema, which may be large.
    deferred = "args_schema" in row.get_deferred_fields()
    schema = None if deferred else row.args_schema
    return CallArguments(
        given=given,
        order=_order(row, policy, schema, given),
        schema=schema,
        secret=frozenset(policy.get("redact") or ()),
        fixed=frozenset(policy.get("fixed") or ()),
        intact=intact,
        digest=row.args_digest,
    )


def read_last(row: PendingInterrupt) -> CallArguments:
    """Return the arguments that may run or ran: the edited ones, if there are any."""
    return read(row, text=row.decision_args_text)


def table(arguments: CallArguments) -> ArgumentTable:
    """Return the rows of the argument table, arguments left out by the agent included."""
    made = ArgumentTable()
    room = PAGE_ROOM
    for name in arguments.order:
        if len(made.rows) >= MOST_ROWS or room <= 0:
            made.left_out += 1
            made.secrets += name in arguments.secret
            continue
        tally = values.Tally(room=min(values.ROOM, room))
        before = tally.room
        row = _row(arguments, name, tally)
        room -= before - tally.room
        made.rows.append(row)
        made.secrets += row.state == "secret"
        made.clipped += tally.in_part
        made.tally.hidden += tally.hidden
        made.tally.turning += tally.turning
    return made


def in_order(
    schema: Any, order: list[str] | None, given: Mapping[str, Any]
) -> list[str]:
    """Return every argument name once: declared order, then required, then the rest."""
    known = shapes.properties(schema)
    names = [name for name in order or () if name in known or name in given]
    names += [name for name in shapes.required(schema) if name in known]
    return list(dict.fromkeys([*names, *known, *given]))


def _order(
    row: PendingInterrupt, policy: Mapping[str, Any], schema: Any, given: dict[str, Any]
) -> list[str]:
    # Canonical text sorts the schema's own keys, so the signature's order is kept apart.
    order = policy.get("order")
    if not isinstance(order, list):
        tool = selectors.tool_of(row)
        order = list(tool.signature.parameters) if tool else None
    return in_order(schema, order, given)


def _row(arguments: CallArguments, name: str, tally: values.Tally) -> ArgumentRow:
    shape = arguments.shape(name)
    label = format_html("<code>{}</code>", show(name, limit=120, one_line=True).html)
    about = show(shape.description, limit=400).html if shape.description else None
    given = name in arguments.given
    value = arguments.given.get(name, shape.default)
    if name in arguments.secret:
        words = _("secret")
        if isinstance(value, str):
            words = ngettext(
                "secret, %d character", "secret, %d characters", len(value)
            )
            words %= len(value)
        html = format_html('<span class="desk-quiet">{}</span>', _("hidden"))
        return ArgumentRow(label, html, words, about, state="secret")
    if value is shapes.MISSING:
        text = _("left out; the tool decides")
        html = format_html('<span class="desk-quiet">{}</span>', text)
        return ArgumentRow(label, html, shape.words, about, state="absent")
    big = name in shapes.required(arguments.schema) and values.is_scalar(value)
    html = value_html(arguments, name, value, tally, big=big)
    return ArgumentRow(
        name=label,
        html=html,
        type=_type(shape, value),
        description=about,
        note=tally.note(),
        wide=isinstance(value, str) and (len(value) > WIDE or "\n" in value),
        state="given" if given else "default",
    )


def value_html(
    call: CallArguments,
    name: str,
    value: Any,
    tally: values.Tally,
    *,
    big: bool = False,
) -> SafeString:
    """Return a value of an argument as its schema means it: dates are read as dates."""
    schema = shapes.properties(call.schema).get(name)
    return values.render(value, tally, big=big, schema=schema, root=call.schema)


def _type(shape: shapes.Shape, value: Any) -> str:
    words = [shape.words]
    if isinstance(value, str):
        lines = value.count("\n") + 1
        if lines > 1:
            words.append(_("%d lines") % lines)
        if shape.kind == shapes.TEXT and len(value) > 24:
            count = ngettext("%d character", "%d characters", len(value))
            words.append(count % len(value))
    if not fits(shape, value):
        given = pgettext("type", "given as %s") % values.kind_words(value)
        words.append(given)
    return ", ".join(words)


def fits(shape: shapes.Shape, value: Any) -> bool:
    """Tell whether a value is of the JSON type that its schema names first."""
    if value is None:
        return shape.nullable or shape.kind == shapes.ANY
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    kinds = {
        shapes.TEXT: isinstance(value, str),
        shapes.DATE: isinstance(value, str),
        shapes.DATETIME: isinstance(value, str),
        shapes.INTEGER: number and (isinstance(value, int) or value.is_integer()),
        shapes.NUMBER: number,
        shapes.DECIMAL: number or isinstance(value, str),
        shapes.BOOLEAN: isinstance(value, bool),
    }
    return kinds.get(shape.kind, True)
