"""Policies: a clear answer is taken, everything else gates the call."""

from __future__ import annotations

import pytest

from hitl_approvals.policies import (
    Verdict,
    all_of,
    allowlist,
    always,
    any_of,
    denylist,
    evaluate_policy,
    gate_all_except,
    gate_only,
    never,
    predicate,
)
from hitl_approvals.types import CallInfo


def call_of(tool_name="refund", **args):
    return CallInfo(
        tool_name=tool_name,
        description="",
        args=args,
        agent="support",
        turn_id="t",
        thread_id="t",
        trip=0,
    )


CALL = call_of()


class NamedTool:
    name = "refund"


class Truthy:
    """Answers like numpy's booleans do: true, and not True."""

    def __bool__(self):
        return True


class Hostile:
    def __repr__(self):
        raise RuntimeError("no repr")

    def __eq__(self, other):
        raise RuntimeError("no comparison")

    def __bool__(self):
        raise RuntimeError("no truth")

    def __len__(self):
        raise RuntimeError("no length")

    __hash__ = None


class SilentError(Exception):
    def __str__(self):
        raise RuntimeError("no text")


class TagList(list):
    """A list that reports to be empty."""

    def __len__(self):
        return 0


def raising(error):
    def policy(call):
        raise error

    return policy


async def asynchronous(call):
    return False


def forgets_to_return(call):
    call.args.get("amount")


@pytest.mark.parametrize(
    "policy", [False, lambda call: False, lambda call: [], never()]
)
def test_only_false_and_an_empty_list_leave_a_call_free(policy):
    verdict = evaluate_policy(policy, CALL)

    assert verdict.gated is False
    assert verdict.tags == ()
    assert verdict.broken is False
    assert verdict.why.endswith(".")


@pytest.mark.parametrize("policy", [True, lambda call: True, always()])
def test_true_gates_a_call(policy):
    verdict = evaluate_policy(policy, CALL)

    assert verdict.gated is True
    assert verdict.tags == ()
    assert verdict.broken is False


def test_a_list_of_tags_gates_a_call_and_is_kept_in_order_and_once():
    verdict = evaluate_policy(lambda call: ["money", "abroad", "money"], CALL)

    assert verdict == Verdict(
        gated=True,
        tags=("money", "abroad"),
        why="The policy returned the tags money, abroad.",
    )


@pytest.mark.parametrize(
    ("answer", "shown"),
    [
        (None, "None"),
        (0, "0"),
        (1, "1"),
        ("", "''"),
        ("x", "'x'"),
        ({}, "{}"),
        ({"a": 1}, "{'a': 1}"),
        ((), "()"),
        (("money",), "('money',)"),
        (set(), "set()"),
        ([""], "['']"),
        ([" "], "[' ']"),
        ([None], "[None]"),
        (["money", 1], "['money', 1]"),
        ([True], "[True]"),
        (0.0, "0.0"),
        (TagList(["money"]), "['money']"),
        (TagList(), "[]"),
        (bool, "<class 'bool'>"),
        (Verdict(gated=False), "Verdict(gated"),
    ],
)
def test_any_other_answer_gates_the_call_and_says_so(answer, shown):
    verdict = evaluate_policy(lambda call: answer, CALL)

    assert verdict.gated is True
    assert verdict.broken is True
    assert verdict.tags == ()
    assert verdict.why.startswith(f"The policy returned {shown}")
    assert verdict.why.endswith("which is not an answer.")


def test_a_forgotten_return_gates_the_call_and_names_the_function():
    verdict = evaluate_policy(forgets_to_return, CALL)

    assert verdict.gated
    assert verdict.why == (
        "The policy forgets_to_return returned None, which is not an answer."
    )


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (KeyError("amount"), "The policy raised KeyError: 'amount'."),
        (ValueError(), "The policy raised ValueError: no message."),
        (SilentError(), "The policy raised SilentError: no message."),
        (RecursionError("deep"), "The policy raised RecursionError: deep."),
        (ValueError("a\x00\ud800"), "The policy raised ValueError: a\\x00\\ud800."),
    ],
)
def test_an_exception_gates_the_call_and_is_named(error, why):
    verdict = evaluate_policy(raising(error), CALL)

    assert verdict == Verdict(gated=True, why=why, broken=True)


@pytest.mark.parametrize("answer", [Hostile(), Truthy(), [Hostile()]])
def test_a_hostile_answer_gates_the_call(answer):
    verdict = evaluate_policy(lambda call: answer, CALL)

    assert verdict.gated is True
    assert verdict.broken is True


@pytest.mark.parametrize(
    "policy", [None, 0, 1, "", "always", [], ["money"], {}, Hostile(), Truthy()]
)
def test_what_is_no_policy_gates_every_call(policy):
    verdict = evaluate_policy(policy, CALL)

    assert verdict.gated is True
    assert verdict.broken is True
    assert verdict.tags == ()


def test_an_async_policy_gates_the_call_and_leaves_no_warning_behind():
    verdict = evaluate_policy(asynchronous, CALL)

    assert verdict.gated
    assert verdict.broken
    assert "async" in verdict.why


def test_a_policy_that_asks_itself_gates_the_call():
    policies = []
    rule = any_of(lambda call: evaluate_policy(policies[0], call).gated)
    policies.append(rule)

    assert evaluate_policy(rule, CALL).gated


def test_the_end_of_the_process_is_not_swallowed():
    with pytest.raises(SystemExit):
        evaluate_policy(raising(SystemExit()), CALL)


def test_a_why_is_short_and_can_be_shown_whatever_the_answer():
    verdict = evaluate_policy(raising(ValueError("x\x00" * 10_000)), CALL)

    assert verdict.why.isprintable()
    assert len(verdict.why) <= 301


