"""What is particular to agents of the OpenAI Agents SDK; the rest is in the contract."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from hitl_approvals import Edit, Reject, results
from hitl_approvals.exceptions import NotInTurn
from hitl_approvals.models import AgentTurn
from hitl_approvals.registry import AgentDefinition, registry
from hitl_approvals.testing.failpoints import armed
from tests.concurrency.meeting import together
from tests.support import agents, turns
from tests.support.fixtures import world  # noqa: F401  pytest finds it by name
from tests.support.world import Crash
from tests.support.world import world as the_world

pytestmark = [pytest.mark.engines, pytest.mark.django_db(transaction=True)]

Declare = Callable[..., str]


@pytest.fixture
def declare(monkeypatch: pytest.MonkeyPatch) -> Declare:
    """Register a function that makes an agent; return the agent's name."""

    def register(target: Any = None, *tools: Any, name: str = "refunds") -> str:
        from tests.engines.openai_agents_support import playing

        definition = AgentDefinition(
            name=name,
            target=target or playing,
            kind="openai_agents",
            tools={one.name: one for one in tools or agents.TOOLS},
        )
        monkeypatch.setitem(registry.agents, name, definition)
        return name

    return register


def begin(name: str, *replies: list[Any], **options: Any) -> AgentTurn:
    """Start an agent that plays these replies."""
    return started(name, json.dumps(list(replies)), **options)


def started(name: str, given: Any, **options: Any) -> AgentTurn:
    from hitl_approvals import start_turn

    return start_turn(name, given, run=True, **options)


def told(turn: AgentTurn) -> list[str]:
    """Return what an agent that plays its input was told by its tools."""
    assert turn.status == "completed", turn.last_error or turn.error
    found: list[str] = json.loads(turn.output)
    return found


def pay(call_id: str = "c1", order: str = "A1", amount: Any = "5") -> dict[str, Any]:
    return agents.call("pay", call_id, order=order, amount=amount)


NOTE = agents.call("note", "n1", text="hello")


# Calls and their ids


def test_an_id_that_comes_again_is_another_call(declare: Declare) -> None:
    turn = begin(declare(), [pay()], [pay(order="B2")], [pay(order="B2")])

    turns.decide_and_resume(turn)
    turns.decide_and_resume(turn, Reject("no"))
    turns.decide_and_resume(turn)

    assert [args["order"] for _, args in the_world.effects] == ["A1", "B2"]
    assert [row.tool_call_id for row in turns.rows(turn)] == ["c1"] * 3
    assert told(turn)[1] == results.rejected("no")


def test_the_same_id_twice_in_a_reply_is_two_calls(declare: Declare) -> None:
    turn = begin(declare(), [pay(order="A1"), pay(order="B2")])

    first, second = turns.rows(turn)
    turns.decide(first, Reject("no"))
    turns.decide(second, Edit({"order": "B2", "amount": "3", "note": ""}))
    turns.resume(turn)

    assert [args["order"] for _, args in the_world.effects] == ["B2"]
    refused, edited = told(turn)
    assert refused == results.rejected("no")
    assert 'amount from "5" to "3"' in edited


def test_ids_of_calls_in_the_input_are_not_taken_again(declare: Declare) -> None:
    script = json.dumps([[pay()]])
    given = [
        {"role": "user", "content": script},
        {
            "type": "function_call",
            "call_id": "c1",
            "name": "pay",
            "arguments": '{"order": "Z9"}',
        },
        {"type": "function_call_output", "call_id": "c1", "output": "paid before"},
    ]

    turn = started(declare(), given)
    turns.decide_and_resume(turn)

    assert [args["order"] for _, args in the_world.effects] == ["A1"]
    before, now = told(turn)
    assert (before, json.loads(now)) == ("paid before", {"effect": 1})


def test_unreadable_arguments_are_told_and_nobody_is_asked(declare: Declare) -> None:
    broken = {"id": "c0", "name": "pay", "args": '{"order": '}
    turn = begin(declare(), [broken, pay(), NOTE])

    assert [row.tool_call_id for row in turns.rows(turn)] == ["c1"]
    turns.decide_and_resume(turn)

    assert sorted(the_world.names()) == ["note", "pay"]
    assert len(turns.rows(turn)) == 1
    assert any("did not run" in text for text in told(turn))


def test_an_unknown_tool_is_told_by_our_own_text(declare: Declare) -> None:
    turn = begin(declare(), [{"id": "c1", "name": "nope", "args": {}}, NOTE])

    assert results.unknown_tool("nope", [one.name for one in agents.TOOLS]) in told(
        turn
    )
    assert the_world.names() == ["note"]


def test_the_reviewer_sees_the_conversation(declare: Declare) -> None:
    turn = begin(declare(), [NOTE], [pay()])

    context = turns.only(turn).context
    roles = [message["role"] for message in context["messages"]]
    assert roles == ["user", "assistant", "tool", "assistant"]
    assert context["messages"][2]["content"] == json.dumps({"effect": 1})
    assert context["messages"][3] == {
        "role": "assistant",
        "content": "reason 1",
        "tool_calls": [
            {"id": "c1", "name": "pay", "args": '{"order":"A1","amount":"5"}'}
        ],
    }
    assert context["agent_reason"] == "reason 1"


