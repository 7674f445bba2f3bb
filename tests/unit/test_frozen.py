"""Frozen JSON values: read and compared like plain ones, changed by nobody."""

from __future__ import annotations

import copy
import json
import pickle

import pytest

from hitl_approvals import canonical
from hitl_approvals.frozen import freeze, thaw

VALUE = {"a": [1, {"b": None}], "c": {"d": [False, 0, ""]}}
CHANGES = [
    lambda v: v.__setitem__("x", 1),
    lambda v: v.__delitem__("a"),
    lambda v: v.update(x=1),
    lambda v: v.__ior__({"x": 1}),
    lambda v: v.pop("a"),
    lambda v: v.popitem(),
    lambda v: v.setdefault("x", 1),
    lambda v: v.clear(),
    lambda v: v["c"].__setitem__("d", 1),
    lambda v: v["a"].__setitem__(0, 2),
    lambda v: v["a"].__delitem__(0),
    lambda v: v["a"].append(1),
    lambda v: v["a"].extend([1]),
    lambda v: v["a"].insert(0, 1),
    lambda v: v["a"].pop(),
    lambda v: v["a"].remove(1),
    lambda v: v["a"].clear(),
    lambda v: v["a"].sort(),
    lambda v: v["a"].reverse(),
    lambda v: v["a"].__iadd__([1]),
    lambda v: v["a"].__imul__(2),
    lambda v: v["a"][1].__setitem__("b", 1),
]


def test_a_frozen_value_reads_and_writes_like_a_plain_one():
    frozen = freeze(VALUE)

    assert frozen == VALUE
    assert {**frozen} == VALUE
    assert json.dumps(frozen) == json.dumps(VALUE)
    assert canonical.dumps(frozen) == canonical.dumps(VALUE)


@pytest.mark.parametrize("change", CHANGES)
def test_a_frozen_value_cannot_be_changed_at_any_depth(change):
    frozen = freeze(VALUE)

    with pytest.raises(TypeError, match="copy it"):
        change(frozen)

    assert frozen == VALUE


def test_freezing_copies():
    source = {"a": [1]}
    frozen = freeze(source)
    source["a"].append(2)

    assert frozen == {"a": [1]}


@pytest.mark.parametrize(
    "thawed",
    [thaw, copy.deepcopy, lambda v: json.loads(json.dumps(v))],
    ids=["thaw", "deepcopy", "json"],
)
def test_a_thawed_copy_may_be_changed(thawed):
    frozen = freeze(VALUE)
    plain = thawed(frozen)
    plain["a"][1]["b"] = 1

    assert frozen == VALUE
    assert type(plain) is dict


def test_a_shallow_copy_is_plain_on_top():
    frozen = freeze({"a": [1]})
    top, inner = copy.copy(frozen), copy.copy(frozen["a"])
    top["b"] = 1
    inner.append(2)

    assert frozen == {"a": [1]}


def test_a_pickled_value_comes_back_frozen():
    back = pickle.loads(pickle.dumps(freeze(VALUE)))

    assert back == VALUE
    with pytest.raises(TypeError):
        back["a"].append(1)
