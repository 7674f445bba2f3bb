"""What a JSON Schema says of one value, in the few kinds that a desk can show and edit.

Pure: reads a schema that stands frozen on a row; follows references inside it only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, TypeGuard

from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from hitl_approvals.admin import limits
from hitl_approvals.admin.text import plain


class Missing(Enum):
    """The type of `MISSING`: not given, which is not null."""

    MISSING = "missing"


MISSING: Final = Missing.MISSING

TEXT, INTEGER, NUMBER, DECIMAL, BOOLEAN = (
    "text",
    "integer",
    "number",
    "decimal",
    "boolean",
)
CHOICE, DATE, DATETIME, ANY = "choice", "date", "datetime", "json"
"""The kinds of field; everything that has none of its own is edited as JSON."""

_MAX_DEPTH = 8
_ANNOTATIONS = (
    "title",
    "description",
    "default",
    "deprecated",
    "examples",
    "unit",
    "x-unit",
)


@dataclass(frozen=True, slots=True)
class Shape:
    """One value as its schema describes it."""

    kind: str
    words: str
    """The type in words, for people."""
    nullable: bool = False
    choices: tuple[Any, ...] = ()
    description: str = ""
    default: Any = MISSING
    max_length: int | None = None
    unit: str = ""
    limits: str = ""
    """What else the schema asks of it, in words."""
    labels: tuple[str, ...] = ()
    """What the choices are called, if the schema says."""


def properties(schema: Any) -> dict[str, Any]:
    """Return the schemas of an object's fields by name."""
    found = schema.get("properties") if isinstance(schema, Mapping) else None
    return dict(found) if isinstance(found, Mapping) else {}


def required(schema: Any) -> list[str]:
    """Return the names that an object must hold, in the schema's order."""
    found = schema.get("required") if isinstance(schema, Mapping) else None
    return [one for one in found if isinstance(one, str)] if _is_list(found) else []


def read(schema: Any, root: Any) -> Shape:
    """Return the shape of the value that a schema inside `root` describes."""
    whole = _resolved(schema, root)
    alternatives = [_resolved(one, root) for one in _alternatives(whole)]
    rest = [one for one in alternatives if one.get("type") != "null"]
    nullable = len(rest) < len(alternatives)
    kind, inner = _kind(rest)
    choices = _choices(inner) if kind == CHOICE else ()
    if None in choices:
        nullable, choices = True, tuple(one for one in choices if one is not None)
    labels = _labels(inner, choices)
    words = _words(kind, inner, rest, labels or choices, root)
    if unit := unit_of(whole, inner):
        words = _("%(type)s, in %(unit)s") % {"type": words, "unit": plain(unit, 40)}
    if nullable:
        words = _("%(type)s, or none") % {"type": words}
    length = inner.get("maxLength")
    about = whole.get("description")
    return Shape(
        kind=kind,
        words=words,
        nullable=nullable,
        choices=choices,
        description=about if isinstance(about, str) else "",
        default=whole.get("default", MISSING),
        max_length=length if isinstance(length, int) else None,
        unit=unit,
        limits=limits.words(inner),
        labels=labels,
    )


def unit_of(*schemas: Mapping[str, Any]) -> str:
    """Return the unit that a schema names: `unit` or `x-unit`, as text."""
    for schema in schemas:
        for key in ("unit", "x-unit"):
            found = schema.get(key)
            if isinstance(found, str) and found.strip():
                return found
    return ""


def branch(schema: Any, root: Any, value: Any) -> dict[str, Any]:
    """Return the one alternative that describes a list or object; empty if unclear."""
    whole = _resolved(schema, root)
    found = [_resolved(one, root) for one in _alternatives(whole)]
    wanted = {"array", "object"}
    if value is not MISSING and value is not None:
        wanted = {"object" if isinstance(value, Mapping) else "array"}
    rest = [one for one in found if one.get("type") != "null"]
    fits = [one for one in rest if one.get("type") in wanted]
    clear = len(fits) == 1 and (value is not MISSING or len(rest) == 1)
    return fits[0] if clear else {}


