"""Pydantic AI: what goes in and comes out of a turn, and how its agents are kept."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from decimal import Decimal
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from pydantic import BaseModel

from hitl_approvals import start_turn
from hitl_approvals.models import AgentTurn
from hitl_approvals.registry import registry
from tests.concurrency.meeting import together
from tests.engines import pydantic_ai_scripts as scripts
from tests.engines.pydantic_ai_scripts import call
from tests.support import turns
from tests.support.world import world as the_world

pytestmark = [pytest.mark.engines, pytest.mark.django_db(transaction=True)]

PAY = call("c1", "pay", order="A1", amount="5")


class Refund(BaseModel):
    order: str
    amount: Decimal


class Shop(BaseModel):
    name: str


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


def saying(answer: Callable[[list[Any]], Any], **options: Any) -> Callable[[Any], Any]:
    """Return a factory whose model pays once and then answers what a function says."""

    def reply(messages: list[Any], info: Any) -> Any:
        from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart

        if len(messages) == 1:
            return ModelResponse(parts=[ToolCallPart("pay", PAY["args"], "c1")])
        said = answer(messages)
        if isinstance(said, str):
            return ModelResponse(parts=[TextPart(said)])
        return ModelResponse(
            parts=[ToolCallPart(info.output_tools[0].name, said, "o1")]
        )

    def factory(tools: Any) -> Any:
        from pydantic_ai import Agent

        return Agent(scripts.model(reply), tools=tools, **options)

    return factory


def played(name: str, given: Any = "go", **options: Any) -> AgentTurn:
    """Start a turn, approve all that it asks for, and go on."""
    turn = start_turn(name, given, run=True, **options)
    turns.decide_and_resume(turn)
    return turn


def test_the_output_is_json_by_its_type(built: Any) -> None:
    said = {"order": "A1", "amount": "5.10"}
    name = built(saying(lambda _messages: said, output_type=Refund))

    turn = played(name)

    assert (turn.status, turn.output) == ("completed", said)


def test_an_output_may_be_one_of_several_types(built: Any) -> None:
    name = built(saying(lambda _messages: "as text", output_type=[Refund, str]))

    assert played(name).output == "as text"


def test_an_agent_that_names_the_pause_itself_may_check_its_output(built: Any) -> None:
    checked: list[str] = []

    def factory(tools: Any) -> Any:
        from pydantic_ai import DeferredToolRequests

        agent = saying(
            lambda _messages: "done", output_type=[str, DeferredToolRequests]
        )(tools)

        @agent.output_validator
        def check(output: Any) -> Any:
            checked.append(output)
            return output

        return agent

    turn = played(built(factory))

    assert (turn.status, turn.output) == ("completed", "done")
    assert checked == ["done"]


@pytest.mark.parametrize(
    ("given", "prompt"),
    [
        ("Refund it", "Refund it"),
        ({"order": "A1"}, '{"order": "A1"}'),
        ([1, 2], "[1, 2]"),
        (["one", "two"], ["one", "two"]),
        ([{"order": "A1"}], '[{"order": "A1"}]'),
    ],
)
def test_the_input_is_the_prompt(built: Any, given: Any, prompt: Any) -> None:
    name = built(saying(lambda messages: json.dumps(messages[0].parts[0].content)))

    assert json.loads(str(played(name, given).output)) == prompt


def test_user_content_is_read_as_such(built: Any) -> None:
    image = {"kind": "image-url", "url": "https://example.com/a.png"}
    name = built(saying(lambda messages: messages[0].parts[0].content[1].url))

    turn = played(name, ["Look", image])

    assert turn.output == image["url"]
    row = turns.only(turn)
    assert row.context["messages"][0]["content"] == "Look\n[image-url]"


def test_the_deps_are_the_execute_options(built: Any) -> None:
    seen: list[Any] = []

    def factory(tools: Any) -> Any:
        agent = saying(lambda _messages: "done", deps_type=Shop)(tools)

        @agent.instructions
        def told(context: Any) -> str:
            seen.append(context.deps)
            return f"You work for {context.deps.name}."

        return agent

    turn = played(built(factory), execute_options={"name": "Kim's"})

    assert turn.status == "completed"
    assert set(map(repr, seen)) == {repr(Shop(name="Kim's"))}


def test_deps_that_do_not_fit_end_the_turn(built: Any) -> None:
    name = built(saying(lambda _messages: "done", deps_type=Shop))

    turn = start_turn(name, "go", run=True, execute_options={"label": "x"})

    assert turn.status == "failed"
    assert "do not fit their type" in turn.error


def test_deps_that_are_no_data_are_refused_with_a_text(built: Any) -> None:
    class Connection:
        pass

    name = built(saying(lambda _messages: "done", deps_type=Connection))

    turn = start_turn(name, "go", run=True)

    assert "keep deps to data" in turn.last_error
    assert the_world.model_calls == []


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


def test_usage_and_the_conversation_are_those_of_the_whole_turn(built: Any) -> None:
    seen: list[Any] = []

    def answer(messages: list[Any]) -> str:
        seen.append({one.conversation_id for one in messages})
        return "done"

    turn = start_turn(built(saying(answer)), "go", run=True, thread_id="t-7")
    assert turn.state["data"]["usage"]["requests"] == 1
    assert turn.state["data"]["steps"] == 1
    turns.decide_and_resume(turn)

    assert seen == [{"t-7"}]


def test_capabilities_of_every_position_leave_the_journal_in_place(built: Any) -> None:
    from pydantic_ai.capabilities import Instrumentation, ModelFallback

    fallback = ModelFallback(scripts.model())
    name = built(
        saying(lambda _messages: "done", capabilities=[Instrumentation(), fallback])
    )

    turn = played(name)

    assert turn.status == "completed", turn.last_error
    assert len(turns.steps(turn, kind="model")) == 2


def test_a_history_that_is_cut_short_keeps_the_calls_apart(built: Any) -> None:
    """Replies are counted by the turn, not by what is left of the conversation."""
    asked: list[int] = []

    def factory(tools: Any) -> Any:
        from pydantic_ai import Agent
        from pydantic_ai.capabilities import ProcessHistory
        from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart

        def reply(messages: list[Any], info: Any) -> Any:
            asked.append(len(messages))
            if len(asked) > 3:
                return ModelResponse(parts=[TextPart("done")])
            return ModelResponse(parts=[ToolCallPart("pay", PAY["args"], "c1")])

        def cut(messages: list[Any]) -> list[Any]:
            return messages[-3:]

        return Agent(
            scripts.model(reply), tools=tools, capabilities=[ProcessHistory(cut)]
        )

    turn = start_turn(built(factory), "go", run=True)
    for _ in range(3):
        turns.decide_and_resume(turn)

    assert turn.status == "completed", turn.last_error
    assert the_world.names() == ["pay"] * 3
    assert len({row.pk for row in turns.rows(turn)}) == 3
