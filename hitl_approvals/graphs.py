"""Graph: nodes in their order, and whether a paused turn still fits them. Pure."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from hitl_approvals.exceptions import HitlConfigurationError, RunDiverged
from hitl_approvals.text import storable

NodeFunction: TypeAlias = Callable[..., Any]
"""`(input, ctx)` or `(input)`, plain or async; returns JSON."""

MAX_NAME = 128


@dataclass(frozen=True, slots=True)
class Node:
    """One node: its name, and what it runs."""

    name: str
    function: NodeFunction
    takes_context: bool

    @property
    def is_async(self) -> bool:
        """Whether the function has to be awaited."""
        return _is_async(self.function)


class Graph:
    """Nodes that run one after the other, each on the output of the one before.

    Args:
        nodes: Pairs of name and function.
        name: What messages and the registry call the graph.

    Raises:
        HitlConfigurationError: A name is missing, doubled or not storable, or what
            stands for a node takes other arguments than a node does.
    """

    def __init__(self, nodes: Iterable[tuple[str, NodeFunction]], *, name: str) -> None:
        self.name = name
        self.nodes = tuple(_node(name, one) for one in nodes)
        if not self.nodes:
            raise HitlConfigurationError(f"Graph `{name}` has no nodes.")
        counts = Counter(self.names)
        doubled = [one for one, count in counts.items() if count > 1]
        if doubled:
            raise HitlConfigurationError(
                f"Graph `{name}` has two nodes called {doubled[0]!r}; what is recorded "
                "for one would answer for the other."
            )
        # The registry tells the same graph, imported twice, from another one by these.
        self.__module__ = self.nodes[0].function.__module__
        self.__qualname__ = ", ".join(
            f"{one.name}={getattr(one.function, '__qualname__', type(one.function))}"
            for one in self.nodes
        )

    @property
    def names(self) -> list[str]:
        """The names of the nodes in their order."""
        return [node.name for node in self.nodes]

    def require_same(self, recorded: Sequence[str], finished: int) -> None:
        """Compare the graph with the one that a turn began with.

        Nodes may be added behind the one that is under way. Every other change would
        give an answer, an effect or an output to a node that it was not meant for.

        Args:
            recorded: Names of the nodes when the turn last ran.
            finished: How many of them are finished.

        Raises:
            RunDiverged: A node was renamed, removed or moved; the text names it.
        """
        now = self.names
        fixed = list(recorded[: finished + 1])
        for place, name in enumerate(fixed):
            if now[place : place + 1] != [name]:
                what = "finished" if place < finished else "under way"
                raise RunDiverged(_gone(self.name, name, what, recorded, now))
        rest = iter(now[len(fixed) :])
        for name in recorded[len(fixed) :]:
            if name not in rest:
                raise RunDiverged(_gone(self.name, name, "to come", recorded, now))


def _gone(
    graph: str, node: str, what: str, recorded: Sequence[str], now: Sequence[str]
) -> str:
    return (
        f"Node `{node}` of graph `{graph}` was {what} when this turn stopped, and is "
        f"not at its place any more: the nodes were {', '.join(recorded)} and are "
        f"{', '.join(now)} now. Nothing ran and every answer was kept. Bring the node "
        "back, or restart the turn to run it from its beginning."
    )


def _node(graph: str, given: Any) -> Node:
    try:
        name, function = given
    except (TypeError, ValueError):
        raise HitlConfigurationError(
            f"Graph `{graph}`: a node is a pair of name and function; got {given!r}."
        ) from None
    usable = isinstance(name, str) and name.strip() and len(name) <= MAX_NAME
    if not usable or not storable(name):
        raise HitlConfigurationError(
            f"Graph `{graph}`: node name {name!r}: use 1 to {MAX_NAME} printable "
            "characters."
        )
    if not callable(function):
        raise HitlConfigurationError(
            f"Graph `{graph}`: node `{name}` is {function!r}, which cannot be called."
        )
    return Node(name, function, _takes_context(graph, name, function))


def _takes_context(graph: str, name: str, function: NodeFunction) -> bool:
    try:
        signature = inspect.signature(function)
    except ValueError:
        return False  # A builtin such as `str`, which knows nothing of contexts.
    for count in (2, 1):
        try:
            signature.bind(*[None] * count)
        except TypeError:
            continue
        return count == 2
    raise HitlConfigurationError(
        f"Graph `{graph}`: node `{name}` must take (input, ctx) or (input); it takes "
        f"{signature}."
    )


def _is_async(function: NodeFunction) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004  an object may be a node too
    )
