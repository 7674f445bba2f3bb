"""Lists and objects in a form made from a JSON Schema: their parts, one field each.

A part keeps the value that it was made from, whatever is added or removed around it, so
that what nobody touched keeps its type and its bytes. Every group can be written as JSON
instead, and what no form can carry starts that way.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from hitl_approvals.admin import arguments, shapes
from hitl_approvals.admin.fields import Field
from hitl_approvals.admin.part_rules import (
    MAX_DEPTH,
    MAX_PARTS,
    fits,
    has_parts,
    numbers,
)
from hitl_approvals.admin.shapes import ANY, MISSING, TEXT, Shape
from hitl_approvals.admin.text import plain
from hitl_approvals.admin.widgets import NULL, OMIT

MODE, IDS, FORM, AS_JSON = "mode", "ids", "form", "json"


@dataclass(frozen=True, slots=True)
class Part:
    """One entry that can be removed: an item of a list, or a field with its name."""

    id: int
    node: Node
    naming: Field | None = None


class Group:
    """A list or an object; `original` is what stands if nobody touches it."""

    is_group = True
    locked = ""
    widget = "group"

    def __init__(
        self,
        key: str,
        name: str,
        schema: Any,
        root: Any,
        original: Any = MISSING,
        *,
        required: bool = False,
        depth: int = 0,
        fresh: bool = False,
    ) -> None:
        self.key, self.name, self.root = key, name, root
        self.original, self.required, self.depth = original, required, depth
        self.shape = shapes.read(schema, root)
        self.inner = shapes.branch(schema, root, original)
        self.is_list = self.inner.get("type") == "array"
        # In what is new, a part that is needed is a form to fill in; in what was given
        # without it, nothing may appear by itself.
        self._empty_form = fresh and required and original is MISSING
        self._given = original if self.carries(original) else None
        self._errors: list[str] = []
        self.reset()

    def reset(self) -> None:
        """Put back what the group was made from."""
        self.null = self.omit = False
        fitting = self._given is not None and fits(self._given)
        self.as_form = self._empty_form or fitting
        self.plain = self._plain()
        self.__dict__.pop("named", None)
        self._parts: dict[int, Part] = {}
        self.ids = list(range(self._count))

    @property
    def label(self) -> str:
        """The name, fit for an attribute."""
        return plain(self.name) or _("answer")

    @property
    def about(self) -> SafeString | None:
        """What the schema says of it."""
        return self.plain.about

    @property
    def absent_words(self) -> str:
        """Say what the agent's leaving it out means."""
        return self.plain.absent_words

    @property
    def omit_label(self) -> str:
        """Say what leaving it out means."""
        return self.plain.omit_label

    @property
    def errors(self) -> list[str]:
        """What is wrong with it as a whole."""
        return self._errors if self.as_form else self.plain.errors

    @property
    def ids_text(self) -> str:
        """The entries that are there, for the form to send along."""
        return ",".join(map(str, self.ids))

    @property
    def may_be_null(self) -> bool:
        """Whether there is a tick box for null."""
        return self.shape.nullable

    @property
    def may_be_left_out(self) -> bool:
        """Whether there is a tick box for leaving it out."""
        return self.plain.may_be_left_out

    @property
    def may_grow(self) -> bool:
        """Whether entries can be added."""
        return (self.is_list or self._extra is not None) and len(self.ids) < MAX_PARTS

    @cached_property
    def named(self) -> list[Node]:
        """The fields of an object that its schema names, in order."""
        if self.is_list:
            return []
        known, needed = self._known, shapes.required(self.inner)
        given = self._given or {}
        index = {name: number for number, name in enumerate(sorted(known))}
        return [
            make(
                f"{self.key}_p{index[name]}",
                name,
                known[name],
                self.root,
                given.get(name, MISSING),
                required=name in needed,
                depth=self.depth + 1,
                fresh=self.original is MISSING,
            )
            for name in arguments.in_order(self.inner, None, {})
        ]

    @property
    def parts(self) -> list[Part]:
        """The entries that can be removed, as they stand."""
        found = []
        for number, one in enumerate(self.ids):
            part = self._parts.get(one)
            if part is None:
                part = self._parts[one] = self._part(one)
            if self.is_list:
                part.node.name = _("item %d") % (number + 1)
            found.append(part)
        return found

    @property
    def changed(self) -> bool:
        """Whether what is in the form differs from how it was rendered first."""
        if not self.as_form:
            return self.plain.changed
        if self.null or self.omit or self._given is None:
            return True
        return self._content_changed

    def read(self, data: Mapping[str, Any]) -> None:
        """Take over what was posted; never fails."""
        mode = data.get(f"{self.key}-{MODE}")
        if mode in (FORM, AS_JSON):
            self.as_form = mode == FORM
        if not self.as_form:
            self.plain.read(data)
            return
        self.null = self.may_be_null and bool(data.get(f"{self.key}-{NULL}"))
        self.omit = self.may_be_left_out and bool(data.get(f"{self.key}-{OMIT}"))
        ids = data.get(f"{self.key}-{IDS}")
        if ids is not None:
            self.ids = numbers(str(ids))
        for node in self.nodes():
            node.read(data)

    def load(self, value: Any) -> None:
        """Put a value into the group: as a form if that can carry it, else as JSON."""
        self.null = self.omit = False
        self.as_form = self.carries(value) and fits(value)
        if not self.as_form:
            self.plain.load(value)
            return
        if self.is_list:
            self.ids = list(range(len(value)))
            for part, one in zip(self.parts, value, strict=True):
                part.node.load(one)
            return
        for node in self.named:
            node.load(value.get(node.name, MISSING))
        others = [name for name in value if name not in self._known]
        place = {name: number for number, name in enumerate(self._others)}
        fresh = iter(range(len(place), len(place) + len(others)))
        self.ids = []
        for name in others:
            number = place[name] if name in place else next(fresh)
            part = self._parts[number] = self._part(number)
            self.ids.append(number)
            if part.naming is not None:
                part.naming.load(name)
            part.node.load(value[name])

    def value(self) -> Any:
        """Return the value, or MISSING; what is wrong with it stands in the errors."""
        self._errors = []
        if not self.as_form:
            return self.plain.value()
        if not self.changed:
            return self.original
        if self.null or self.omit:
            if self._given is not None and self._content_changed:
                words = _(
                    "You typed a value and ticked a box that replaces it; keep one."
                )
                self._errors = [words]
            elif self.null and self.omit:
                self._errors = [_("Tick one of the two boxes, not both.")]
            return None if self.null else MISSING
        if self.is_list:
            found = [part.node.value() for part in self.parts]
            return [one for one in found if one is not MISSING]
        return self._object()

    def place(self, loc: str, message: str) -> None:
        """Put an error beside the part that it is about."""
        best: tuple[str, Node] | None = None
        for name, node in self._placed() if self.as_form else ():
            inside = loc == name or loc.startswith(f"{name}.")
            if inside and (best is None or len(name) > len(best[0])):
                best = name, node
        if best is None:
            self.errors.append(f"{loc}: {message}" if loc else message)
            return
        best[1].place(loc[len(best[0]) :].lstrip("."), message)

    def faults(self, above: str = "") -> Iterator[tuple[str, str, list[str]]]:
        """Yield key, label and errors of everything that needs another look."""
        title = f"{above}, {self.label}" if above else self.label
        if self.errors:
            yield self.key, title, self.errors
        for node in self.nodes() if self.as_form else ():
            yield from node.faults(title)

    def find(self, key: str) -> Group | None:
        """Return the group of this name, here or inside."""
        if key == self.key:
            return self
        for node in self.nodes() if self.as_form else ():
            if isinstance(node, Group) and (found := node.find(key)):
                return found
        return None

    def add(self) -> None:
        """Add an empty entry."""
        if self.as_form and self.may_grow:
            self.ids.append(max([self._count - 1, *self.ids]) + 1)

    def drop(self, number: int) -> None:
        """Remove an entry."""
        self.ids = [one for one in self.ids if one != number]

    @property
    def _known(self) -> dict[str, Any]:
        return shapes.properties(self.inner)

    @property
    def _others(self) -> list[str]:
        """Names that the object was made from and that its schema does not know."""
        known = self._known
        return sorted(name for name in self._given or {} if name not in known)

    @property
    def _extra(self) -> Any:
        """The schema of fields with names of one's own; None if there may be none."""
        extra = self.inner.get("additionalProperties")
        if isinstance(extra, Mapping) or extra is True:
            return extra
        return {} if not self.is_list and self._others else None

    @property
    def _count(self) -> int:
        """How many removable entries the original has."""
        return len(self._given or ()) if self.is_list else len(self._others)

    @property
    def _content_changed(self) -> bool:
        if self.ids != list(range(self._count)):
            return True
        return any(node.changed for node in self.nodes())

    def _plain(self) -> Field:
        return Field(
            index=0,
            path=self.key,
            name=self.name,
            shape=self.shape,
            original=self.original,
            required=self.required,
        )

    def carries(self, value: Any) -> bool:
        """Tell whether a value is of the kind that has these parts."""
        return isinstance(value, list if self.is_list else Mapping)

    def _part(self, number: int) -> Part:
        if self.is_list:
            given = self._given or []
            value = given[number] if number < len(given) else MISSING
            schema, key = self.inner.get("items"), f"{self.key}_{number}"
            return Part(number, self._new(key, "", schema, value))
        names = self._others
        name: Any = names[number] if number < len(names) else MISSING
        value = MISSING if name is MISSING else (self._given or {})[name]
        shape = Shape(TEXT, _("text"), max_length=80)
        path = f"{self.key}_k{number}"
        naming = Field(0, _("name"), shape, name, required=True, path=path)
        key = f"{self.key}_v{number}"
        node = self._new(key, _("value"), self._extra, value)
        return Part(number, node, naming)

    def _new(self, key: str, name: str, schema: Any, value: Any) -> Node:
        depth, fresh = self.depth + 1, value is MISSING
        return make(key, name, schema, self.root, value, depth=depth, fresh=fresh)

    def nodes(self) -> Iterator[Node]:
        """Yield every field and group inside."""
        yield from self.named
        for part in self.parts:
            if part.naming is not None:
                yield part.naming
            yield part.node

    def _placed(self) -> Iterator[tuple[str, Node]]:
        for node in self.named:
            yield node.name, node
        for number, part in enumerate(self.parts):
            yield part.naming.raw if part.naming else str(number), part.node

    def _object(self) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for node in self.named:
            value = node.value()
            if value is not MISSING:
                made[node.name] = value
        for part in self.parts:
            name = part.naming.value() if part.naming else MISSING
            value = part.node.value()
            if part.naming and not part.naming.errors and name in (*made, *self._known):
                part.naming.errors = [_("This name is there twice.")]
            elif name is not MISSING and value is not MISSING:
                made[name] = value
        return made


Node = Field | Group


def make(
    key: str,
    name: str,
    schema: Any,
    root: Any,
    original: Any = MISSING,
    *,
    required: bool = True,
    depth: int = 0,
    fresh: bool = False,
) -> Node:
    """Return what carries a value of a schema: a group if it has parts, else a field."""
    shape = shapes.read(schema, root)
    inner = shapes.branch(schema, root, original)
    if shape.kind == ANY and depth < MAX_DEPTH and has_parts(inner):
        return Group(
            key,
            name,
            schema,
            root,
            original,
            required=required,
            depth=depth,
            fresh=fresh,
        )
    return Field(
        index=0, path=key, name=name, shape=shape, original=original, required=required
    )
