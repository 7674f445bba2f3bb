"""Decisions: well-formed ones are read from anywhere, the others fail with a sentence."""

from __future__ import annotations

import copy
import pickle
from collections import OrderedDict
from dataclasses import FrozenInstanceError
from types import MappingProxyType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hitl_approvals import canonical
from hitl_approvals.decisions import (
    Approve,
    Edit,
    Reject,
    Respond,
    decision_body,
    parse_decision,
)
from hitl_approvals.enums import DecisionType

DECISIONS = [
    (Approve(), {"type": "approve"}),
    (Reject("no"), {"type": "reject", "reason": "no"}),
    (Edit({"a": 1}), {"type": "edit", "args": {"a": 1}}),
    (Edit({}, "smaller"), {"type": "edit", "args": {}, "reason": "smaller"}),
    (Respond(None), {"type": "respond", "value": None}),
    (Respond({"a": [1]}), {"type": "respond", "value": {"a": [1]}}),
]


def sentence(function, *args, **options):
    with pytest.raises(TypeError) as caught:
        function(*args, **options)
    return str(caught.value)


@pytest.mark.parametrize(("decision", "mapping"), DECISIONS)
def test_a_mapping_and_an_instance_mean_the_same(decision, mapping):
    assert parse_decision(mapping) == decision
    assert parse_decision(MappingProxyType(mapping)) == decision
    assert parse_decision(OrderedDict(reversed(mapping.items()))) == decision
    assert parse_decision(decision) is decision
    assert parse_decision(decision_body(decision)) == decision


@pytest.mark.parametrize(("decision", "mapping"), DECISIONS)
def test_a_decision_knows_its_type_and_can_travel(decision, mapping):
    assert decision.type == mapping["type"]
    assert DecisionType(decision.type) != DecisionType.EXPIRE
    assert pickle.loads(pickle.dumps(decision)) == decision
    assert copy.deepcopy(decision) == decision


def test_the_type_may_come_as_the_enum():
    assert parse_decision({"type": DecisionType.APPROVE}) == Approve()


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        (
            {"type": "edit", "args": [1]},
            'An edit needs "args", an object of argument names to values; got a list.',
        ),
        (
            {"type": "edit", "args": '{"a": 1}'},
            'An edit needs "args", an object of argument names to values; got a string.',
        ),
        (
            {"type": "edit", "args": None},
            'An edit needs "args", an object of argument names to values; got null.',
        ),
        (
            {"type": "edit"},
            'An edit needs "args", an object of argument names to values; got none.',
        ),
        (
            {"type": "edit", "args": {1: 2}},
            'An edit needs "args", an object of argument names to values; '
            "got a name that is a number.",
        ),
        (
            {"type": "edit", "args": {}, "reason": 5},
            'The "reason" of an edit must be text; got a number.',
        ),
        (
            {"type": "reject"},
            'A rejection needs a "reason", a text that is not blank; got none.',
        ),
        (
            {"type": "reject", "reason": ""},
            'A rejection needs a "reason", a text that is not blank; got a blank one.',
        ),
        (
            {"type": "reject", "reason": None},
            'A rejection needs a "reason", a text that is not blank; got null.',
        ),
        (
            {"type": "reject", "reason": True},
            'A rejection needs a "reason", a text that is not blank; got a boolean.',
        ),
        ({"type": "respond"}, 'A response needs a "value"; got none.'),
        (
            {"type": "approve", "reason": "fine"},
            'An approval has no field "reason"; it knows "type".',
        ),
        (
            {"type": "reject", "reason": "no", "args": {}},
            'A rejection has no field "args"; it knows "type", "reason".',
        ),
        (
            {"type": "edit", "args": {}, "tool": "x\x00\ud800"},
            'An edit has no field "tool"; it knows "type", "args", "reason".',
        ),
        (
            {"type": "approve", "\x00\ud800": 1},
            'An approval has no field "\\x00\\ud800"; it knows "type".',
        ),
        (
            {"type": "approve", 1: 1},
            "The fields of a decision must be named by text; got a number.",
        ),
        (
            {"type": "expire"},
            'The "type" of a decision must be one of approve, reject, edit, respond; '
            'got "expire".',
        ),
        (
            {"type": "Approve"},
            'The "type" of a decision must be one of approve, reject, edit, respond; '
            'got "Approve".',
        ),
        (
            {"type": ["approve"]},
            'The "type" of a decision must be one of approve, reject, edit, respond; '
            "got a list.",
        ),
        (
            {},
            'The "type" of a decision must be one of approve, reject, edit, respond; '
            "got none.",
        ),
        (
            "approve",
            "A decision must be Approve, Reject, Edit or Respond, or an object with a "
            '"type"; got a string.',
        ),
        (
            None,
            "A decision must be Approve, Reject, Edit or Respond, or an object with a "
            '"type"; got null.',
        ),
        (
            Approve,
            "A decision must be Approve, Reject, Edit or Respond, or an object with a "
            '"type"; got a value of type type.',
        ),
        (
            [("type", "approve")],
            "A decision must be Approve, Reject, Edit or Respond, or an object with a "
            '"type"; got a list.',
        ),
    ],
)
def test_a_malformed_decision_is_told_what_was_expected_and_what_came(obj, expected):
    assert sentence(parse_decision, obj) == expected