# By-passes


def test_a_body_that_is_reached_undecided_does_not_run(declare: Declare) -> None:
    def careless(tools: list[Any]) -> Any:
        from tests.engines.openai_agents_support import playing

        return playing([replace(one, needs_approval=False) for one in tools])

    turn = begin(declare(careless), [NOTE, pay()])

    assert turn.status == "needs_attention"
    assert "nobody was asked about it" in turn.last_error
    assert the_world.names() == ["note"]
    assert turns.rows(turn) == []


def test_a_call_that_the_sdk_approves_by_itself_does_not_run(declare: Declare) -> None:
    def eager(tools: list[Any]) -> Any:
        from agents import AgentHooks

        from tests.engines.openai_agents_support import playing

        class Approving(AgentHooks):
            async def on_llm_end(self, context: Any, agent: Any, response: Any) -> None:
                from agents import ToolApprovalItem

                for item in response.output:
                    if item.type == "function_call":
                        context.approve_tool(ToolApprovalItem(agent, item))

        made = playing(tools)
        made.hooks = Approving()
        return made

    turn = begin(declare(eager), [pay()])

    assert turn.status == "needs_attention"
    assert the_world.effects == []
    assert turns.step_statuses(turn) == []


def test_a_tool_belongs_to_a_turn(declare: Declare) -> None:
    from agents import RunConfig, Runner

    from hitl_approvals.agents.base import load

    loaded: Any = load(registry.agents[declare()])
    run = Runner.run(
        loaded.agent,
        json.dumps([[NOTE]]),
        run_config=RunConfig(tracing_disabled=True),
    )

    with pytest.raises(Exception, match="belongs to turns") as raised:
        asyncio.run(run)

    assert isinstance(raised.value.__cause__, NotInTurn)
    assert the_world.effects == []


def _blocking(
    blocked: Callable[[str], bool],
    behaviour: str = "reject_content",
    *,
    tool: str = "pay",
) -> Callable[[list[Any]], Any]:
    """Return a factory whose tool has a guardrail that looks at the arguments."""

    def target(tools: list[Any]) -> Any:
        from agents import ToolGuardrailFunctionOutput, tool_input_guardrail

        from tests.engines.openai_agents_support import playing

        @tool_input_guardrail
        def look(data: Any) -> Any:
            if blocked(data.context.tool_arguments):
                said: Any = {"type": behaviour, "message": "not this one"}
                return ToolGuardrailFunctionOutput(None, said)
            return ToolGuardrailFunctionOutput.allow()

        for one in tools:
            if one.name == tool:
                one.tool_input_guardrails = [look]
        return playing(tools)

    return target


def test_what_a_tools_guardrail_refuses_is_asked_of_nobody(declare: Declare) -> None:
    name = declare(_blocking(lambda args: "Z9" in args))
    turn = begin(name, [pay("c1", "Z9"), pay("c2", "A1")], [pay("c3", "Z9")])

    assert [row.args["order"] for row in turns.rows(turn)] == ["A1"]
    assert the_world.effects == []
    turns.decide_and_resume(turn)

    assert [args["order"] for _, args in the_world.effects] == ["A1"]
    assert [text for text in told(turn) if "effect" not in text] == ["not this one"] * 2
    assert len(turns.rows(turn)) == 1


@pytest.mark.parametrize("behaviour", ["reject_content", "raise_exception"])
def test_a_guardrail_is_not_asked_about_what_has_run(
    behaviour: str, declare: Declare
) -> None:
    looked: list[str] = []

    def once_only(args: str) -> bool:
        looked.append(json.loads(args)["order"])
        return "pay" in the_world.names()

    name = declare(_blocking(once_only, behaviour))
    turn = begin(name, [pay("c1", "A1"), pay("c2", "B2")])
    turns.decide_and_resume(turn)

    # The model would be told of the first that it was not paid.
    assert told(turn) == ['{"effect": 1}', '{"effect": 2}']
    assert (the_world.names(), looked) == (["pay", "pay"], ["A1", "B2"])


def test_a_guardrail_is_not_asked_about_what_ran_before_a_crash(
    declare: Declare,
) -> None:
    def once_only(args: str) -> bool:
        return "note" in the_world.names()

    def die() -> None:
        raise Crash

    name = declare(_blocking(once_only, tool="note"))
    with armed("suspend.before_commit", die), pytest.raises(Crash):
        begin(name, [NOTE, pay()])
    turn = AgentTurn.objects.get()
    turns.recover(turn)
    turns.decide_and_resume(turn)

    assert told(turn) == ['{"effect": 1}', '{"effect": 2}']
    assert the_world.names() == ["note", "pay"]


