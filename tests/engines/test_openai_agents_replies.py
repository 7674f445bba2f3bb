"""A reply of the SDK's models survives the journal, and reads as plain messages."""

from __future__ import annotations

import json
from typing import Any

import pytest

pytestmark = pytest.mark.engines

TEXT = {"type": "output_text", "text": "I will.", "annotations": []}
MESSAGE = {
    "type": "message",
    "id": "msg_1",
    "role": "assistant",
    "status": "completed",
    "content": [TEXT],
}
CALL = {
    "type": "function_call",
    "id": "fc_1",
    "call_id": "c1",
    "name": "pay",
    "arguments": "{}",
    "status": "completed",
}
REASONING = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [{"type": "summary_text", "text": "thinking"}],
    "encrypted_content": "xyz",
}
SEARCH = {
    "type": "web_search_call",
    "id": "ws_1",
    "status": "completed",
    "action": {"type": "search", "query": "weather", "queries": ["weather"]},
}
REFUSAL = {**MESSAGE, "content": [{"type": "refusal", "refusal": "I will not."}]}


def reply_of(*items: dict[str, Any]) -> Any:
    from agents import ModelResponse, Usage

    usage = Usage(requests=1, input_tokens=3, output_tokens=4, total_tokens=7)
    usage.input_tokens_details.cached_tokens = 2
    return ModelResponse(
        output=list(items),  # type: ignore[arg-type]
        usage=usage,
        response_id="resp_1",
        request_id="req_1",
    )


@pytest.mark.parametrize(
    "item",
    [MESSAGE, CALL, REASONING, SEARCH, REFUSAL],
    ids=lambda item: str(item["type"]),
)
def test_a_reply_comes_back_as_it_was(item: dict[str, Any]) -> None:
    from hitl_approvals.agents.openai_agents.replies import dumped, loaded

    reply = reply_of(item)

    kept = json.loads(json.dumps(dumped(reply)))
    again = loaded(kept)

    assert kept["output"] == [item]
    assert again == reply
    assert [type(one) for one in again.output] == [type(one) for one in reply.output]
    # Fields that nobody set are not sent to the model as null next time.
    assert again.to_input_items() == reply.to_input_items()
    assert again.usage.input_tokens_details.cached_tokens == 2


def test_a_message_without_its_status_can_be_read_again() -> None:
    from agents import ModelResponse, Usage
    from openai.types.responses import ResponseOutputMessage, ResponseOutputText

    from hitl_approvals.agents.openai_agents.replies import dumped, loaded

    text = ResponseOutputText(**TEXT)
    made = ResponseOutputMessage.model_construct(
        id="msg_1", type="message", role="assistant", content=[text]
    )
    reply = ModelResponse(output=[], usage=Usage(), response_id=None)
    reply.output = [made]

    [again] = loaded(dumped(reply)).output

    assert isinstance(again, ResponseOutputMessage)
    assert again.content[0] == text


def test_a_conversation_reads_as_plain_messages() -> None:
    from hitl_approvals.agents.openai_agents.replies import conversation

    given = [
        {"role": "user", "content": [{"type": "input_text", "text": "Look at this:"}]},
        {
            "role": "user",
            "content": [{"type": "input_image", "image_url": "https://x"}],
        },
        REASONING,
        CALL,
        {"type": "function_call_output", "call_id": "c1", "output": {"paid": 1}},
        SEARCH,
    ]

    said = conversation(given, {"output": [REASONING, MESSAGE, CALL]})

    call = {"id": "c1", "name": "pay", "args": "{}"}
    assert said == [
        {"role": "user", "content": "Look at this:"},
        {"role": "user", "content": "[input_image]"},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": '{"paid": 1}'},
        {"role": "assistant", "content": "[web_search_call]"},
        {"role": "assistant", "content": "I will.", "tool_calls": [call]},
    ]
    assert conversation("hello", {"output": [REFUSAL]}) == [
        {"role": "user", "content": "hello"},
        {"role": "assistant", "content": "I will not.", "tool_calls": []},
    ]
