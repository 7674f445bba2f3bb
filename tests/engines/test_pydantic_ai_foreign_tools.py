"""Pydantic AI: tools that are none of ours, and ours where others call them."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import pytest

from hitl_approvals.registry import registry
from tests.engines import pydantic_ai_scripts as scripts
from tests.engines.pydantic_ai_scripts import call, fails, read_output
from tests.support import agents, turns
from tests.support.world import world as the_world

pytestmark = [pytest.mark.engines, pytest.mark.django_db(transaction=True)]

PAY = call("c1", "pay", order="A1", amount="5")
MAIL = call("c2", "mail", to="kim")
NOTE = call("c3", "note", text="hello")


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Register an agent for one test; return its name."""

    def register(target: Callable[[Any], Any], **options: Any) -> str:
        definition = scripts.define("built", target, **options)
        monkeypatch.setitem(registry.agents, "built", definition)
        return "built"

    return register


def erasing(ran: list[str], *, mark: bool, **options: Any) -> Callable[[Any], Any]:
    """Return a factory whose agent has a tool of its own."""

    def erase(what: str) -> str:
        ran.append(what)
        return "gone"

    def factory(tools: Any) -> Any:
        from pydantic_ai import Tool

        from hitl_approvals.agents.pydantic_ai import ungated

        own = Tool(erase, **options)
        return scripts.scripted([*tools, ungated(own) if mark else own])

    return factory


ERASE = call("c8", "erase", what="all")


def test_a_tool_that_no_gate_stands_before_is_a_visible_stop(built: Any) -> None:
    ran: list[str] = []

    turn = turns.begin([ERASE], agent=built(erasing(ran, mark=False)))

    fails(turn, "No gate stands before `erase`", "ungated(...)")
    assert (ran, the_world.model_calls) == ([], [])


def test_a_tool_that_the_site_lets_be_runs_ungated(built: Any) -> None:
    ran: list[str] = []

    turn = turns.begin([ERASE, PAY], agent=built(erasing(ran, mark=True)))
    turns.decide_and_resume(turn)

    assert turn.status == "completed"
    assert (ran, the_world.names()) == (["all"], ["pay"])


def test_an_ungated_tool_with_an_approval_of_its_own_is_a_visible_stop(
    built: Any,
) -> None:
    ran: list[str] = []
    factory = erasing(ran, mark=True, requires_approval=True)

    turn = turns.begin([PAY, ERASE], agent=built(factory))

    fails(turn, "`erase`", "Pydantic AI's own means", "@tool")
    assert ran == []
    assert turns.rows(turn) == []


@pytest.mark.parametrize("is_async", [True, False])
def test_a_tool_that_is_called_as_a_plain_function_is_a_visible_stop(
    built: Any, is_async: bool
) -> None:
    def sneak() -> str:
        try:
            return str(agents.note(text="hello"))
        except Exception:  # noqa: BLE001  that is what it is here for
            return "all is well"

    async def sneak_async() -> str:
        return sneak()

    def factory(tools: Any) -> Any:
        from hitl_approvals.agents.pydantic_ai import ungated

        own = ungated(sneak_async if is_async else sneak)
        return scripts.scripted([*tools, own])

    name = "sneak_async" if is_async else "sneak"
    turn = turns.begin([call("c8", name)], agent=built(factory))

    fails(turn, "`note` was called as a plain function", "note.unguarded(...)")
    assert turns.steps(turn) == []


def test_a_tool_that_a_hook_adds_late_is_not_entered(built: Any) -> None:
    ran: list[str] = []

    def erase(what: str) -> str:
        ran.append(what)
        return "gone"

    def factory(tools: Any) -> Any:
        from pydantic_ai.capabilities import AbstractCapability
        from pydantic_ai.toolsets import CombinedToolset, FunctionToolset

        class Adding(AbstractCapability[Any]):
            def get_wrapper_toolset(self, toolset: Any) -> Any:
                return CombinedToolset([toolset, FunctionToolset([erase])])

        return scripts.scripted(tools, capabilities=[Adding()])

    turn = turns.begin([ERASE], agent=built(factory))

    fails(turn, "No gate stands before `erase`")
    assert ran == []