def test_a_guardrail_of_a_class_of_its_own_is_heeded(declare: Declare) -> None:
    def target(tools: list[Any]) -> Any:
        from agents import ToolGuardrailFunctionOutput, ToolInputGuardrail

        from tests.engines.openai_agents_support import playing

        class Never(ToolInputGuardrail[Any]):
            async def run(self, data: Any) -> Any:
                return ToolGuardrailFunctionOutput.reject_content("never")

        for one in tools:
            one.tool_input_guardrails = [Never(partial(print))]
        return playing(tools)

    turn = begin(declare(target), [pay(), NOTE])

    assert told(turn) == ["never"] * 2
    assert (turns.rows(turn), the_world.effects) == ([], [])


@pytest.mark.parametrize("as_tool", [False, True], ids=["over", "tool"])
def test_a_decided_call_that_the_sdk_passes_over_is_a_visible_stop(
    as_tool: bool, declare: Declare
) -> None:
    switched_off: list[bool] = []

    def target(tools: list[Any]) -> Any:
        for one in tools:
            one.is_enabled = lambda context, agent: not switched_off
        return _two(tools, as_tool=as_tool)

    turn = started(declare(target), "please")
    switched_off.append(True)

    turns.decide_and_resume(turn)

    assert turn.status == "needs_attention"
    assert "`pay` was decided, and the SDK passed over it" in turn.last_error
    assert the_world.names() == ["note", "pay"]


def test_the_sdk_gives_no_call_up_that_is_on_record(declare: Declare) -> None:
    def hasty(tools: list[Any]) -> Any:
        for one in tools:
            one.timeout_seconds = 1e-9
        return _with(tools)

    turn = begin(declare(hasty), [NOTE, pay()])
    turns.decide_and_resume(turn)

    # Given up, a call would run and be recorded, and the model be told that it was late.
    assert told(turn) == ['{"effect": 1}', '{"effect": 2}']
    assert the_world.names() == ["note", "pay"]


# Tools that are none of ours


def _foreign(**options: Any) -> Any:
    from agents import function_tool

    async def look() -> str:
        the_world.model_calls.append("looked")
        return "seen"

    return function_tool(look, name_override=options.pop("name", "look"), **options)


def _with(tools: list[Any], *more: Any) -> Any:
    from tests.engines.openai_agents_support import playing

    return playing([*tools, *more])


LOOK = agents.call("look", "l1")


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: _foreign(), "`look` of agent `refunds` is no @tool"),
        (lambda: _foreign(name="pay"), "another tool called `pay`"),
        (lambda: _ungated(_foreign(needs_approval=True)), "needs_approval of its own"),
        (lambda: _web_search(), "`web_search` of agent `refunds` is no @tool"),
    ],
    ids=["a function", "a gated one's name", "its own approval", "a hosted tool"],
)
def test_a_tool_that_is_not_ours_is_refused(
    make: Callable[[], Any], said: str, declare: Declare
) -> None:
    turn = begin(declare(lambda tools: _with(tools, make())), [NOTE])

    assert turn.status == "needs_attention"
    assert said in turn.last_error
    assert (the_world.effects, the_world.model_calls) == ([], [])


def _ungated(tool: Any) -> Any:
    from hitl_approvals.agents.openai_agents import ungated

    return ungated(tool)


def _web_search() -> Any:
    from agents import WebSearchTool

    return WebSearchTool()


def _mcp_server(tools: list[Any]) -> Any:
    from agents.mcp import MCPServerStdio

    made = _with(tools)
    made.mcp_servers = [MCPServerStdio({"command": "true"}, name="files")]
    return made


def _made_on_the_fly(tools: list[Any]) -> Any:
    from agents import Handoff

    async def over(context: Any, given: str) -> Any:
        return _with(tools)

    made = _with(tools)
    made.handoffs = [
        Handoff(
            tool_name="over",
            tool_description="",
            input_json_schema={},
            on_invoke_handoff=over,
            agent_name="somebody",
        )
    ]
    return made


def _approved_as_a_whole(tools: list[Any]) -> Any:
    return _with(tools, _with(tools).as_tool("helper", "Help.", needs_approval=True))


def _kept_by_the_vendor(tools: list[Any]) -> Any:
    made = _with(tools)
    made.prompt = {"id": "pmpt_1"}
    return made


@pytest.mark.parametrize(
    ("target", "said"),
    [
        (_kept_by_the_vendor, "`refunds` has a prompt that is kept by the vendor"),
        (_mcp_server, "`files` of agent `refunds` is no @tool"),
        (_made_on_the_fly, "cannot be told beforehand"),
        (_approved_as_a_whole, "`helper` of agent `refunds` has a needs_approval"),
    ],
)
def test_an_agent_that_nobody_could_gate_is_refused(
    target: Callable[..., Any], said: str, declare: Declare
) -> None:
    turn = begin(declare(target), [NOTE])

    assert turn.status == "needs_attention"
    assert said in turn.last_error
    assert (the_world.effects, the_world.model_calls) == ([], [])


