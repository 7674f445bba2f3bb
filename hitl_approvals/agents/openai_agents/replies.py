"""A model's reply as JSON and back, and the conversation as a reviewer reads it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from agents import ModelResponse
from agents.items import TResponseOutputItem
from agents.usage import deserialize_usage, serialize_usage
from pydantic import TypeAdapter

_ITEMS: TypeAdapter[Any] = TypeAdapter(list[TResponseOutputItem])


def dumped(response: ModelResponse) -> dict[str, Any]:
    """Return a reply as the journal keeps it."""
    return {
        "output": [_dumped(item) for item in response.output],
        "usage": serialize_usage(response.usage),
        "response_id": response.response_id,
        "request_id": response.request_id,
    }


def loaded(reply: Mapping[str, Any]) -> ModelResponse:
    """Return a reply as the SDK reads it.

    Raises:
        pydantic.ValidationError: The SDK does not know what is in it.
    """
    return ModelResponse(
        output=_ITEMS.validate_python(reply["output"]),
        usage=deserialize_usage(reply["usage"]),
        response_id=reply["response_id"],
        request_id=reply["request_id"],
    )


def _dumped(item: Any) -> dict[str, Any]:
    if isinstance(item, Mapping):
        made = dict(item)
    else:
        made = item.model_dump(
            mode="json", by_alias=True, exclude_unset=True, warnings=False
        )
    if made.get("type") == "message":
        # Some gateways leave it out, and the SDK does not read a message without it.
        made.setdefault("status", "completed")
    return made


def calls_in(items: Any) -> list[dict[str, Any]]:
    """Return the function calls among items of a conversation."""
    return _of_type(items, "function_call")


def outputs_in(items: Any) -> list[dict[str, Any]]:
    """Return what functions returned, among items of a conversation."""
    return _of_type(items, "function_call_output")


def _of_type(items: Any, kind: str) -> list[dict[str, Any]]:
    if not isinstance(items, list):
        return []
    return [one for one in items if isinstance(one, dict) and one.get("type") == kind]


def conversation(given: Any, reply: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return what the model was told and what it replied, as plain messages."""
    if isinstance(given, str):
        said = [{"role": "user", "content": given}]
    else:
        said = _messages(given)
    replied: dict[str, Any] = {"role": "assistant", "content": ""}
    for one in _messages(reply["output"]):
        # One reply is one message, whatever number of items it consists of.
        if one["content"]:
            replied["content"] = f"{replied['content']}\n{one['content']}".strip()
        replied.setdefault("tool_calls", []).extend(one.get("tool_calls", []))
    return [*said, replied]


def _messages(items: Iterable[Any]) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = []
    for item in items:
        if not isinstance(item, Mapping):
            continue
        kind = item.get("type", "message")
        if kind == "function_call":
            call = {
                "id": item.get("call_id"),
                "name": item.get("name"),
                "args": item.get("arguments"),
            }
            if not made or made[-1]["role"] != "assistant":
                made.append({"role": "assistant", "content": ""})
            made[-1].setdefault("tool_calls", []).append(call)
        elif kind == "function_call_output":
            told = {"role": "tool", "tool_call_id": item.get("call_id")}
            made.append({**told, "content": _text(item.get("output"))})
        elif kind == "message" and item.get("content") is not None:
            role = str(item.get("role", "assistant"))
            made.append({"role": role, "content": _text(item["content"])})
        elif kind != "reasoning":
            made.append({"role": "assistant", "content": f"[{kind}]"})
    return made


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return json.dumps(content, ensure_ascii=False, default=str)
    parts = []
    for part in content:
        known = part if isinstance(part, Mapping) else {}
        text = known.get("text", known.get("refusal"))
        parts.append(text if isinstance(text, str) else f"[{known.get('type', '?')}]")
    return "\n".join(parts)
