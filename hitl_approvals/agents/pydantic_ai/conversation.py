"""Messages and prompts of Pydantic AI, as JSON and as the reviewer reads them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    RetryFeedbackPart,
    SystemPromptPart,
    ToolReturnPart,
    UserContent,
    UserPromptPart,
)

_CONTENT: TypeAdapter[Any] = TypeAdapter(list[UserContent])


def dumped(messages: Sequence[ModelMessage]) -> list[Any]:
    """Return messages as JSON."""
    plain: list[Any] = ModelMessagesTypeAdapter.dump_python(list(messages), mode="json")
    return plain


def loaded(plain: Sequence[Any]) -> list[ModelMessage]:
    """Read messages that `dumped` wrote.

    Raises:
        ValidationError: This version of the framework does not know them.
    """
    # As text: only there does pydantic read files back from base64.
    read: list[ModelMessage]
    read = ModelMessagesTypeAdapter.validate_json(json.dumps(list(plain)))
    return read


def prompt_of(given: Any) -> Any:
    """Return a turn's input as a prompt.

    Text is the prompt. A list of texts and of objects with a `kind` is Pydantic AI's own
    user content; None is no prompt at all. Any other JSON is handed over as its text.
    """
    if given is None or isinstance(given, str):
        return given
    if isinstance(given, list) and given and all(map(_is_content, given)):
        try:
            return _CONTENT.validate_json(json.dumps(given))
        except ValidationError:
            pass
    return json.dumps(given, ensure_ascii=False)


def neutral(messages: Sequence[ModelMessage]) -> list[dict[str, Any]]:
    """Return a conversation in the form that reviewers are shown."""
    return [one for message in messages for one in _said(message)]


def _is_content(item: Any) -> bool:
    return isinstance(item, str) or (isinstance(item, dict) and "kind" in item)


def _said(message: ModelMessage) -> Iterator[dict[str, Any]]:
    if isinstance(message, ModelResponse):
        said: dict[str, Any] = {"role": "assistant", "content": message.text or ""}
        if message.tool_calls:
            said["tool_calls"] = [
                {
                    "id": call.tool_call_id,
                    "name": call.tool_name,
                    "args": call.args_as_dict(),
                }
                for call in message.tool_calls
            ]
        yield said
    elif isinstance(message, ModelRequest):
        for part in message.parts:
            if isinstance(part, UserPromptPart):
                yield {"role": "user", "content": _text(part.content)}
            elif isinstance(part, SystemPromptPart):
                yield {"role": "system", "content": part.content}
            elif isinstance(part, ToolReturnPart):
                yield {
                    "role": "tool",
                    "tool_call_id": part.tool_call_id,
                    "name": part.tool_name,
                    "content": part.model_response_str(wrap_if_error=False),
                }
            elif isinstance(part, RetryFeedbackPart):
                yield {"role": "system", "content": _text(part.content)}


def _text(content: Any) -> str:
    """Return what can be read of a content; the rest is named by its kind."""
    if isinstance(content, str):
        return content
    if not isinstance(content, (list, tuple)):
        return str(getattr(content, "content", content))
    shown = []
    for item in content:
        inner = item if isinstance(item, str) else getattr(item, "content", None)
        shown.append(
            inner if isinstance(inner, str) else f"[{getattr(item, 'kind', 'content')}]"
        )
    return "\n".join(shown)
