"""Pydantic AI: agents and models that turns share, and models that fail."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from hitl_approvals import start_turn
from hitl_approvals.registry import registry
from tests.concurrency.meeting import together
from tests.engines import pydantic_ai_scripts as scripts
from tests.engines.pydantic_ai_scripts import PAY, call, played, saying
from tests.support import turns
from tests.support.world import world as the_world

pytestmark = [pytest.mark.engines, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Register an agent for one test; return its name."""

    def register(target: Callable[[Any], Any], name: str = "built") -> str:
        monkeypatch.setitem(registry.agents, name, scripts.define(name, target))
        return name

    return register


@pytest.fixture
def chat_server() -> Iterator[str]:
    """A server that answers as a model's provider does, and keeps connections open."""

    class Answering(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            said = {"role": "assistant", "content": "hi"}
            answer = {
                "id": "1",
                "object": "chat.completion",
                "created": 1,
                "model": "any",
                "choices": [{"index": 0, "finish_reason": "stop", "message": said}],
            }
            body = json.dumps(answer).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_given: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()
    thread.join()
    server.server_close()


def test_an_agent_is_built_once_and_two_do_not_share_it(built: Any) -> None:
    made: list[str] = []

    def factory_of(name: str) -> Callable[[Any], Any]:
        def factory(tools: Any) -> Any:
            made.append(name)
            return saying(lambda _messages: f"from {name}")(tools)

        return factory

    first = built(factory_of("first"), "first")
    second = built(factory_of("second"), "second")

    outputs = [played(name).output for name in (first, second, first)]

    assert outputs == ["from first", "from second", "from first"]
    assert made == ["first", "second"]
    assert the_world.names() == ["pay"] * 3


def test_turns_that_run_beside_each_other_share_no_agent(built: Any) -> None:
    """Its clients keep connections, which belong to the event loop that opened them."""
    meeting = threading.Barrier(2)
    asked: dict[str, set[int]] = {}
    made: list[Any] = []

    def factory(tools: Any) -> Any:
        number = len(made)

        def reply(messages: list[Any], info: Any) -> Any:
            from pydantic_ai.messages import ModelResponse, TextPart

            prompt = messages[0].parts[0].content
            asked.setdefault(prompt, set()).add(number)
            if prompt == "at once":
                meeting.wait(timeout=30)
            return ModelResponse(parts=[TextPart("done")])

        from pydantic_ai import Agent

        made.append(Agent(scripts.model(reply), tools=tools))
        return made[-1]

    name = built(factory)
    start_turn(name, "before", run=True)

    outcomes = together(*(partial(start_turn, name, "at once", run=True),) * 2)

    assert [turn.status for turn in outcomes] == ["completed", "completed"]
    start_turn(name, "after", run=True)
    assert len(made) == 2
    assert asked["at once"] == {0, 1}
    assert len(asked["after"]) == 1


def test_a_real_client_serves_turns_one_after_the_other_and_at_once(
    built: Any, chat_server: str
) -> None:
    def factory(tools: Any) -> Any:
        from pydantic_ai import Agent
        from pydantic_ai.models.openai import OpenAIChatModel
        from pydantic_ai.providers.openai import OpenAIProvider

        provider = OpenAIProvider(base_url=chat_server, api_key="none")
        return Agent(OpenAIChatModel("any", provider=provider), tools=tools)

    name = built(factory)

    def several() -> list[Any]:
        turns_ = [start_turn(name, "go", run=True) for _ in range(4)]
        return [(one.status, one.last_error, one.output) for one in turns_]

    outcomes = together(several, several, several)

    assert outcomes == [[("completed", "", "hi")] * 4] * 3


@pytest.mark.parametrize(
    ("calls", "said"),
    [
        ([call("c1", "nobody"), call("c1", "nobody")], "duplicate"),
        ([call("c1", "nobody")], "exceeded max retries"),
    ],
)
def test_what_would_fail_again_ends_the_turn_at_once(
    monkeypatch: pytest.MonkeyPatch, calls: list[Any], said: str
) -> None:
    monkeypatch.setitem(registry.agents, scripts.NAME, scripts.define())

    turn = turns.begin(calls, calls, calls, agent=scripts.NAME)

    assert turn.status == "failed"
    assert said in turn.error


def test_a_model_that_takes_too_long_is_asked_again_in_the_next_run(
    built: Any,
) -> None:
    asked: list[int] = []

    async def reply(messages: list[Any], info: Any) -> Any:
        from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart

        asked.append(len(messages))
        if len(asked) == 1:
            await asyncio.Event().wait()
        if len(messages) == 1:
            return ModelResponse(parts=[ToolCallPart("pay", PAY["args"], "c1")])
        return ModelResponse(parts=[TextPart("done")])

    def factory(tools: Any) -> Any:
        from pydantic_ai import Agent

        def patience(_context: Any) -> Any:
            return {} if asked else {"request_timeout": 0.2}

        return Agent(scripts.model(reply), tools=tools, model_settings=patience)

    turn = start_turn(built(factory), "go", run=True)

    assert turn.status == "ready"
    assert "timed out" in turn.last_error
    turns.resume(turn)
    turns.decide_and_resume(turn)
    assert (turn.status, turn.output) == ("completed", "done")
    assert asked == [1, 1, 3]
    assert the_world.names() == ["pay"]


def test_a_model_that_fails_is_asked_again_in_the_next_run(built: Any) -> None:
    from pydantic_ai.exceptions import UnexpectedModelBehavior

    failing = [UnexpectedModelBehavior("no answer")]

    def answer(_messages: list[Any]) -> str:
        if failing:
            raise failing.pop()
        return "done"

    turn = played(built(saying(answer)))

    assert turn.status == "ready"
    assert "no answer" in turn.last_error
    turns.resume(turn)
    assert (turn.status, turn.output) == ("completed", "done")
    assert the_world.names() == ["pay"]