def test_calls_of_a_reply_that_is_on_no_record_do_not_run(declare: Declare) -> None:
    def own_model(tools: list[Any]) -> Any:
        from agents import Agent, RunConfig
        from agents.testing import ScriptedModel, assistant_message, function_call

        pays = function_call("pay", {"order": "A1", "amount": "5"}, call_id="x")
        notes = function_call("note", {"text": "hi"}, call_id="y")
        unrecorded = RunConfig(model=ScriptedModel([[notes, pays]]))
        helper = _with(tools).as_tool("helper", "Help.", run_config=unrecorded)
        asks = [function_call("helper", {"input": "go"}, call_id="x")]
        model = ScriptedModel([asks, [assistant_message("done")]])
        return Agent(name="front", model=model, tools=[helper])

    turn = started(declare(own_model), "please")

    assert turn.status == "needs_attention"
    assert "no reply on record" in turn.last_error
    assert (the_world.effects, turns.rows(turn)) == ([], [])


def test_a_hosted_tools_own_request_is_a_visible_stop(declare: Declare) -> None:
    def hosted(tools: list[Any]) -> Any:
        from agents import Agent, HostedMCPTool
        from agents.testing import ScriptedModel
        from openai.types.responses.response_output_item import McpApprovalRequest

        request = McpApprovalRequest(
            id="m1",
            type="mcp_approval_request",
            name="erase",
            server_label="files",
            arguments="{}",
        )
        config = {"type": "mcp", "server_label": "files", "server_url": "https://x"}
        tool = _ungated(HostedMCPTool(tool_config=config))
        return Agent(name="front", model=ScriptedModel([[request]]), tools=[tool])

    turn = started(declare(hosted), "please")

    assert turn.status == "needs_attention"
    assert "`erase`, which is no gated tool" in turn.last_error


def test_what_a_site_lets_pass_runs_without_gate(declare: Declare) -> None:
    made = declare(lambda tools: _with(tools, _ungated(_foreign())))
    turn = begin(made, [LOOK, pay()])

    turns.decide_and_resume(turn)

    assert told(turn)[0] == "seen"
    assert the_world.model_calls.count("looked") == 1
    assert the_world.names() == ["pay"]


def test_a_prompt_that_a_site_lets_pass_is_handed_on(declare: Declare) -> None:
    made = declare(lambda tools: _ungated(_kept_by_the_vendor(tools)))

    assert told(begin(made, [NOTE])) == ['{"effect": 1}']


def test_what_makes_no_agent_is_a_visible_stop(declare: Declare) -> None:
    turn = begin(declare(lambda tools: "an agent"), [NOTE])

    assert turn.status == "needs_attention"
    assert "returned str" in turn.last_error


def _server() -> Any:
    """Return an MCP server that needs no connection."""
    from agents.mcp import MCPServer
    from mcp.types import Tool

    class Late(MCPServer):
        name = "late"

        async def connect(self) -> None:
            pass

        async def cleanup(self) -> None:
            pass

        async def list_tools(self, *args: Any) -> Any:
            return [Tool(name="look", input_schema={"type": "object"})]

        async def call_tool(self, *args: Any) -> Any:
            raise NotImplementedError

        async def list_prompts(self) -> Any:
            raise NotImplementedError

        async def get_prompt(self, *args: Any) -> Any:
            raise NotImplementedError

    return Late()


def _adding(what: str) -> Callable[[list[Any]], Any]:
    """Return a factory whose agent is given more by a hook, while it runs."""

    def target(tools: list[Any]) -> Any:
        from agents import Agent, AgentHooks

        from tests.engines.openai_agents_support import Playing, play_input

        class Adding(AgentHooks):
            async def on_start(self, context: Any, agent: Any) -> None:
                if what == "a tool":
                    agent.tools.append(_foreign())
                    return
                if what == "an MCP server":
                    agent.mcp_servers.append(_server())
                    return
                other = Agent(name="other", model=Playing(play_input))
                if what == "a handoff":
                    other.tools.append(_foreign())
                    agent.handoffs.append(other)
                else:
                    agent.tools.append(other.as_tool("helper", "Help."))

        made = _with(tools)
        made.hooks = Adding()
        return made

    return target


@pytest.mark.parametrize(
    ("what", "name"),
    [
        ("a tool", "`look`"),
        ("a handoff", "`transfer_to_other`"),
        ("an agent", "`helper`"),
        ("an MCP server", "`late`"),
    ],
)
def test_what_an_agent_is_given_while_it_runs_is_a_visible_stop(
    what: str, name: str, declare: Declare
) -> None:
    turn = begin(declare(_adding(what)), [LOOK], [NOTE])

    assert turn.status == "needs_attention"
    assert f"{name} came to an agent while it ran" in turn.last_error
    assert (the_world.effects, the_world.model_calls) == ([], [])


# MCP servers


def _files(tools: list[Any], **environment: str) -> Any:
    from agents.mcp import MCPServerStdio

    made = _with(tools)
    script = str(Path(__file__).with_name("mcp_files.py"))
    run: Any = {"command": sys.executable, "args": [script], "env": environment}
    made.mcp_servers = [_ungated(MCPServerStdio(run, name="files"))]
    return made


