"""Pydantic AI: what reviewers decide is what happens, and what the model is told."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from hitl_approvals import Approve, Edit, Reject, services, tool
from hitl_approvals.exceptions import PayloadRejected
from hitl_approvals.registry import registry
from tests.engines import pydantic_ai_scripts as scripts
from tests.engines.pydantic_ai_scripts import call, read_output
from tests.support import agents, turns
from tests.support.world import raises
from tests.support.world import world as the_world

pytestmark = [pytest.mark.engines, pytest.mark.django_db(transaction=True)]

PAY = call("c1", "pay", order="A1", amount="5")
MAIL = call("c2", "mail", to="kim")
NOTE = call("c3", "note", text="hello")


@pytest.fixture(autouse=True)
def pydantic_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry.agents, scripts.NAME, scripts.define())


def begin(*replies: list[Any], **options: Any) -> Any:
    return turns.begin(*replies, agent=scripts.NAME, **options)


def test_gated_calls_wait_together_and_run_once_when_approved() -> None:
    turn = begin([PAY, MAIL])

    assert turn.status == "suspended"
    assert [row.tool_name for row in turns.rows(turn)] == ["pay", "mail"]
    assert the_world.effects == []

    turns.decide_and_resume(turn)

    assert turn.status == "completed"
    assert the_world.names() == ["pay", "mail"]
    assert [turns.events(row) for row in turns.rows(turn)] == [
        ["raised", "approved", "resolved"]
    ] * 2
    assert read_output(turn) == {
        "c1": ("success", '{"effect": 1}'),
        "c2": ("success", '{"effect": 2}'),
    }
    assert the_world.model_calls == ["reply 0", "reply 1"]


def test_free_calls_beside_gated_ones_run_once_at_the_start() -> None:
    turn = begin([PAY, NOTE, call("c4", "read", name="x")])

    assert sorted(the_world.names()) == ["note", "read"]

    turns.decide_and_resume(turn)

    assert sorted(the_world.names()) == ["note", "pay", "read"]
    assert list(read_output(turn)) == ["c1", "c3", "c4"]
    assert sorted(turns.step_statuses(turn)) == ["succeeded"] * 3


def test_three_calls_get_a_decision_each() -> None:
    turn = begin([PAY, call("c9", "pay", order="B2", amount="7"), MAIL])
    first, second, third = turns.rows(turn)

    turns.decide(first)
    turns.decide(second, Edit({"order": "B2", "amount": "3"}, reason="too much"))
    turns.decide(third, Reject("not now"))
    turns.resume(turn)

    assert turn.status == "completed"
    assert the_world.effects == [
        ("pay", {"order": "A1", "amount": 5, "note": ""}),
        ("pay", {"order": "B2", "amount": 3, "note": ""}),
    ]
    told = read_output(turn)
    assert told["c1"] == ("success", '{"effect": 1}')
    outcome, text = told["c9"]
    assert outcome == "success"
    assert 'A reviewer changed this call before it ran: amount from "7" to "3"' in text
    assert told["c2"] == (
        "denied",
        "A reviewer rejected this call; it did not run. Reason: not now",
    )
    assert [row.outcome_status for row in turns.rows(turn)] == [
        "succeeded",
        "succeeded",
        "refused",
    ]


def test_a_rejected_call_has_no_effect_and_no_step() -> None:
    turn = begin([PAY])

    turns.decide_and_resume(turn, Reject("no"))

    assert turn.status == "completed"
    assert the_world.effects == []
    assert turns.steps(turn) == []
    assert turns.events(turns.only(turn)) == ["raised", "rejected", "resolved"]


def test_an_expired_call_runs_nothing_and_the_model_is_told() -> None:
    turn = begin([call("c1", "ship")])
    turns.pass_expires_at(turns.only(turn))

    assert services.sweep().expired == 1
    turns.resume(turn)

    assert turn.status == "completed"
    assert the_world.effects == []
    assert read_output(turn) == {
        "c1": ("denied", "Nobody decided this call in time; it did not run.")
    }


def test_an_approval_that_was_not_used_in_time_goes_back_to_a_person() -> None:
    turn = begin([call("c1", "ship")])
    row = turns.only(turn)
    turns.decide(row)
    turns.pass_execute_by(row)

    turns.resume(turn)

    assert turn.status == "suspended"
    assert the_world.effects == []

    turns.decide_and_resume(turn)

    assert turn.status == "completed"
    assert the_world.names() == ["ship"]


def test_a_bad_edit_is_refused_before_it_is_stored() -> None:
    turn = begin([PAY])
    row = turns.only(turn)

    with pytest.raises(PayloadRejected):
        turns.decide(row, Edit({"order": "A1", "amount": "much"}))
    with pytest.raises(PayloadRejected):
        turns.decide(row, Edit({"order": "other", "amount": "1"}))

    row.refresh_from_db()
    assert (row.status, row.decision_args_text) == ("pending", None)
    turns.decide_and_resume(turn, Edit({"order": "A1", "amount": "1"}))
    assert [args["amount"] for _, args in the_world.effects] == [1]


def test_it_pauses_again_and_ids_come_again_in_a_later_reply() -> None:
    again = call("c1", "pay", order="B2", amount="7")
    turn = begin([PAY, NOTE], [again])
    turns.decide_and_resume(turn)

    assert turn.status == "suspended"
    assert [args.get("order") for _, args in the_world.effects] == [None, "A1"]
    assert len(turns.rows(turn)) == 2

    turns.decide_and_resume(turn, Reject("enough"))

    assert turn.status == "completed"
    assert the_world.names() == ["note", "pay"]
    assert the_world.model_calls == [f"reply {n}" for n in range(3)]


def test_the_same_call_in_a_later_reply_is_asked_for_again() -> None:
    turn = begin([PAY], [PAY])
    turns.decide_and_resume(turn)
    turns.decide_and_resume(turn)

    assert turn.status == "completed"
    assert the_world.names() == ["pay", "pay"]
    assert len(turns.rows(turn)) == 2


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ({"order": "A1"}, "amount"),
        ({"order": "A1", "amount": "5", "more": 1}, "more"),
        ('{"order": ', "not JSON"),
        ("[1, 2]", "must be an object"),
    ],
)
def test_what_does_not_fit_is_told_to_the_model_and_asks_nobody(
    args: Any, said: str
) -> None:
    turn = begin([{"id": "c1", "name": "pay", "args": args}], [PAY])

    assert turn.status == "suspended"
    assert the_world.effects == []
    turns.decide_and_resume(turn)
    outcome, text = read_output_of_first(turn)
    assert outcome == "failed"
    assert said in text


def read_output_of_first(turn: Any) -> tuple[str, str]:
    import json

    _id, outcome, text = json.loads(turn.output)[0]
    return outcome, text


def test_arguments_reach_the_reviewer_as_the_signature_reads_them() -> None:
    turn = begin([{"id": "c1", "name": "pay", "args": '{"amount": 5, "order": "A1"}'}])

    assert turns.only(turn).args == {"order": "A1", "amount": "5"}


def test_a_clean_failure_is_told_as_one() -> None:
    the_world.plan("pay", raises(agents.CardDeclined("no money")))
    turn = begin([PAY])

    turns.decide_and_resume(turn)

    assert read_output(turn) == {
        "c1": ("failed", "The tool failed and nothing was changed. no money")
    }


def test_a_call_in_doubt_goes_to_a_person_and_the_others_run() -> None:
    the_world.plan("pay", raises(TimeoutError("no answer")))
    turn = begin([PAY, MAIL])

    turns.decide_and_resume(turn)

    pay, mail = turns.rows(turn)
    assert (pay.status, mail.outcome_status) == ("in_doubt", "succeeded")
    turns.settle(pay, "happened")
    turns.resume(turn)
    assert turn.status == "completed"
    assert the_world.names() == ["mail"]


def test_a_free_call_in_doubt_stops_the_run_that_began() -> None:
    the_world.plan("note", raises(TimeoutError("no answer")))
    turn = begin([NOTE, PAY])

    (row,) = turns.waiting(turn)
    assert (row.tool_name, row.status) == ("note", "in_doubt")
    turns.settle(row, "happened")
    turns.resume(turn)

    assert [row.tool_name for row in turns.waiting(turn)] == ["pay"]
    turns.decide_and_resume(turn)
    assert turn.status == "completed"
    assert the_world.names() == ["pay"]
    assert the_world.model_calls == ["reply 0", "reply 1"]


def test_what_ran_beside_a_free_call_in_doubt_runs_once() -> None:
    the_world.plan("note", raises(TimeoutError("no answer")))
    reads = [call(f"r{n}", "read", name=str(n)) for n in range(3)]
    turn = begin([NOTE, *reads])

    (row,) = turns.waiting(turn)
    turns.settle(row, "happened")
    turns.resume(turn)

    assert turn.status == "completed"
    assert the_world.names() == ["read"] * 3
    assert sorted(args["name"] for _, args in the_world.effects) == ["0", "1", "2"]
    assert the_world.model_calls == ["reply 0", "reply 1"]


def test_async_tools_run_on_the_agents_own_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(registry, "tools", dict(registry.tools))
    loops: list[Any] = []

    async def fetch(name: str) -> str:
        await asyncio.sleep(0)
        loops.append(asyncio.get_running_loop())
        return f"{name} fetched"

    free = tool(name="fetch", effect="unsafe", requires_approval=False)(fetch)
    gated = tool(name="fetch_secret", effect="unsafe")(fetch)
    definition = scripts.define(tools=[free, gated])
    monkeypatch.setitem(registry.agents, scripts.NAME, definition)

    turn = begin(
        [
            call("c1", "fetch", name="a"),
            call("c2", "fetch_secret", name="b"),
            call("c3", "fetch", name="c"),
        ]
    )
    assert len(loops) == 2
    assert loops[0] is loops[1]
    turns.decide_and_resume(turn)

    assert turn.status == "completed"
    assert len(loops) == 3
    assert read_output(turn)["c2"] == ("success", "b fetched")


def test_the_frameworks_own_test_model_meets_the_gate(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def factory(tools: Any) -> Any:
        from pydantic_ai import Agent
        from pydantic_ai.models.test import TestModel

        return Agent(TestModel(custom_output_text="done"), tools=tools)

    chosen = [agents.mail, agents.note]
    definition = scripts.define(target=factory, tools=chosen)
    monkeypatch.setitem(registry.agents, scripts.NAME, definition)

    turn = begin([])

    assert [row.tool_name for row in turns.waiting(turn)] == ["mail"]
    assert the_world.names() == ["note"]
    turns.decide_and_resume(turn)
    assert (turn.status, turn.output) == ("completed", "done")
    assert the_world.names() == ["note", "mail"]


def test_the_reviewer_sees_the_conversation_and_why_it_is_gated() -> None:
    the_world.policy = lambda asked: ["money"]
    turn = begin([NOTE], [call("c5", "judged", amount=3)])

    row = turns.only(turn)
    roles = [one["role"] for one in row.context["messages"]]
    assert roles == ["user", "assistant", "tool", "assistant"]
    assert row.context["messages"][-1]["tool_calls"] == [
        {"id": "c5", "name": "judged", "args": {"amount": 3}}
    ]
    assert row.context["messages"][2]["content"] == '{"effect": 1}'
    assert row.context["agent_reason"] == "reason 1"
    assert turn.state["data"]["requests"]["metadata"] == {
        "c5": {"why": row.policy["why"], "tags": row.policy["tags"]}
    }
    assert "money" in row.policy["tags"]


def test_the_framework_is_told_who_decided_and_why_it_was_gated(
    monkeypatch: pytest.MonkeyPatch,
    reviewer: Any,
) -> None:
    from hitl_approvals.agents.pydantic_ai import loop

    handed: list[Any] = []
    decided = loop.decided
    monkeypatch.setattr(
        loop, "decided", lambda *given: handed.append(decided(*given)) or handed[-1]
    )
    turn = begin([PAY, MAIL])
    pay, mail = turns.rows(turn)
    turns.decide(pay, Edit({"order": "A1", "amount": "2"}), by=reviewer)
    turns.decide(mail, Approve())

    turns.resume(turn)

    (results,) = handed
    assert results.approvals["c1"].override_args == {"order": "A1", "amount": "2"}
    assert results.approvals["c2"].override_args is None
    assert results.answered_by["c1"] == "rita"
    assert set(results.metadata) == {"c1", "c2"}
