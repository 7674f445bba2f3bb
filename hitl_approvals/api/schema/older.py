"""Our shapes as OpenAPI 3.0 wants them, for sites whose own document is of that version."""

from __future__ import annotations

from typing import Any


def shape(node: Any) -> Any:
    """Return a shape without what OpenAPI 3.0 does not know."""
    if isinstance(node, list):
        return [shape(one) for one in node]
    if not isinstance(node, dict):
        return node
    older = {name: shape(value) for name, value in node.items()}
    kinds = older.get("type")
    if isinstance(kinds, list):
        (older["type"],) = (kind for kind in kinds if kind != "null")
        older["nullable"] = True
    options = older.get("anyOf")
    if isinstance(options, list) and {"type": "null"} in options:
        (only,) = (one for one in options if one != {"type": "null"})
        del older["anyOf"]
        older |= {"allOf": [only], "nullable": True}
    if isinstance(older.get("exclusiveMinimum"), int):
        older |= {"minimum": older["exclusiveMinimum"], "exclusiveMinimum": True}
    return older
