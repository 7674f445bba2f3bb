"""Graphs: what is refused when one is made, and what still fits a paused turn."""

from __future__ import annotations

import functools

import pytest

from hitl_approvals.exceptions import HitlConfigurationError, RunDiverged
from hitl_approvals.graphs import Graph


def node(given, ctx):
    return given


def graph(*names):
    return Graph([(name, node) for name in names], name="g")


@pytest.mark.parametrize("name", ["", " ", "x" * 129, "a\x00b", "\ud800", None, 3])
def test_a_node_needs_a_storable_name(name):
    with pytest.raises(HitlConfigurationError, match="node name"):
        Graph([(name, node)], name="g")


def test_two_nodes_of_one_name_are_refused():
    with pytest.raises(HitlConfigurationError, match="two nodes called 'a'"):
        graph("a", "b", "a")


def test_a_graph_without_nodes_is_refused():
    with pytest.raises(HitlConfigurationError, match="has no nodes"):
        graph()


@pytest.mark.parametrize("given", ["ab", ("a",), ("a", node, 3), node])
def test_what_is_no_pair_of_name_and_function_is_refused(given):
    with pytest.raises(HitlConfigurationError, match="`g`"):
        Graph([given], name="g")


@pytest.mark.parametrize(
    "function",
    [lambda: 1, lambda a, b, c: 1, lambda a, *, b: 1],
    ids=["none", "three", "keyword"],
)
def test_a_node_takes_the_input_and_perhaps_a_context(function):
    with pytest.raises(HitlConfigurationError, match=r"\(input, ctx\) or \(input\)"):
        Graph([("a", function)], name="g")


def test_a_node_that_is_no_function_is_refused():
    with pytest.raises(HitlConfigurationError, match="cannot be called"):
        Graph([("a", 3)], name="g")


class Callable:
    async def __call__(self, given, ctx):
        return given


async def asynchronous(given):
    return given


@pytest.mark.parametrize(
    ("function", "takes_context", "is_async"),
    [
        (node, True, False),
        (lambda given: given, False, False),
        (lambda *rest: rest, True, False),
        (lambda given, ctx=None: given, True, False),
        (asynchronous, False, True),
        (Callable(), True, True),
        (str, False, False),
        (functools.partial(node, ctx=None), False, False),
    ],
)
def test_a_node_is_called_with_what_it_takes(function, takes_context, is_async):
    (made,) = Graph([("a", function)], name="g").nodes

    assert (made.takes_context, made.is_async) == (takes_context, is_async)


@pytest.mark.parametrize(
    ("recorded", "finished", "now"),
    [
        ("abc", 0, "abc"),
        ("abc", 2, "abc"),
        ("abc", 3, "abc"),
        ("abc", 1, "abxc"),
        ("abc", 1, "abcx"),
        ("abc", 3, "abcx"),
    ],
)
def test_nodes_may_be_added_behind_the_one_under_way(recorded, finished, now):
    graph(*now).require_same(list(recorded), finished)


@pytest.mark.parametrize(
    ("recorded", "finished", "now", "named", "what"),
    [
        ("abc", 1, "xbc", "a", "finished"),
        ("abc", 1, "bc", "a", "finished"),
        ("abc", 1, "axc", "b", "under way"),
        ("abc", 1, "ac", "b", "under way"),
        ("abc", 1, "axbc", "b", "under way"),
        ("abc", 1, "abx", "c", "to come"),
        ("abc", 0, "acb", "c", "to come"),
        ("abcd", 0, "abdc", "d", "to come"),
        ("abc", 2, "bac", "a", "finished"),
        ("abc", 3, "ab", "c", "finished"),
    ],
)
def test_every_other_change_is_a_stop_that_names_the_node(
    recorded, finished, now, named, what
):
    with pytest.raises(RunDiverged) as stop:
        graph(*now).require_same(list(recorded), finished)

    assert f"Node `{named}` of graph `g` was {what}" in stop.value.detail
    assert ", ".join(now) in stop.value.detail