def _is_list(value: Any) -> TypeGuard[Sequence[Any]]:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _resolved(schema: Any, root: Any, depth: int = 0) -> dict[str, Any]:
    """Follow references and wrappers of one; annotations beside them win."""
    if not isinstance(schema, Mapping) or depth > _MAX_DEPTH:
        return {}
    here = dict(schema)
    wrapped = here.get("allOf") or here.get("anyOf") or here.get("oneOf")
    if isinstance(here.get("$ref"), str):
        target: Any = _target(here["$ref"], root)
    elif _is_list(wrapped) and len(wrapped) == 1 and "type" not in here:
        target = wrapped[0]
    else:
        return here
    inner = _resolved(target, root, depth + 1)
    # A class's docstring describes the class, not this use of it.
    inner.pop("description", None)
    return inner | {key: here[key] for key in _ANNOTATIONS if key in here}


def _target(reference: str, root: Any) -> Any:
    place: Any = root
    if not reference.startswith("#/"):
        return {}
    for part in reference[2:].split("/"):
        name = part.replace("~1", "/").replace("~0", "~")
        place = place.get(name) if isinstance(place, Mapping) else None
    return place


def _alternatives(schema: Mapping[str, Any]) -> list[Any]:
    for key in ("anyOf", "oneOf"):
        given = schema.get(key)
        if _is_list(given):
            return list(given)
    kinds = schema.get("type")
    if _is_list(kinds) and "enum" not in schema:
        return [{**schema, "type": one} for one in kinds]
    return [schema]


def _kind(schemas: list[dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    """Return the kind, and the alternative that says the most about it."""
    types = [one.get("type") for one in schemas]
    if sorted(str(one) for one in types) == ["number", "string"]:
        # What pydantic makes of a Decimal: exact as text, accepted as a number.
        return DECIMAL, schemas[types.index("number")]
    if len(schemas) > 1 and all("const" in one for one in schemas):
        return CHOICE, {"oneOf": schemas}
    if len(schemas) != 1:
        return ANY, {}
    [schema] = schemas
    if "const" in schema or _is_list(schema.get("enum")):
        return CHOICE, schema
    kind = types[0]
    if kind == "string":
        formats = {"date": DATE, "date-time": DATETIME}
        return formats.get(str(schema.get("format")), TEXT), schema
    simple = {"integer": INTEGER, "number": NUMBER, "boolean": BOOLEAN}
    return simple.get(str(kind), ANY), schema


def _choices(schema: Mapping[str, Any]) -> tuple[Any, ...]:
    if "oneOf" in schema:
        return tuple(one["const"] for one in schema["oneOf"])
    return (schema["const"],) if "const" in schema else tuple(schema["enum"])


def _labels(schema: Mapping[str, Any], choices: tuple[Any, ...]) -> tuple[str, ...]:
    """Return what choices are called: titles beside constants, or `x-labels`."""
    named = schema.get("oneOf")
    found: Any = schema.get("x-labels", schema.get("enumNames"))
    if _is_list(named):
        found = [one.get("title", one.get("const")) for one in named]
        if all("title" not in one for one in named):
            return ()
    if not _is_list(found) or len(found) != len(choices):
        return ()
    return tuple(str(one) for one in found)


def _words(
    kind: str,
    schema: Mapping[str, Any],
    rest: list[dict[str, Any]],
    choices: tuple[Any, ...],
    root: Any,
) -> str:
    if kind == CHOICE:
        named = ", ".join(plain(str(one), 24) for one in choices[:6])
        more = ", …" if len(choices) > 6 else ""
        return _("one of %(choices)s") % {"choices": named + more}
    if kind == TEXT:
        formats = {
            "uuid": _("UUID"),
            "email": _("e-mail address"),
            "uri": _("URL"),
            "time": _("time"),
            "duration": _("duration"),
        }
        return formats.get(str(schema.get("format")), pgettext("type", "text"))
    if kind != ANY:
        return {
            INTEGER: _("whole number, exact"),
            NUMBER: pgettext("type", "number"),
            DECIMAL: _("decimal, exact"),
            BOOLEAN: _("true or false"),
            DATE: pgettext("type", "date"),
            DATETIME: _("date and time"),
        }[kind]
    if len(rest) > 1:
        return _("one of several types")
    if schema.get("type") == "array":
        item = _resolved(schema.get("items"), root).get("type")
        lists = {
            "string": _("list of texts"),
            "object": _("list of objects"),
            "integer": _("list of numbers"),
            "number": _("list of numbers"),
        }
        return lists.get(str(item), pgettext("type", "list"))
    if schema.get("type") == "object":
        return pgettext("type", "object")
    return _("any value")