@pytest.mark.parametrize("mark", [False, True])
def test_a_tool_of_the_provider_is_used_if_the_site_lets_it_be(
    built: Any, mark: bool
) -> None:
    asked: list[Any] = []

    def factory(tools: Any) -> Any:
        from pydantic_ai import Agent
        from pydantic_ai.capabilities import NativeTool
        from pydantic_ai.messages import ModelResponse, TextPart
        from pydantic_ai.native_tools import MCPServerTool

        from hitl_approvals.agents.pydantic_ai import ungated

        def reply(messages: Any, info: Any) -> Any:
            asked.append(info.model_request_parameters.native_tools)
            return ModelResponse(parts=[TextPart("done")])

        model = scripts.model(reply)
        model.profile = {
            **model.profile,
            "supported_native_tools": frozenset({MCPServerTool}),
        }
        far = MCPServerTool(id="files", url="https://files.example/mcp")
        given = NativeTool(ungated(far) if mark else far)
        return Agent(model, tools=tools, capabilities=[given])

    turn = turns.begin([], agent=built(factory))

    if mark:
        assert (turn.status, turn.output) == ("completed", "done"), turn.last_error
        assert [one.kind for one in asked[0]] == ["mcp_server"]
        return
    fails(turn, "No gate stands before `mcp_server`", "ungated(...)")
    assert asked == []


def test_a_tool_of_a_provider_that_has_none_gives_way_to_a_gated_one(
    built: Any,
) -> None:
    def factory(tools: Any) -> Any:
        from pydantic_ai import Agent
        from pydantic_ai.capabilities import WebSearch

        model = scripts.model()
        model.profile = {**model.profile, "supported_native_tools": frozenset()}
        (pay,) = [one for one in tools if one.name == "pay"]
        others = [one for one in tools if one is not pay]
        return Agent(model, tools=others, capabilities=[WebSearch(local=pay)])

    turn = turns.begin([PAY], agent=built(factory))

    assert turn.status == "suspended", turn.last_error
    turns.decide_and_resume(turn)
    assert turn.status == "completed", turn.last_error
    assert the_world.names() == ["pay"]


def _as_function(told: Callable[[str], str]) -> Any:
    return [told]


def _as_tool(told: Callable[[str], str]) -> Any:
    from pydantic_ai import ToolOutput

    return ToolOutput(told, name="tell")


def _as_text(told: Callable[[str], str]) -> Any:
    from pydantic_ai import TextOutput

    return TextOutput(told)


def _as_prompted(told: Callable[[str], str]) -> Any:
    from pydantic_ai import PromptedOutput

    return PromptedOutput([told, int])


@pytest.mark.parametrize("shape", [_as_function, _as_tool, _as_text, _as_prompted])
@pytest.mark.parametrize("mark", [False, True])
def test_a_function_that_takes_the_output_is_called_if_the_site_lets_it_be(
    built: Any, shape: Callable[..., Any], mark: bool
) -> None:
    ran: list[str] = []

    def tell(what: str) -> str:
        ran.append(what)
        return f"told {what}"

    def factory(tools: Any) -> Any:
        from pydantic_ai import Agent
        from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart

        from hitl_approvals.agents.pydantic_ai import ungated

        def reply(messages: Any, info: Any) -> Any:
            if info.output_tools:
                name = info.output_tools[0].name
                return ModelResponse(parts=[ToolCallPart(name, {"what": "all"}, "o1")])
            if shape is _as_prompted:
                said = {"result": {"kind": "tell", "data": {"what": "all"}}}
                return ModelResponse(parts=[TextPart(json.dumps(said))])
            return ModelResponse(parts=[TextPart("all")])

        given = shape(tell)
        if mark:
            given = (
                [ungated(_as_tool(tell))] if shape is _as_function else ungated(given)
            )
        return Agent(scripts.model(reply), tools=tools, output_type=given)

    turn = turns.begin([], agent=built(factory))

    if mark:
        assert (turn.status, turn.output) == ("completed", "told all"), turn.last_error
        assert ran == ["all"]
        return
    fails(turn, "No gate stands before `tell`", "takes the agent's output")
    assert ran == []


