"""Pieces of JSON Schema 2020-12 that the descriptions share. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

Shape: TypeAlias = dict[str, Any]

WITHOUT_NUL = r"^[^\x00]*$"
"""As a pattern: JSON may hold NUL, text columns may not."""
NOT_BLANK = r"^[^\x00]*\S[^\x00]*$"
ANY: Shape = {}
UUID: Shape = {"type": "string", "format": "uuid"}
MOMENT: Shape = {"type": "string", "format": "date-time"}
ADDRESS: Shape = {"type": "string", "format": "uri"}
OBJECT: Shape = {"type": "object", "additionalProperties": True}
DIGEST: Shape = {"type": "string", "pattern": "^c1:[0-9a-f]{64}$"}
COUNT: Shape = {"type": "integer", "minimum": 0}


def ref(name: str, kind: str = "schemas") -> Shape:
    """Point at a component."""
    return {"$ref": f"#/components/{kind}/{name}"}


def or_null(shape: Mapping[str, Any]) -> Shape:
    """Allow null beside a shape."""
    if "$ref" in shape:
        return {"anyOf": [dict(shape), {"type": "null"}]}
    if isinstance(shape["type"], list):
        return dict(shape)
    wider = {**shape, "type": [shape["type"], "null"]}
    if "enum" in shape:
        wider["enum"] = [*shape["enum"], None]
    return wider


def one_of(values: Iterable[str]) -> Shape:
    """Allow some texts."""
    return {"type": "string", "enum": [str(value) for value in values]}


def text(most: int | None = None, pattern: str = WITHOUT_NUL, least: int = 0) -> Shape:
    """Allow texts that a column can hold."""
    shape: Shape = {"type": "string", "pattern": pattern}
    if least:
        shape["minLength"] = least
    if most is not None:
        shape["maxLength"] = most
    return shape


def list_of(shape: Mapping[str, Any], **more: Any) -> Shape:
    """Allow a list of one shape."""
    return {"type": "array", "items": dict(shape), **more}


def answer(fields: Mapping[str, Any], about: str = "") -> Shape:
    """Describe an object that we write: every field is there, later versions may add."""
    shape: Shape = {
        "type": "object",
        "required": list(fields),
        "properties": dict(fields),
    }
    return {"description": about, **shape} if about else shape


def body(
    fields: Mapping[str, Any], required: Iterable[str] = (), about: str = ""
) -> Shape:
    """Describe an object that we read: what is not known is refused."""
    shape: Shape = {"type": "object", "properties": dict(fields)}
    if needed := list(required):
        shape["required"] = needed
    shape["additionalProperties"] = False
    return {"description": about, **shape} if about else shape


def said(shape: Mapping[str, Any], about: str) -> Shape:
    """Add what a field means."""
    return {**shape, "description": about}
