"""Forms made from JSON Schema: one to edit a call's arguments, one to answer a question.

They say what a person typed; whether it may be stored is for the services to say.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from hitl_approvals import canonical, selectors
from hitl_approvals.admin import arguments as args
from hitl_approvals.admin import parsing, shapes
from hitl_approvals.admin.fields import Field
from hitl_approvals.admin.groups import Group, Node, make
from hitl_approvals.admin.shapes import MISSING
from hitl_approvals.admin.text import Redactor
from hitl_approvals.admin.widgets import AREA
from hitl_approvals.exceptions import PayloadRejected
from hitl_approvals.models import PendingInterrupt
from hitl_approvals.schemas import validate_against

MOST_FIELDS = 100
"""Fields of a form; what has no place in it goes along unchanged."""
LONGEST = 48_000
"""Characters of canonical text that one field may hold."""
MOST_INPUTS = 300
"""Fields inside of lists and objects that all of a form may show; Django takes 1,000."""
ALL_TEXT = 120_000
"""The same for all fields together: two steps send it twice, and escaped."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What needs another look, for the summary."""

    key: str
    label: str
    errors: list[str]


class SchemaForm:
    """Fields in order, and the faults that belong to none of them."""

    def __init__(
        self,
        fields: Sequence[Node],
        redactor: Redactor | None = None,
        kept: Mapping[str, Any] | None = None,
    ):
        self.fields = list(fields)
        self.kept = dict(kept or {})
        """Arguments that are not on the page and go along unchanged."""
        self.errors: list[str] = []
        self._redactor = redactor or Redactor()

    @property
    def faulty(self) -> list[Fault]:
        """What needs another look, fields inside of others included."""
        return [Fault(*found) for one in self.fields for found in one.faults()]

    def group(self, key: str) -> Group | None:
        """Return the list or object of this name, however deep it stands."""
        for one in self.fields:
            if isinstance(one, Group) and (found := one.find(key)):
                return found
        return None

    @property
    def fault_count(self) -> int:
        """How many things need another look."""
        return len(self.faulty) + len(self.errors)

    def read(self, data: Mapping[str, Any]) -> None:
        """Take over what was posted."""
        for one in self.fields:
            if not one.locked:
                one.read(data)

    def put_back(self, key: str) -> None:
        """Undo what was typed into one field."""
        for one in self.fields:
            if one.key == key and not one.locked:
                one.reset()

    def values(self) -> dict[str, Any]:
        """Return what the fields say; `fault_count` tells whether it counts."""
        self.errors = []
        found = dict(self.kept)
        for one in self.fields:
            value = one.original if one.locked else one.value()
            if value is not MISSING:
                found[one.name] = value
        return found

    def place(self, errors: Sequence[Mapping[str, str]]) -> None:
        """Put errors with a dotted place beside the fields that they are about."""
        for error in errors:
            loc = error.get("loc", "")
            message = _sentence(self._redactor.clean(error.get("message", "")))
            owner = self._owner(loc)
            if owner is None:
                self.errors.append(f"{loc}: {message}" if loc else message)
                continue
            owner.place(loc[len(owner.name) :].lstrip("."), message)

    def _owner(self, loc: str) -> Node | None:
        best: Node | None = None
        for one in self.fields:
            fits = loc == one.name or loc.startswith(f"{one.name}.")
            if fits and (best is None or len(one.name) > len(best.name)):
                best = one
        return best


class AnswerForm(SchemaForm):
    """The answer to a question: an object's fields, one value, or free text."""

    def __init__(self, schema: Any) -> None:
        self.free = schema is None
        self.as_json = False
        known = shapes.properties(schema)
        several = 0 < len(known) <= MOST_FIELDS
        self._object = several and schema.get("type") == "object"
        if self._object:
            needed = shapes.required(schema)
            index = {name: number for number, name in enumerate(sorted(known))}
            made = [
                make(
                    f"f{index[name]}",
                    name,
                    known[name],
                    schema,
                    required=name in needed,
                    fresh=True,
                )
                for name in args.in_order(schema, None, {})
            ]
            super().__init__(made)
            return
        if not self.free:
            super().__init__([make("f0", "", schema, schema, fresh=True)])
            return
        self._text = Field(0, "", shapes.read({}, {}), required=True)
        self._text.widget = AREA
        super().__init__([self._text])

    def read(self, data: Mapping[str, Any]) -> None:
        super().read(data)
        self.as_json = self.free and data.get("as") == "json"

    def answer(self) -> Any:
        """Return the answer; `fault_count` tells whether it counts."""
        if self.free:
            return self._free()
        found = self.values()
        return found if self._object else found.get("")

    def _free(self) -> Any:
        only = self._text
        self.errors, only.errors = [], []
        if not only.raw.strip():
            only.errors = [_("Type an answer.")]
        elif self.as_json:
            try:
                return parsing.json_value(only.raw)
            except parsing.Unreadable as error:
                only.errors = [str(error)]
        return only.raw


def edit_form(arguments: args.CallArguments) -> SchemaForm:
    """Return the form that edits a call's arguments, filled with the proposed ones."""
    known = shapes.properties(arguments.schema)
    needed = shapes.required(arguments.schema)
    names = {*known, *arguments.given}
    # By the sorted names, which are frozen with the schema; the order shown is not.
    index = {name: number for number, name in enumerate(sorted(names))}
    made: list[Node] = []
    kept: dict[str, Any] = {}
    room, inputs = ALL_TEXT, 0
    for name in arguments.order:
        original = arguments.given.get(name, MISSING)
        if len(made) >= MOST_FIELDS:
            if original is not MISSING:
                kept[name] = original
            continue
        key, required = f"f{index[name]}", name in needed
        size = _size(original)
        locked = "large" if size > min(LONGEST, room) else ""
        if name in arguments.fixed:
            locked = "fixed"
        if name in arguments.secret:
            locked = "secret"
        if not locked:
            room -= size
            schema = known.get(name)
            whole = arguments.schema
            node = make(key, name, schema, whole, original, required=required)
            if isinstance(node, Group) and node.as_form:
                inputs += _inputs(node)
                node.as_form = inputs <= MOST_INPUTS
            made.append(node)
            continue
        made.append(
            Field(
                index=index[name],
                name=name,
                # Nobody types here, so that nothing is made of a long value.
                shape=shapes.Shape(shapes.ANY, arguments.shape(name).words),
                original=original,
                required=required,
                locked=locked,
            )
        )
    return SchemaForm(made, arguments.redactor(), kept)


def _sentence(message: str) -> str:
    """Return what a validator says as a sentence: others stand before and after it."""
    return message if message.endswith((".", "!", "?", "…")) else f"{message}."


def _inputs(node: Node) -> int:
    if not isinstance(node, Group):
        return 1
    return 1 + sum(_inputs(one) for one in node.nodes())


def _size(value: Any) -> int:
    if value is MISSING:
        return 0
    return len(canonical.dumps(value, max_bytes=None, max_depth=None))


def misfits(row: PendingInterrupt, edited: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return where edited arguments do not fit, as the service will see it."""
    errors = validate_against(row.args_schema or {}, dict(edited))
    tool = selectors.tool_of(row)
    known = tool is not None and tool.signature.schema_digest == row.schema_digest
    if errors or tool is None or not known:
        return errors
    try:
        tool.signature.coerce(edited)
    except PayloadRejected as error:
        return error.errors
    return []