def _of_choices(tell: Callable[[str], str]) -> Any:
    from pydantic_ai import Choice, Choices

    return Choices({"tell": Choice("All.", value=partial(tell, "all"))}, name="Doing")


def _in_a_union(tell: Callable[[str], str]) -> Any:
    return _of_choices(tell) | int


def _in_an_alias(tell: Callable[[str], str]) -> Any:
    from typing_extensions import TypeAliasType

    return TypeAliasType("Both", _in_a_union(tell))


def _cached(tell: Callable[[str], str]) -> Any:
    from pydantic_ai import TextOutput

    return TextOutput(cache(tell))


@pytest.mark.parametrize("shape", [_of_choices, _in_a_union, _in_an_alias, _cached])
@pytest.mark.parametrize("mark", [False, True])
def test_an_action_that_the_output_chooses_runs_if_the_site_lets_it_be(
    built: Any, shape: Callable[..., Any], mark: bool
) -> None:
    ran: list[str] = []

    def tell(what: str) -> str:
        ran.append(what)
        return f"told {what}"

    def factory(tools: Any) -> Any:
        from pydantic_ai import Agent, ToolOutput
        from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart

        from hitl_approvals.agents.pydantic_ai import ungated

        def reply(messages: Any, info: Any) -> Any:
            if info.output_tools:
                name = info.output_tools[0].name
                return ModelResponse(
                    parts=[ToolCallPart(name, {"response": "tell"}, "o1")]
                )
            return ModelResponse(parts=[TextPart("all")])

        given = shape(tell)
        if mark and shape is _cached:
            given = ungated(given)
        elif mark:
            given = [ungated(ToolOutput(_of_choices(tell))), int]
        return Agent(scripts.model(reply), tools=tools, output_type=given)

    turn = turns.begin([], agent=built(factory))

    if mark:
        assert (turn.status, turn.output) == ("completed", "told all"), turn.last_error
        assert ran == ["all"]
        return
    name = "tell" if shape is _cached else "Doing"
    fails(turn, f"No gate stands before `{name}`", "takes the agent's output")
    assert ran == []


def test_a_tool_that_runs_elsewhere_is_a_visible_stop(built: Any) -> None:
    def factory(tools: Any) -> Any:
        from pydantic_ai.tools import ToolDefinition
        from pydantic_ai.toolsets import ExternalToolset

        from hitl_approvals.agents.pydantic_ai import ungated

        schema = {"type": "object", "properties": {}}
        outside = ToolDefinition(name="outside", parameters_json_schema=schema)
        toolset = ungated(ExternalToolset([outside]))
        return scripts.scripted(tools, toolsets=[toolset])

    turn = turns.begin([call("c8", "outside")], agent=built(factory))

    fails(turn, "`outside`", "Pydantic AI's own means")


def marking(tools: Any) -> Any:
    for one in tools:
        one.requires_approval = True
    return scripts.scripted(tools)


def test_a_tool_of_ours_that_the_agent_marks_is_asked_for_by_our_gate(
    built: Any,
) -> None:
    turn = turns.begin([NOTE, PAY], agent=built(marking))

    note, pay = turns.rows(turn)
    assert (note.tool_name, pay.tool_name) == ("note", "pay")
    assert "the agent marks this tool" in note.policy["why"]
    assert note.context["agent_reason"] == "reason 0"
    assert the_world.effects == []

    turns.decide_and_resume(turn)

    assert turn.status == "completed"
    assert the_world.names() == ["note", "pay"]
    assert list(read_output(turn)) == ["c3", "c1"]


