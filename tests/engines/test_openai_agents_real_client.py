"""The SDK's own client against a server of ours: connections outlive a run."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from asgiref.sync import async_to_sync

from hitl_approvals import start_turn
from hitl_approvals.registry import AgentDefinition, registry
from tests.support import agents, turns
from tests.support.world import world

pytestmark = [pytest.mark.engines, pytest.mark.django_db(transaction=True)]
PAY = {
    "type": "function_call",
    "id": "fc_1",
    "call_id": "call_1",
    "name": "pay",
    "arguments": '{"order": "A1", "amount": "5"}',
    "status": "completed",
}
THINKING: dict[str, Any] = {"type": "reasoning", "id": "rs_1", "summary": []}
DONE = {
    "type": "message",
    "id": "msg_1",
    "role": "assistant",
    "status": "completed",
    "content": [{"type": "output_text", "text": "done", "annotations": []}],
}


class Vendor(BaseHTTPRequestHandler):
    """Answers as the Responses API does, and keeps connections open."""

    protocol_version = "HTTP/1.1"

    def __init__(self, asked: list[Any], *args: Any) -> None:
        self.asked = asked
        super().__init__(*args)

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.asked.append(body)
        told = [
            one for one in body["input"] if one.get("type") == "function_call_output"
        ]
        text = json.dumps(
            {
                "id": f"resp_{len(self.asked)}",
                "object": "response",
                "created_at": 1,
                "model": body["model"],
                "status": "completed",
                "output": [DONE] if told else [THINKING, PAY],
                "parallel_tool_calls": True,
                "tool_choice": "auto",
                "tools": [],
                "usage": {
                    "input_tokens": 1,
                    "output_tokens": 1,
                    "total_tokens": 2,
                    "input_tokens_details": {"cached_tokens": 0},
                    "output_tokens_details": {"reasoning_tokens": 0},
                },
            }
        ).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  as inherited
        pass


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """Serve the vendor's API here; what was asked of it."""
    from agents.models import openai_provider

    from hitl_approvals.agents.openai_agents.lasting import lastingly

    found: list[Any] = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Vendor, found))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    place = f"http://127.0.0.1:{server.server_address[1]}/v1"
    monkeypatch.setenv("OPENAI_BASE_URL", place)
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.setattr(openai_provider, "_http_client", None)
    yield found
    async_to_sync(lastingly)(openai_provider.shared_http_client().aclose)
    server.shutdown()
    server.server_close()
    thread.join()


def test_one_process_runs_turn_after_turn_with_the_sdks_own_client(
    asked: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def named(tools: list[Any]) -> Any:
        from agents import Agent

        return Agent(name="named", model="gpt-4.1", tools=tools)

    tools = {one.name: one for one in agents.TOOLS}
    definition = AgentDefinition(
        name="named", target=named, kind="openai_agents", tools=tools
    )
    monkeypatch.setitem(registry.agents, "named", definition)

    for _turn in range(3):
        turn = start_turn("named", "please", run=True)
        assert turn.status == "suspended", turn.last_error
        turns.decide_and_resume(turn)
        assert (turn.status, turn.output) == ("completed", "done"), turn.last_error

    assert world.names() == ["pay"] * 3
    assert len(asked) == 6
    [sent] = [one for one in asked[0]["tools"] if one["name"] == "pay"]
    assert sent["strict"] is False
    assert sent["parameters"]["required"] == ["order", "amount"]
    # What the model thought before its call comes back to it, as vendors demand.
    kinds = [one.get("type", "message") for one in asked[1]["input"]]
    assert kinds == ["message", "reasoning", "function_call", "function_call_output"]
