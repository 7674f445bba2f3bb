"""Forms made from JSON Schema: one to edit a call's arguments, one to answer a question.

They say what a person typed; whether it may be stored is for the services to say.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.utils.translation import gettext as _

from hitl_approvals import selectors
from hitl_approvals.admin import arguments as args
from hitl_approvals.admin import parsing, shapes
from hitl_approvals.admin.fields import Field
from hitl_approvals.admin.shapes import MISSING
from hitl_approvals.admin.text import Redactor
from hitl_approvals.admin.widgets import AREA
from hitl_approvals.exceptions import PayloadRejected
from hitl_approvals.models import PendingInterrupt
from hitl_approvals.schemas import validate_against


class SchemaForm:
    """Fields in order, and the faults that belong to none of them."""

    def __init__(self, fields: Sequence[Field], redactor: Redactor | None = None):
        self.fields = list(fields)
        self.errors: list[str] = []
        self._redactor = redactor or Redactor()

    @property
    def faulty(self) -> list[Field]:
        """The fields that need another look."""
        return [one for one in self.fields if one.errors]

    @property
    def fault_count(self) -> int:
        """How many things need another look."""
        return len(self.faulty) + len(self.errors)

    def read(self, data: Mapping[str, Any]) -> None:
        """Take over what was posted."""
        for one in self.fields:
            if not one.locked:
                one.read(data)

    def load(self, given: Mapping[str, Any]) -> None:
        """Put values into the fields that may be edited."""
        for one in self.fields:
            if not one.locked:
                one.load(given.get(one.name, MISSING))
                one.omit = one.may_be_left_out and one.name not in given

    def put_back(self, key: str) -> None:
        """Undo what was typed into one field."""
        for one in self.fields:
            if one.key == key:
                one.load(one.original)

    def values(self) -> dict[str, Any]:
        """Return what the fields say; `fault_count` tells whether it counts."""
        self.errors = []
        found = {}
        for one in self.fields:
            value = one.original if one.locked else one.value()
            if value is not MISSING:
                found[one.name] = value
        return found

    def place(self, errors: Sequence[Mapping[str, str]]) -> None:
        """Put errors with a dotted place beside the fields that they are about."""
        for error in errors:
            loc = error.get("loc", "")
            message = self._redactor.clean(error.get("message", ""))
            owner = self._owner(loc)
            if owner is None:
                self.errors.append(f"{loc}: {message}" if loc else message)
                continue
            inner = loc[len(owner.name) :].lstrip(".")
            owner.errors.append(f"{inner}: {message}" if inner else message)

    def _owner(self, loc: str) -> Field | None:
        best: Field | None = None
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
        self._object = bool(known) and schema.get("type") == "object"
        if self._object:
            needed = shapes.required(schema)
            index = {name: number for number, name in enumerate(sorted(known))}
            made = [
                Field(
                    index=index[name],
                    name=name,
                    shape=shapes.read(known[name], schema),
                    required=name in needed,
                )
                for name in args.in_order(schema, None, {})
            ]
            super().__init__(made)
            return
        shape = shapes.read(schema or {}, schema or {})
        only = Field(index=0, name="", shape=shape, required=True)
        if self.free:
            only.widget = AREA
        super().__init__([only])

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
        [only] = self.fields
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
    made = []
    for name in arguments.order:
        locked = "fixed" if name in arguments.fixed else ""
        if name in arguments.secret:
            locked = "secret"
        made.append(
            Field(
                index=index[name],
                name=name,
                shape=arguments.shape(name),
                original=arguments.given.get(name, MISSING),
                required=name in needed,
                locked=locked,
            )
        )
    return SchemaForm(made, arguments.redactor())


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