LOOK_AT = agents.call("look", "l1", name="a.txt")


def test_an_mcp_server_that_a_site_lets_pass_serves_every_run(declare: Declare) -> None:
    turn = begin(declare(_files), [LOOK_AT, pay()], [LOOK_AT])

    assert (turn.status, turn.last_error) == ("suspended", "")
    turns.decide_and_resume(turn)

    looks = [text for text in map(str, told(turn)) if "read by" in text]
    assert len(looks) == 2
    # Each run has a server of its own: its connection belongs to the run's event loop.
    assert looks[0] != looks[1]
    assert the_world.names() == ["pay"]


def test_turns_that_run_at_once_share_no_mcp_server(declare: Declare) -> None:
    name = declare(_files)

    done = together(*(lambda: begin(name, [LOOK_AT]),) * 2)

    assert [one.status for one in done] == ["completed"] * 2
    assert len({str(told(one)) for one in done}) == 2


def test_an_mcp_tool_with_a_gated_ones_name_is_not_entered(declare: Declare) -> None:
    turn = begin(declare(lambda tools: _files(tools, FILES_PAYS="1")), [pay()])

    assert [row.tool_name for row in turns.waiting(turn)] == ["pay"]
    turns.decide_and_resume(turn)

    assert told(turn) == ['{"effect": 1}']


def test_an_mcp_tool_in_a_gated_ones_place_is_a_visible_stop(declare: Declare) -> None:
    def target(tools: list[Any]) -> Any:
        others = [one for one in tools if one.name != "pay"]
        return _files(others, FILES_PAYS="1")

    turn = begin(declare(target), [pay()])

    assert turn.status == "needs_attention"
    assert "another tool called `pay`" in turn.last_error
    assert (the_world.effects, the_world.model_calls) == ([], [])


# Several agents


def _two(tools: list[Any], *, as_tool: bool) -> Any:
    """One agent in front, another one with the tools: by a handoff or as a tool."""
    from agents import Agent
    from agents.testing import ScriptedModel, assistant_message, function_call

    def says(text: str) -> list[Any]:
        return [assistant_message(text)]

    asks = [
        function_call("note", {"text": "hi"}, call_id="x"),
        function_call("pay", {"order": "A1", "amount": "5"}, call_id="x"),
    ]
    cashier = Agent(
        name="cashier",
        # The last reply is on record with the end only: a crash before asks again.
        model=ScriptedModel([asks, says("paid"), says("paid")]),
        tools=tools,
    )
    if as_tool:
        to_cashier = function_call("cashier", {"input": "pay A1"}, call_id="x")
        done = says("all done")
        model = ScriptedModel([[to_cashier], done, done])
        given = [cashier.as_tool("cashier", "Pays.")]
        return Agent(name="front", model=model, tools=given)
    over = function_call("transfer_to_cashier", {}, call_id="x")
    return Agent(name="front", model=ScriptedModel([[over]]), handoffs=[cashier])


@pytest.mark.parametrize(
    ("as_tool", "output"), [(False, "paid"), (True, "all done")], ids=["over", "tool"]
)
def test_another_agents_calls_are_gated_as_well(
    as_tool: bool, output: str, declare: Declare
) -> None:
    name = declare(lambda tools: _two(tools, as_tool=as_tool))
    turn = started(name, "please")

    assert turn.status == "suspended", turn.last_error
    assert the_world.names() == ["note"]
    turns.decide_and_resume(turn, Edit({"order": "A1", "amount": "3", "note": ""}))

    assert (turn.status, turn.output) == ("completed", output), turn.last_error
    assert [args.get("amount") for _, args in the_world.effects] == [None, 3]
    assert turns.only(turn).outcome_status == "succeeded"


@pytest.mark.parametrize("as_tool", [False, True], ids=["over", "tool"])
def test_another_agents_call_can_be_rejected(as_tool: bool, declare: Declare) -> None:
    name = declare(lambda tools: _two(tools, as_tool=as_tool))
    turn = started(name, "please")

    turns.decide_and_resume(turn, Reject("no"))

    assert turn.status == "completed", turn.last_error
    assert the_world.names() == ["note"]
    assert turns.only(turn).outcome_status == "refused"


@pytest.mark.parametrize("as_tool", [False, True], ids=["over", "tool"])
def test_several_agents_replay_after_a_crash(as_tool: bool, declare: Declare) -> None:
    name = declare(lambda tools: _two(tools, as_tool=as_tool))

    def die() -> None:
        raise Crash

    with armed("suspend.before_commit", die), pytest.raises(Crash):
        started(name, "please")
    turn = AgentTurn.objects.get()
    turns.recover(turn)
    assert (turn.status, the_world.names()) == ("suspended", ["note"]), turn.last_error

    with armed("end.before_commit", die), pytest.raises(Crash):
        turns.decide_and_resume(turn)
    turns.recover(turn)

    # A reply that was on record and asked for again would have moved the scripts on.
    assert turn.status == "completed", turn.last_error
    assert the_world.names() == ["note", "pay"]


