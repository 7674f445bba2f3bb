"""All components of the document by kind and name, and who refers to whom."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from hitl_approvals.api.schema import answers, refusals, requests, webhooks
from hitl_approvals.api.schema.parameters import HEADERS, PARAMETERS
from hitl_approvals.api.schema.shapes import Shape

_PREFIX = "#/components/"


@cache
def components() -> dict[str, dict[str, Shape]]:
    """Return every component that an operation may refer to."""
    return {
        "headers": HEADERS,
        "parameters": PARAMETERS,
        "responses": dict(refusals.responses()),
        "schemas": {
            "Document": {
                "type": "object",
                "description": "An OpenAPI 3.1 document.",
                "required": ["openapi", "info", "paths"],
                "additionalProperties": True,
            },
            **dict(answers.components()),
            **dict(refusals.components()),
            **dict(requests.components()),
            **dict(webhooks.components()),
        },
    }


def needed(node: Any) -> Iterator[tuple[str, str, Shape]]:
    """Find the components that something refers to, and those that these refer to."""
    seen: set[str] = set()
    ahead = [node]
    while ahead:
        for target in _refs(ahead.pop()):
            if target in seen:
                continue
            seen.add(target)
            kind, _, name = target.removeprefix(_PREFIX).partition("/")
            shape = components()[kind][name]
            yield kind, name, shape
            ahead.append(shape)


def _refs(node: Any) -> Iterator[str]:
    if isinstance(node, Mapping):
        target = node.get("$ref")
        if isinstance(target, str) and target.startswith(_PREFIX):
            yield target
        for value in node.values():
            yield from _refs(value)
    elif isinstance(node, list):
        for value in node:
            yield from _refs(value)
