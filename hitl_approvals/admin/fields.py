"""One field of a form made from a JSON Schema: how it looks, and what was typed into it.

What comes back as it was rendered stands for the very value it was made from, so an
untouched form changes no type and no byte.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from hitl_approvals.admin import parsing
from hitl_approvals.admin.shapes import (
    BOOLEAN,
    MISSING,
    TEXT,
    Shape,
)
from hitl_approvals.admin.text import plain, show
from hitl_approvals.admin.values import json_text, scalar_text
from hitl_approvals.admin.widgets import (
    AREA,
    DAY,
    JSON,
    LINE,
    MINUTE,
    NULL,
    OMIT,
    RADIOS,
    SELECT,
    choice_label,
    same,
    widget_for,
)


@dataclass(slots=True)
class Field:
    """A field with its state; `original` is what stands if nobody touches it."""

    index: int
    name: str
    shape: Shape
    original: Any = MISSING
    required: bool = False
    locked: str = ""
    """`fixed`, `secret` or `large`: shown as far as may be, and sent along unchanged."""
    path: str = ""
    """Name of the HTML field, for one inside a list or an object."""
    forced: bool = False
    """Whether it is written as JSON although its schema has a field of its own for it."""
    raw: str = ""
    null: bool = False
    omit: bool = False
    errors: list[str] = field(default_factory=list)
    widget: str = LINE
    _initial: tuple[str, bool, bool] = ("", False, False)

    def __post_init__(self) -> None:
        self.reset()

    @property
    def key(self) -> str:
        """Name of the HTML field; argument names may clash with the form's own."""
        return self.path or f"f{self.index}"

    @property
    def is_group(self) -> bool:
        """Whether it has parts; a field has none."""
        return False

    @property
    def label(self) -> str:
        """The argument's name, fit for an attribute."""
        return plain(self.name) or _("answer")

    @property
    def about(self) -> SafeString | None:
        """What the schema says of it; an agent may have written that."""
        text = self.shape.description
        return show(text, limit=400).html if text else None

    @property
    def options(self) -> list[tuple[str, str, bool]]:
        """Value, label and whether it is chosen, for radios and selects."""
        found = [(str(number), text) for number, text in enumerate(self._labels())]
        if self.shape.nullable:
            found.append((NULL, _("no value (null)")))
        if self._omission_counts or (self.original is MISSING and not self.required):
            found.append((OMIT, self.omit_label))
        return [(value, text, value == self.raw) for value, text in found]

    @property
    def omit_label(self) -> str:
        """Say what leaving the argument out means."""
        if self.shape.default is MISSING:
            return _("leave out; the tool decides")
        return _("leave out; the tool then uses %s") % self._default

    @property
    def absent_words(self) -> str:
        """Say what the agent's leaving the argument out means."""
        if self.shape.default is MISSING:
            return _("The agent left it out; the tool decides.")
        return _("The agent left it out; the tool then uses %s.") % self._default

    @property
    def rows(self) -> int:
        """How high a text field should be for what is in it."""
        return min(max(self.raw.count("\n") + 2, 3), 14)

    @property
    def _default(self) -> str:
        return plain(json_text(self.shape.default, indent=None), 40)

    @property
    def may_be_null(self) -> bool:
        """Whether there is a tick box for null."""
        return self.shape.nullable and self.widget not in (RADIOS, SELECT, JSON)

    @property
    def may_be_left_out(self) -> bool:
        """Whether there is a tick box for leaving the argument out."""
        return self._omission_counts and self.widget not in (RADIOS, SELECT)

    @property
    def _omission_counts(self) -> bool:
        """Whether leaving it out differs from typing the default that we know."""
        unknown = self.shape.default is MISSING
        return unknown and self.original is not MISSING and not self.required

    @property
    def changed(self) -> bool:
        """Whether what is in the form differs from how it was rendered first."""
        if self._initial == (self.raw, self.null, self.omit):
            return False
        return self.widget != MINUTE or not self._same_minute()

    def reset(self) -> None:
        """Put back what the field was made from."""
        self.forced = False
        if self.locked:
            return
        self.widget = widget_for(self.shape, self.original)
        self._put(self.original)
        self._initial = (self.raw, self.null, self.omit)

    def load(self, value: Any) -> None:
        """Put a value into the field, as JSON if its widget cannot carry it."""
        if value is not MISSING and self.widget != JSON:
            wanted = widget_for(self.shape, value)
            picker = self.widget in (DAY, MINUTE) and value is not None
            if wanted == JSON or (picker and wanted != self.widget):
                self._force()
        self._put(value)
        self.omit = value is MISSING and self.may_be_left_out
        if value is MISSING and not (self.omit or self.required or self.forced):
            # Without a box to tick, only JSON can be empty and mean that it is left out.
            if self.original is not MISSING and self.widget not in (RADIOS, SELECT):
                self._force()
                self.raw = ""
            return
        if self.widget == JSON or value is MISSING or same(value, self.original):
            return
        if not self._brings_back(value):
            self._force()
            self._put(value)

    def place(self, loc: str, message: str) -> None:
        """Note an error that a service found."""
        self.errors.append(f"{loc}: {message}" if loc else message)

    def faults(self, above: str = "") -> Iterator[tuple[str, str, list[str]]]:
        """Yield key, label and errors if it needs another look."""
        if self.errors:
            yield (
                self.key,
                f"{above}, {self.label}" if above else self.label,
                self.errors,
            )

    def _put(self, value: Any) -> None:
        self.null = value is None and self.may_be_null
        self.omit = False
        self.raw = self._text(value)

    def _force(self) -> None:
        self.forced, self.widget = True, JSON
        self._initial = (self._text(self.original), False, False)

    def _brings_back(self, value: Any) -> bool:
        """Tell whether a browser would send this value back as it is."""
        if self.widget != AREA and "\n" in self.raw:
            return False
        found = self.value()
        self.errors = []
        return same(found, value)

    def read(self, data: Mapping[str, Any]) -> None:
        """Take over what was posted; never fails."""
        if data.get(f"{self.key}-as") == "json" and self.widget != JSON:
            self._force()
        if self.key in data or self.widget == RADIOS:
            self.raw = parsing.lines(str(data.get(self.key, "")))
        self.null = self.may_be_null and bool(data.get(f"{self.key}-{NULL}"))
        self.omit = self.may_be_left_out and bool(data.get(f"{self.key}-{OMIT}"))

    def value(self) -> Any:
        """Return the value, or MISSING; what is wrong with it stands in `errors`."""
        self.errors = []
        if not self.changed:
            if self.original is MISSING and self.required:
                self.errors = [self._needed()]
            return self.original
        try:
            return self._parsed()
        except parsing.Unreadable as error:
            self.errors = [str(error)]
            return MISSING

    def _parsed(self) -> Any:
        typed = self.raw != self._initial[0]
        if self.null or self.omit:
            if typed and self.raw != "":
                raise parsing.Unreadable(
                    _("You typed a value and ticked a box that replaces it; keep one.")
                )
            if self.null and self.omit:
                raise parsing.Unreadable(_("Tick one of the two boxes, not both."))
            return None if self.null else MISSING
        if self.widget in (RADIOS, SELECT):
            return self._chosen()
        if self.raw == "" and not (
            self.widget in (LINE, AREA)
            and self.shape.kind == TEXT
            and self.original is not MISSING
        ):
            if (self.original is MISSING or self.forced) and not self.required:
                return MISSING
            raise parsing.Unreadable(self._needed())
        if self.widget == JSON:
            return parsing.json_value(self.raw)
        return parsing.READERS[self.shape.kind](self.raw, self.original)

    def _chosen(self) -> Any:
        if self.raw == NULL and self.shape.nullable:
            return None
        if self.raw == OMIT and not self.required:
            return MISSING
        choices = self._choices()
        if self.raw.isdecimal() and int(self.raw[:6]) < len(choices):
            return choices[int(self.raw[:6])]
        if self.raw == "" and self.original is MISSING and not self.required:
            return MISSING
        raise parsing.Unreadable(_("Choose one."))

    def _choices(self) -> tuple[Any, ...]:
        return (True, False) if self.shape.kind == BOOLEAN else self.shape.choices

    def _labels(self) -> list[str]:
        if self.shape.labels and self.shape.kind != BOOLEAN:
            named = zip(self.shape.labels, self._choices(), strict=True)
            # Whoever wrote the schema must not call one value by another's name.
            return [f"{plain(text)} ({choice_label(one)})" for text, one in named]
        return [choice_label(one) for one in self._choices()]

    def _needed(self) -> str:
        return _("A value is needed here.")

    def _same_minute(self) -> bool:
        """Browsers drop the seconds of `18:00:00`; that is no change."""
        if self.null or self.omit or self.original in (None, MISSING):
            return False
        try:
            posted = datetime.fromisoformat(self.raw)
        except ValueError:
            return False
        return posted == datetime.fromisoformat(self._initial[0])

    def _text(self, value: Any) -> str:
        if self.widget in (RADIOS, SELECT):
            return self._choice_of(value)
        if value is MISSING or (value is None and self.widget != JSON):
            return ""
        if self.widget == JSON:
            return json_text(value)
        if self.widget == MINUTE:
            return parsing.local_minute(value).isoformat(timespec="minutes")
        return value if isinstance(value, str) else scalar_text(value)

    def _choice_of(self, value: Any) -> str:
        if value is MISSING:
            return "" if self.required else OMIT
        if value is None:
            return NULL
        for number, one in enumerate(self._choices()):
            if same(one, value):
                return str(number)
        return ""