def test_inner_agents_of_one_reply_run_one_after_the_other(declare: Declare) -> None:
    def two_inside(tools: list[Any]) -> Any:
        from agents import Agent
        from agents.testing import ScriptedModel, assistant_message, function_call

        from tests.engines.openai_agents_support import Playing

        def inner(name: str) -> Any:
            replies = [
                [{**NOTE, "args": {"text": name}}],
                [pay("x", order=name)],
            ]

            def play(number: int, told: list[Any], items: list[Any]) -> dict[str, Any]:
                the_world.model_calls.append(name)
                calls = replies[number] if number < len(replies) else []
                return {"text": told[-1][1] if told else "", "tool_calls": calls}

            made = Agent(name=name, model=Playing(play), tools=tools)
            return made.as_tool(name, "Helps.")

        asks = [function_call(one, {"input": "go"}, call_id=one) for one in "ab"]
        model = ScriptedModel([asks, [assistant_message("done")]])
        return Agent(name="front", model=model, tools=[inner("a"), inner("b")])

    turn = started(declare(two_inside), "please")

    # In another order, a replay would give one agent the replies of the other.
    assert the_world.model_calls == ["a", "a", "b", "b"]
    first, second = turns.rows(turn)
    assert [row.args["order"] for row in (first, second)] == ["a", "b"]
    turns.decide(first, Reject("no"))
    turns.decide(second)
    turns.resume(turn)

    assert (turn.status, turn.output) == ("completed", "done"), turn.last_error
    assert the_world.names() == ["note", "note", "pay"]
    assert the_world.effects[-1][1]["order"] == "b"
    assert the_world.model_calls == ["a", "a", "b", "b", "a", "b"]
    outcomes = [row.outcome_status for row in turns.rows(turn)]
    assert outcomes == ["refused", "succeeded"]


def test_an_inner_agent_that_swallows_a_stop_is_not_believed(
    declare: Declare,
) -> None:
    def careless(tools: list[Any]) -> Any:
        return _two([replace(one, needs_approval=False) for one in tools], as_tool=True)

    turn = started(declare(careless), "please")

    assert turn.status == "needs_attention"
    assert "nobody was asked" in turn.last_error
    assert the_world.names() == ["note"]


def test_the_sdk_gives_no_inner_agent_up(declare: Declare) -> None:
    def hasty(tools: list[Any]) -> Any:
        front = _two(tools, as_tool=True)
        front.tools[0].timeout_seconds = 1e-9
        return front

    turn = started(declare(hasty), "please")

    # Given up, what its calls did would be told to nobody.
    assert (turn.status, the_world.names()) == ("suspended", ["note"]), turn.last_error
    turns.decide_and_resume(turn)
    assert (turn.status, turn.output) == ("completed", "all done"), turn.last_error
    assert the_world.names() == ["note", "pay"]


def test_an_inner_agent_that_streams_is_a_visible_stop(declare: Declare) -> None:
    def streaming(tools: list[Any]) -> Any:
        front = _two(tools, as_tool=True)
        from hitl_approvals.agents.openai_agents.building import agent_inside

        cashier = agent_inside(front.tools[0])
        assert cashier is not None
        front.tools = [
            cashier.as_tool("cashier", "Pays.", on_stream=lambda event: None)
        ]
        return front

    turn = started(declare(streaming), "please")

    assert turn.status == "needs_attention"
    assert "cannot be streamed" in turn.last_error
    assert the_world.effects == []


def test_two_agents_run_at_once_in_one_process(declare: Declare) -> None:
    names = [declare(name="one"), declare(name="two")] * 2

    def play(name: str) -> AgentTurn:
        turn = begin(name, [NOTE, pay("c1", name), pay("c2", name)])
        turns.decide_and_resume(turn)
        return turn

    done = together(*(lambda name=name: play(name) for name in names))

    assert [getattr(one, "status", one) for one in done] == ["completed"] * 4
    assert sorted(the_world.names()) == ["note"] * 4 + ["pay"] * 8


# What comes in and goes out


class Receipt(BaseModel):
    order: str
    total: float


def test_a_typed_output_is_kept_as_json(declare: Declare) -> None:
    def typed(tools: list[Any]) -> Any:
        from agents import Agent
        from agents.testing import ScriptedModel, assistant_message

        text = json.dumps({"order": "A1", "total": 2.5})
        model = ScriptedModel([[assistant_message(text)]])
        return Agent(name="typed", model=model, tools=tools, output_type=Receipt)

    turn = started(declare(typed), "please")

    assert turn.output == {"order": "A1", "total": 2.5}


def test_an_output_of_another_type_fails_at_once(declare: Declare) -> None:
    def typed(tools: list[Any]) -> Any:
        from agents import Agent
        from agents.testing import ScriptedModel, assistant_message

        model = ScriptedModel([[assistant_message("no receipt")]])
        return Agent(name="typed", model=model, tools=tools, output_type=Receipt)

    turn = started(declare(typed), "please")

    # The reply is on record: another try would read it again.
    assert turn.status == "failed"
    assert "is of no use" in turn.error