@pytest.mark.parametrize(
    "blank", ["", " ", "\n\t", "\u200b", "\u00a0\u2060\u200b", "\x00"]
)
def test_a_reason_that_nobody_can_see_is_no_reason(blank):
    assert "blank" in sentence(Reject, blank)
    assert Edit({}, blank).reason is None


@pytest.mark.parametrize("reason", ["a\x00", "\ud800a", "a\udfff"])
def test_a_reason_that_a_text_column_cannot_hold_is_refused(reason):
    assert "NUL" in sentence(Reject, reason)
    assert "NUL" in sentence(Edit, {}, reason)


@pytest.mark.parametrize("reason", ["no", " no ", "nein, zu groß", "👎", "否"])
def test_a_reason_is_kept_as_it_was_written(reason):
    assert Reject(reason).reason == reason
    assert Edit({}, reason).reason == reason


def test_instances_are_checked_when_they_are_made():
    assert "got a list" in sentence(Edit, [1])
    assert "got null" in sentence(Reject, None)


def test_a_decision_cannot_be_changed_and_does_not_follow_its_source():
    args = {"amount": 1}
    edit = Edit(args)

    args["amount"] = 1000

    assert edit.args == {"amount": 1}
    with pytest.raises(FrozenInstanceError):
        edit.args = {}


def test_the_sentence_never_repeats_what_an_argument_holds():
    text = sentence(parse_decision, {"type": "edit", "args": ["secret"]})

    assert "secret" not in text


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Approve(), Reject("no")),
        (Reject("no"), Reject("No")),
        (Edit({"a": 1}), Edit({"a": 1}, "why")),
        (Edit({"a": 1}), Edit({"a": 1.0})),
        (Edit({"a": 1}), Edit({"a": True})),
        (Respond(None), Respond({})),
        (Respond({"a": 1}), Edit({"a": 1})),
    ],
)
def test_bodies_of_different_decisions_differ(one, other):
    texts = {canonical.dumps(decision_body(decision)) for decision in (one, other)}

    assert len(texts) == 2


def test_bodies_of_the_same_decision_are_the_same_however_it_was_written():
    bodies = [
        decision_body(Edit({"a": 1, "b": (2,)}, "")),
        decision_body(parse_decision({"args": {"b": [2], "a": 1}, "type": "edit"})),
    ]

    assert len({canonical.dumps(body) for body in bodies}) == 1


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(st.characters()),
        lambda inner: (
            st.lists(inner)
            | st.dictionaries(
                st.sampled_from(["type", "reason", "args", "value"]) | st.text(), inner
            )
            | st.fixed_dictionaries(
                {"type": st.sampled_from(["approve", "reject", "edit", "respond"])},
                optional={"reason": inner, "args": inner, "value": inner},
            )
        ),
    )
)
@settings(deadline=None)
def test_anything_is_either_a_decision_or_a_type_error_that_can_be_shown(obj):
    try:
        decision = parse_decision(obj)
    except TypeError as error:
        text = str(error)
        assert text.isprintable()
        assert text.endswith(".")
    else:
        canonical.dumps(decision_body(decision))
