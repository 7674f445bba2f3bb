"""What a policy says stands on the row; what it fails to say gates the call."""

from __future__ import annotations

from decimal import Decimal

import pytest

from hitl_approvals import allowlist, denylist, tool
from hitl_approvals.registry import registry
from tests.support.agents import call
from tests.support.turns import begin, decide_and_resume, only, resume, rows, waiting

pytestmark = pytest.mark.django_db


def broken(call):
    raise KeyError("amount")


@pytest.mark.parametrize(
    ("policy", "word"),
    [
        (lambda call: None, "None"),
        (lambda call: 1, "1"),
        (lambda call: 0, "0"),
        (lambda call: "money", "money"),
        (lambda call: "", "''"),
        (lambda call: {"gated": False}, "gated"),
        (lambda call: (), "()"),
        (lambda call: [1], "[1]"),
        (lambda call: [""], "['']"),
        (broken, "KeyError"),
    ],
)
def test_anything_but_a_clear_no_gates_the_call_and_says_why(world, policy, word):
    world.policy = policy

    turn = begin([call("judged", "j", amount=1)])

    row = only(turn)
    assert turn.status == "suspended"
    assert world.effects == []
    assert word in row.policy["why"]
    assert decide_and_resume(turn) == "completed"
    assert world.names() == ["judged"]


@pytest.mark.parametrize("answer", [False, []])
def test_false_and_the_empty_list_leave_a_call_free(world, answer):
    world.policy = lambda call: answer

    turn = begin([call("judged", "j", amount=1)])

    assert turn.status == "completed"
    assert world.names() == ["judged"]
    assert rows(turn) == []


def test_a_policy_sees_coerced_values_and_where_the_call_comes_from(world):
    world.policy = lambda call: ["money"] if call.args["amount"] > 100 else False

    turn = begin(
        [call("judged", "a", amount="7"), call("judged", "b", amount="700")],
        thread_id="customer-7",
    )

    assert world.effects == [("judged", {"amount": 7})]
    (row,) = waiting(turn)
    assert row.tool_call_id == "b"
    seen = world.policy_calls[0]
    assert seen.args == {"amount": 7}
    assert (seen.tool_name, seen.agent) == ("judged", "scripted")
    assert (seen.thread_id, seen.turn_id) == ("customer-7", str(turn.pk))
    assert (seen.trip, seen.tags) == (0, ("own",))


def test_tags_of_tool_and_policy_stand_on_the_row_in_this_order(world):
    world.policy = lambda call: ["money", "own", "large"]

    row = only(begin([call("judged", "j", amount=1)]))

    assert row.tags == ["own", "money", "large"]
    assert row.policy["tags"] == row.tags


def test_a_policy_is_asked_once_and_its_answer_holds_on_resume(world):
    answers = [True, False]
    world.policy = lambda call: answers.pop(0)
    turn = begin([call("judged", "j", amount=1)])

    decide_and_resume(turn)

    assert len(world.policy_calls) == 1
    assert world.names() == ["judged"]


def test_a_free_verdict_is_asked_again_when_the_run_died_before_the_call(
    world, make_agent
):
    """Nothing was recorded, so nothing was promised: now it needs a person."""
    world.policy = lambda call: False
    failures = [ValueError("no")]

    def flaky(turn, given):
        if failures:
            raise failures.pop()
        return turn.call_tools([call("judged", "j", amount=1)])

    turn = begin(agent=make_agent(flaky))
    world.policy = lambda call: True
    assert resume(turn) == "suspended"
    assert world.effects == []


@pytest.fixture
def listed_tools(world):
    made = []

    def make(name, policy):
        def body(amount: Decimal) -> str:
            """Do it."""
            return str(world.act(name, amount=amount))

        body.__qualname__ = name
        one = tool(name=name, requires_approval=policy, effect="unsafe")(body)
        made.append(name)
        return one

    yield make
    for name in made:
        registry.tools.pop(name)


@pytest.mark.parametrize(
    ("rule", "gated"), [(allowlist, ["risky"]), (denylist, ["harmless"])]
)
def test_allowlist_gates_the_listed_tools_and_denylist_all_but_those(
    world, make_agent, listed_tools, rule, gated
):
    policy = rule(["risky"], tags=["listed"])
    tools = [listed_tools(name, policy) for name in ("risky", "harmless")]

    def both(turn, given):
        return turn.call_tools([call("risky", amount=1), call("harmless", amount=1)])

    turn = begin(agent=make_agent(both, *tools))

    assert [row.tool_name for row in waiting(turn)] == gated
    assert [row.tags for row in waiting(turn)] == [["listed"]]
    assert len(world.effects) == 1
    assert set(world.names()) == {"risky", "harmless"} - set(gated)


def test_a_tool_that_says_nothing_about_approval_is_gated(world):
    turn = begin([call("mail", "m", to="a")])

    assert turn.status == "suspended"
    assert only(turn).policy["gated"] is True
    assert only(turn).policy["mode"] == "unsafe"
