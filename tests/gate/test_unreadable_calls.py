"""Whatever a model writes: an error result that it can read, and nothing lost."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest

from tests.support.agents import call
from tests.support.turns import begin, decide_and_resume, only, rows, steps, waiting

pytestmark = pytest.mark.django_db


def told_for(make_agent, *raw_calls):
    """Run calls that no JSON could carry; return the turn and what was said."""

    def odd(turn, given):
        return turn.call_tools(list(raw_calls))

    turn = begin(agent=make_agent(odd))
    return turn, turn.output


NESTED = "[" * 40 + "]" * 40
UNREADABLE = {
    "broken JSON": ('{"to": "a"', "JSON"),
    "NaN": ('{"to": NaN}', "finite"),
    "infinity": ('{"to": -Infinity}', "finite"),
    "duplicate keys": ('{"to": "a", "to": "b"}', "to"),
    "a list": ('["a"]', "object"),
    "a number": ("3", "object"),
    "null": ("null", "object"),
    "too deep": (f'{{"to": {NESTED}}}', "deep"),
    "too large": (json.dumps({"to": "x" * 300_000}), "262144"),
    "not UTF-8": (b'{"to": "\xff"}', "UTF-8"),
    "too many digits": ('{"to": ' + "9" * 5000 + "}", "digits"),
    "NaN as a value": ({"to": float("nan")}, "nan"),
    "a set as a value": ({"to": {1}}, "JSON"),
    "a number as a key": ({1: "a"}, "key"),
    "an object's worth of None": (None, "object"),
    "missing": ({}, "to"),
    "unknown field": ({"to": "a", "cc": "b"}, "cc"),
    "wrong type": ({"to": ["a"]}, "to"),
}


@pytest.mark.parametrize(("args", "word"), UNREADABLE.values(), ids=list(UNREADABLE))
def test_arguments_that_cannot_be_read_are_an_error_result(
    world, make_agent, args, word
):
    turn, (told,) = told_for(make_agent, {"id": "c", "name": "mail", "args": args})

    assert turn.status == "completed"
    assert (told["status"], told["tool_call_id"], told["name"]) == (
        "error",
        "c",
        "mail",
    )
    assert word in told["content"]
    assert "did not run" in told["content"]
    assert world.effects == []
    assert rows(turn) == []
    assert steps(turn) == []


@pytest.mark.parametrize("name", ["nothing", "", "Pay", None, 3])
def test_an_unknown_tool_is_an_error_result_that_names_the_known_ones(
    world, make_agent, name
):
    turn, (told,) = told_for(make_agent, {"id": "c", "name": name, "args": {}})

    assert turn.status == "completed"
    assert told["status"] == "error"
    assert "mail" in told["content"]
    assert world.effects == []
    assert rows(turn) == []


@pytest.mark.parametrize("raw", [None, "mail", 3, [], {}, {"function": 3}])
def test_what_is_no_call_at_all_is_an_error_result(world, make_agent, raw):
    turn, (told,) = told_for(make_agent, raw)

    assert turn.status == "completed"
    assert told["status"] == "error"
    assert world.effects == []


def test_an_unreadable_call_keeps_its_readable_siblings(world):
    turn = begin(
        [
            {"id": "bad", "name": "pay", "args": '{"order": "A", "amount": NaN}'},
            call("pay", "good", order="A", amount=1),
            call("note", "free", text="x"),
        ]
    )
    assert world.names() == ["note"]
    assert [row.tool_call_id for row in waiting(turn)] == ["good"]

    decide_and_resume(turn)

    assert [one["status"] for one in turn.output] == ["error", "ok", "ok"]
    assert world.names() == ["note", "pay"]


def test_arguments_as_json_text_are_read(world):
    turn = begin(
        [{"id": "c", "name": "pay", "args": '{"amount": "1.20", "order": "A"}'}]
    )

    assert only(turn).args_text == '{"amount":"1.20","order":"A"}'
    decide_and_resume(turn)
    assert world.effects[0][1]["amount"] == Decimal("1.20")


def test_openais_nesting_is_read(world):
    turn = begin(
        [
            {
                "id": "call_9",
                "type": "function",
                "function": {"name": "mail", "arguments": '{"to": "a"}'},
            }
        ]
    )

    row = only(turn)
    assert (row.tool_name, row.tool_call_id) == ("mail", "call_9")
    decide_and_resume(turn)
    assert world.effects == [("mail", {"to": "a"})]
    assert turn.output[0]["tool_call_id"] == "call_9"


@pytest.mark.parametrize("arguments", ["", "{}"])
def test_a_call_without_arguments_may_leave_them_empty(world, arguments):
    turn = begin(
        [{"id": "c", "function": {"name": "ship", "arguments": arguments}}],
        [{"id": "d", "function": {"name": "ship"}}],
    )
    decide_and_resume(turn)
    decide_and_resume(turn)

    assert world.names() == ["ship", "ship"]
    assert [row.args_text for row in rows(turn)] == ["{}", "{}"]


def test_odd_characters_and_big_numbers_reach_the_tool_unchanged(world):
    text = "nul \x00 bidi \u202e half \ud800 emoji 🙂 </textarea>"
    turn = begin([call("mail", "m", to=text)])
    assert only(turn).args is None

    decide_and_resume(turn)

    assert world.effects == [("mail", {"to": text})]


def test_a_number_above_2_to_the_53_stays_exact(world):
    turn = begin([call("judged", "j", amount=2_512_292_042_121_000_001)])

    assert only(turn).args == {"amount": 2_512_292_042_121_000_001}
    decide_and_resume(turn)

    assert world.effects == [("judged", {"amount": 2_512_292_042_121_000_001})]


@pytest.mark.parametrize("call_id", ["a\x00b", "half \ud800", "x" * 400, 7])
def test_any_id_that_a_model_writes_can_be_stored_and_is_given_back(
    world, make_agent, call_id
):
    def odd(turn, given):
        return turn.call_tools([{"id": call_id, "name": "mail", "args": {"to": "a"}}])

    turn = begin(agent=make_agent(odd))
    assert turn.status == "suspended", turn.last_error

    decide_and_resume(turn)

    assert turn.output[0]["tool_call_id"] == str(call_id)
    assert world.names() == ["mail"]