def test_a_marked_call_that_does_not_fit_is_told_at_once(built: Any) -> None:
    turn = turns.begin([call("c3", "note", words="hello")], agent=built(marking))

    assert turn.status == "completed"
    assert turns.rows(turn) == []
    outcome, text = read_output(turn)["c3"]
    assert outcome == "failed"
    assert "words" in text


def test_a_marked_call_that_does_not_fit_waits_with_the_others(built: Any) -> None:
    unfit = call("c3", "note", words="hello")
    turn = turns.begin([unfit, PAY], agent=built(marking))

    assert [row.tool_name for row in turns.rows(turn)] == ["pay"]
    turns.decide_and_resume(turn)

    assert turn.status == "completed", turn.last_error
    assert the_world.names() == ["pay"]
    told = read_output(turn)
    assert told["c1"] == ("success", '{"effect": 1}')
    assert told["c3"][0] == "failed"


def test_what_an_ungated_tool_leaves_and_no_row_can_keep_is_a_visible_stop(
    built: Any,
) -> None:
    fetched: list[str] = []

    def fetch() -> Any:
        from pydantic_ai import ToolReturn

        fetched.append("x")
        return ToolReturn(return_value="x", metadata={"connection": object()})

    def factory(tools: Any) -> Any:
        from hitl_approvals.agents.pydantic_ai import ungated

        return scripts.scripted([*tools, ungated(fetch)])

    turn = turns.begin([call("c8", "fetch"), PAY], agent=built(factory))

    # Tried again, it would fetch again, and come to the same end.
    fails(turn, "cannot be kept as JSON")
    assert (fetched, turns.rows(turn)) == (["x"], [])


def test_another_tool_in_a_gated_ones_place_is_not_entered(built: Any) -> None:
    ran: list[str] = []

    def pay(order: str, amount: str) -> str:
        ran.append(order)
        return "paid by nobody's leave"

    def replaced(tools: Any) -> Any:
        from hitl_approvals.agents.pydantic_ai import ungated

        others = [one for one in tools if one.name != "pay"]
        return scripts.scripted([*others, ungated(pay)])

    turn = turns.begin([PAY], agent=built(scripts.scripted))
    built(replaced)
    turns.decide_and_resume(turn)

    assert turn.status == "needs_attention"
    assert "another tool called `pay`" in turn.last_error
    # Approved once, so it ran once: by its own record.
    assert (the_world.names(), ran) == (["pay"], [])
    fresh = turns.begin([PAY], agent="built")
    assert (fresh.status, ran) == ("needs_attention", [])


def test_gated_tools_stay_gated_in_a_toolset_that_the_site_lets_be(built: Any) -> None:
    def factory(tools: Any) -> Any:
        from pydantic_ai.toolsets import FunctionToolset

        from hitl_approvals.agents.pydantic_ai import ungated

        return scripts.scripted([], toolsets=[ungated(FunctionToolset(tools))])

    turn = turns.begin([NOTE, PAY], agent=built(factory))

    assert [row.tool_name for row in turns.waiting(turn)] == ["pay"]
    turns.decide_and_resume(turn)
    assert turn.status == "completed"
    assert the_world.names() == ["note", "pay"]


def test_tools_that_another_agent_calls_are_refused(built: Any) -> None:
    def factory(tools: Any) -> Any:
        from hitl_approvals.agents.pydantic_ai import ungated

        other = scripts.scripted(tools)

        async def delegate() -> str:
            result = await other.run(json.dumps([[NOTE]]))
            return str(result.output)

        return scripts.scripted([*tools, ungated(delegate)])

    turn = turns.begin([call("c8", "delegate")], agent=built(factory))

    fails(turn, "`note`", "another agent's")