def test_an_input_that_is_none_ends_the_turn(declare: Declare) -> None:
    turn = started(declare(), {"prompt": "hello"})

    assert (turn.status, the_world.model_calls) == ("failed", [])
    assert "a text or a list of items" in turn.error


def test_the_options_are_the_context_of_the_run(declare: Declare) -> None:
    seen: list[Any] = []

    def greeting(tools: list[Any]) -> Any:
        from tests.engines.openai_agents_support import playing

        made = playing(tools)
        made.instructions = lambda run, agent: seen.append(dict(run.context)) or "Be."
        return made

    turn = begin(declare(greeting), [pay()], execute_options={"tenant": "acme"})
    turns.decide_and_resume(turn)

    assert turn.status == "completed", turn.last_error
    assert seen == [{"tenant": "acme"}] * 2


def test_an_agent_that_comes_to_no_end_fails_with_a_text(declare: Declare) -> None:
    replies = [[{**NOTE, "id": f"n{n}"}] for n in range(3)]

    turn = begin(declare(), *replies, execute_options={"max_turns": 2})

    assert turn.status == "failed"
    assert "asked its model 2 times" in turn.error
    assert the_world.names() == ["note"] * 2
    more = begin("refunds", *replies, execute_options={"max_turns": 4})
    assert more.status == "completed"


def test_a_nonsensical_limit_fails_with_a_text(declare: Declare) -> None:
    turn = begin(declare(), [NOTE], execute_options={"max_turns": "many"})

    assert (turn.status, the_world.effects) == ("failed", [])
    assert "max_turns" in turn.error


def test_a_guardrail_ends_the_turn(declare: Declare) -> None:
    def guarded(tools: list[Any]) -> Any:
        from agents import GuardrailFunctionOutput, input_guardrail

        from tests.engines.openai_agents_support import playing

        @input_guardrail(run_in_parallel=False)
        async def never(context: Any, agent: Any, given: Any) -> Any:
            return GuardrailFunctionOutput(output_info=None, tripwire_triggered=True)

        made = playing(tools)
        made.input_guardrails = [never]
        return made

    turn = begin(declare(guarded), [NOTE])

    assert (turn.status, the_world.effects) == ("failed", [])
    assert "guardrail ended this turn" in turn.error


def test_nothing_is_traced(declare: Declare) -> None:
    from agents import add_trace_processor
    from agents.tracing import TracingProcessor, get_trace_provider

    seen: list[Any] = []

    class Seeing(TracingProcessor):
        def on_trace_start(self, trace: Any) -> None:
            seen.append(trace)

        def on_trace_end(self, trace: Any) -> None:
            seen.append(trace)

        def on_span_start(self, span: Any) -> None:
            seen.append(span)

        def on_span_end(self, span: Any) -> None:
            seen.append(span)

        def shutdown(self) -> None:
            pass

        def force_flush(self) -> None:
            pass

    provider = get_trace_provider()
    before = provider._multi_processor._processors
    add_trace_processor(Seeing())
    try:
        turn = begin(declare(), [NOTE, pay()])
        turns.decide_and_resume(turn)
    finally:
        provider.set_processors(list(before))

    assert (turn.status, seen) == ("completed", [])


# The model


def test_a_reply_keeps_its_ids_and_its_usage_when_it_is_replayed(
    declare: Declare,
) -> None:
    def die() -> None:
        raise Crash

    with armed("suspend.before_commit", die), pytest.raises(Crash):
        begin(declare(), [NOTE, pay()])
    turn = AgentTurn.objects.get()
    turns.recover(turn)

    assert the_world.model_calls == ["reply 0"]
    state = turn.state["data"]["state"]
    [response] = state["model_responses"]
    assert response["response_id"] == "resp_0"
    assert response["usage"]["total_tokens"] == 7
    assert state["context"]["usage"]["total_tokens"] == 7


@pytest.mark.parametrize("fault", ["error", "timeout"])
def test_a_model_that_is_asked_again_by_the_sdk_gives_the_same_reply(
    fault: str, declare: Declare
) -> None:
    stopped: list[str] = []

    def flaky(tools: list[Any]) -> Any:
        from agents import ModelSettings
        from agents.retry import ModelRetrySettings

        from tests.engines.openai_agents_support import Playing, playing

        class Flaky(Playing):
            async def get_response(self, *args: Any, **kwargs: Any) -> Any:
                if not stopped:
                    stopped.append(fault)
                    if fault == "error":
                        raise ConnectionError("gone")
                    try:
                        await asyncio.Event().wait()
                    finally:
                        stopped.append("cancelled")
                return await super().get_response(*args, **kwargs)

        made = playing(tools)
        made.model = Flaky(made.model.play)
        made.model_settings = ModelSettings(
            timeout=0.2 if fault == "timeout" else None,
            retry=ModelRetrySettings(
                max_retries=2,
                backoff={"initial_delay": 0, "max_delay": 0, "jitter": False},
                policy=lambda context: True,
            ),
        )
        return made

    turn = begin(declare(flaky), [NOTE, pay()])
    assert (turn.status, turn.state["replies"]) == ("suspended", 1), turn.last_error
    turns.decide_and_resume(turn)

    assert turn.status == "completed", turn.last_error
    assert the_world.names() == ["note", "pay"]
    assert stopped == ([fault, "cancelled"] if fault == "timeout" else [fault])