def test_a_predicate_sees_the_whole_call():
    seen = []
    call = call_of("transfer", amount=5)

    predicate(lambda asked: bool(seen.append(asked)))(call)

    assert seen == [call]
    assert seen[0].args["amount"] == 5


@pytest.mark.parametrize(("amount", "gated"), [(100, False), (101, True)])
def test_a_predicate_decides_by_the_arguments(amount, gated):
    rule = predicate(lambda call: call.args["amount"] > 100, tags=["money"])

    verdict = evaluate_policy(rule, call_of(amount=amount))

    assert verdict.gated is gated
    assert verdict.tags == (("money",) if gated else ())


def test_a_predicate_keeps_its_own_tags_first_and_stays_broken_when_it_is():
    tagged = predicate(lambda call: ["abroad"], tags=["money", "abroad"])
    broken = predicate(lambda call: None, tags=["money"])

    assert evaluate_policy(tagged, CALL).tags == ("abroad", "money")
    assert evaluate_policy(broken, CALL).broken
    assert evaluate_policy(broken, CALL).tags == ("money",)


@pytest.mark.parametrize("make", [allowlist, gate_only])
def test_an_allowlist_gates_the_listed_tools(make):
    rule = make(["refund", "transfer"], tags=["money"])

    assert evaluate_policy(rule, call_of("refund")).gated
    assert evaluate_policy(rule, call_of("refund")).tags == ("money",)
    assert not evaluate_policy(rule, call_of("lookup")).gated
    assert not evaluate_policy(rule, call_of("Refund")).gated


@pytest.mark.parametrize("make", [denylist, gate_all_except])
def test_a_denylist_gates_every_tool_but_the_listed_ones(make):
    rule = make(["lookup"], tags=["risky"])

    assert not evaluate_policy(rule, call_of("lookup")).gated
    assert evaluate_policy(rule, call_of("refund")).gated
    assert evaluate_policy(rule, call_of("refund")).tags == ("risky",)
    assert evaluate_policy(rule, call_of("lookup ")).gated


def test_an_empty_list_gates_nothing_or_everything():
    assert not evaluate_policy(gate_only([]), CALL).gated
    assert evaluate_policy(gate_all_except([]), CALL).gated


def test_a_list_may_hold_tools_instead_of_names():
    rule = gate_only([NamedTool(), "transfer"])

    assert rule.tools == {"refund", "transfer"}


@pytest.mark.parametrize("make", [gate_only, gate_all_except])
@pytest.mark.parametrize("tools", ["refund", [1], [None], [""], [["refund"]]])
def test_a_list_that_could_silently_gate_nothing_is_refused(make, tools):
    with pytest.raises(TypeError, match="list of tools"):
        make(tools)


@pytest.mark.parametrize("make", [lambda tags: gate_only([], tags), always])
def test_tags_given_as_one_text_are_refused(make):
    with pytest.raises(TypeError, match="Tags"):
        make("money")


def test_rules_tell_which_tools_they_name():
    combined = any_of(
        gate_only(["a"]), all_of(gate_all_except(["b"]), True), lambda call: False
    )

    assert combined.tools == {"a", "b"}
    assert predicate(gate_only(["c"])).tools == {"c"}
    assert always().tools == frozenset()


@pytest.mark.parametrize(
    ("one", "other", "any_gated", "all_gated"),
    [
        (True, True, True, True),
        (True, False, True, False),
        (False, True, True, False),
        (False, False, False, False),
    ],
)
def test_policies_combine_like_and_and_or(one, other, any_gated, all_gated):
    assert evaluate_policy(any_of(one, other), CALL).gated is any_gated
    assert evaluate_policy(all_of(one, other), CALL).gated is all_gated


@pytest.mark.parametrize("broken", [lambda call: None, raising(KeyError()), None])
@pytest.mark.parametrize("combine", [any_of, all_of])
def test_a_broken_policy_is_never_outvoted(broken, combine):
    for policies in ((broken, False), (False, broken), (True, broken)):
        verdict = evaluate_policy(combine(*policies), CALL)

        assert verdict.gated
        assert verdict.broken


def test_combined_policies_join_the_tags_of_those_that_gate():
    money, abroad = gate_only(["refund"], ["money"]), gate_only(["x"], ["abroad"])

    assert evaluate_policy(any_of(money, abroad), CALL).tags == ("money",)
    assert evaluate_policy(all_of(money, abroad), CALL).tags == ()
    assert evaluate_policy(any_of(always(["a"]), always(["b", "a"])), CALL).tags == (
        "a",
        "b",
    )


@pytest.mark.parametrize("combine", [any_of, all_of])
def test_combining_nothing_is_refused(combine):
    with pytest.raises(TypeError, match="at least one"):
        combine()


@pytest.mark.parametrize(
    ("rule", "answer"),
    [
        (always(), True),
        (always(["a"]), ["a"]),
        (never(), False),
        (gate_only(["refund"], ["a"]), ["a"]),
        (any_of(False, lambda call: None), True),
    ],
)
def test_a_rule_called_like_a_function_answers_like_one(rule, answer):
    assert rule(CALL) == answer
    assert evaluate_policy(lambda call: rule(call), CALL).gated is bool(answer)


def test_a_verdict_says_in_one_sentence_why():
    assert evaluate_policy(gate_only(["refund"]), CALL).why == (
        "refund is on the list of gated tools."
    )
    assert evaluate_policy(gate_all_except(["x"]), CALL).why == (
        "refund is not on the list of free tools."
    )
    assert evaluate_policy(True, CALL).why == "Every call of this tool is gated."
