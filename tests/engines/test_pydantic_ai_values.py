"""Pydantic AI: what goes into a turn and what comes out of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from pydantic import BaseModel

from hitl_approvals import start_turn
from hitl_approvals.registry import registry
from tests.engines import pydantic_ai_scripts as scripts
from tests.engines.pydantic_ai_scripts import PAY, played, saying
from tests.support import turns
from tests.support.world import world as the_world

pytestmark = [pytest.mark.engines, pytest.mark.django_db(transaction=True)]


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