@pytest.mark.parametrize("failing", [1, 2], ids=["at the start", "after a pause"])
def test_a_model_that_gives_no_reply_is_asked_again_in_the_next_run(
    failing: int, declare: Declare
) -> None:
    """Gateways wrap their own troubles in an answer, which the SDK takes for the model's."""
    asked: list[int] = []

    def flaky(tools: list[Any]) -> Any:
        from agents import ModelBehaviorError

        from tests.engines.openai_agents_support import Playing, playing

        class Flaky(Playing):
            async def get_response(self, *args: Any, **kwargs: Any) -> Any:
                asked.append(len(asked) + 1)
                if asked[-1] == failing:
                    raise ModelBehaviorError("response has no choices")
                return await super().get_response(*args, **kwargs)

        made = playing(tools)
        made.model = Flaky(made.model.play)
        return made

    turn = begin(declare(flaky), [pay()])
    if failing == 2:
        turns.decide_and_resume(turn)

    assert (turn.status, turn.error) == ("ready", "")
    assert "no choices" in turn.last_error
    turns.resume(turn)
    if failing == 1:
        turns.decide_and_resume(turn)
    assert turn.status == "completed", turn.last_error
    assert (the_world.names(), len(asked)) == (["pay"], 3)


# Versions


def _changed(turn: AgentTurn, **changes: Any) -> None:
    state = turn.state
    state["data"]["state"].update(changes)
    AgentTurn.objects.filter(pk=turn.pk).update(state=state)


def assert_stopped(turn: AgentTurn, *said: str) -> None:
    """Assert a visible stop with the decision kept and nothing done."""
    assert turn.status == "needs_attention"
    for text in said:
        assert text in turn.last_error
    assert turns.only(turn).status == "decided"
    assert (the_world.effects, turns.steps(turn)) == ([], [])


def test_a_newer_schema_of_the_state_is_a_visible_stop(declare: Declare) -> None:
    turn = begin(declare(), [pay()])
    _changed(turn, **{"$schemaVersion": "9.9"})

    turns.decide_and_resume(turn)

    assert_stopped(turn, "version 9.9", "Install a version that fits")


def test_an_agent_of_another_name_is_a_visible_stop(declare: Declare) -> None:
    turn = begin(declare(), [pay()])

    def renamed(tools: list[Any]) -> Any:
        from tests.engines.openai_agents_support import playing

        return playing(tools, name="payments")

    declare(renamed)
    turns.decide_and_resume(turn)

    assert_stopped(turn, "agent `refunds`", "payments")


def test_a_tool_that_the_agent_has_not_any_more_is_a_visible_stop(
    declare: Declare,
) -> None:
    turn = begin(declare(), [pay()])

    def poorer(tools: list[Any]) -> Any:
        from tests.engines.openai_agents_support import playing

        return playing([one for one in tools if one.name != "pay"])

    declare(poorer)
    turns.decide_and_resume(turn)

    assert_stopped(turn, "`pay` was asked for", "Nothing ran")


def test_a_state_that_the_sdk_cannot_read_is_a_visible_stop(declare: Declare) -> None:
    turn = begin(declare(), [pay()])
    _changed(turn, context="none")

    turns.decide_and_resume(turn)

    assert_stopped(turn, "cannot go on from this pause")


def test_a_state_that_the_sdk_itself_spoiled_is_a_visible_stop(
    declare: Declare,
) -> None:
    """A filter that drops calls from the history leaves what the SDK does not read back."""

    def target(tools: list[Any]) -> Any:
        from agents import Agent, handoff
        from agents.extensions.handoff_filters import remove_all_tools
        from agents.testing import ScriptedModel, function_call

        mails = function_call("mail", {"to": "kim"}, call_id="m")
        second = Agent(name="second", model=ScriptedModel([[mails]]), tools=tools)
        asks = [
            function_call("note", {"text": "hi"}, call_id="n"),
            function_call("transfer_to_second", {}, call_id="t"),
        ]
        over = handoff(second, input_filter=remove_all_tools)
        return Agent(
            name="first", model=ScriptedModel([asks]), tools=tools, handoffs=[over]
        )

    turn = started(declare(target), "please")
    assert turns.only(turn).tool_name == "mail"

    turns.decide_and_resume(turn)

    assert turn.status == "needs_attention"
    assert "cannot go on from this pause" in turn.last_error
    assert (turns.only(turn).status, the_world.names()) == ("decided", ["note"])
