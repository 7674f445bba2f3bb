"""Random graphs do the same on the rows and over a store: answers, effects, checkpoints."""

from __future__ import annotations

import random
from typing import Any

import pytest

from hitl_approvals import (
    ApprovalRejected,
    DjangoCheckpointStore,
    DurableExecutor,
    MemoryCheckpointStore,
    Reject,
)
from hitl_approvals.models import AgentTurn
from hitl_approvals.registry import registry
from tests.support.turns import PAST

pytestmark = pytest.mark.django_db

ANSWERS = [None, False, 0, "", [], {}, {"ok": True}, [1, [2]], "yes", Reject("no")]


class Stumble(Exception):
    """A node fails the first time that it comes here."""


class Play:
    """One random graph over one store, and everything that came of it."""

    def __init__(self, seed: int, store: Any) -> None:
        self.dice = random.Random(seed)
        self.effects: list[str] = []
        self.tops: list[str] = []
        self.stumbled: set[str] = set()
        self.told: list[Any] = []
        names = [f"n{number}" for number in range(self.dice.randint(1, 4))]
        name = f"play-{seed}"
        registry.agents.pop(name, None)
        self.executor = DurableExecutor(
            [(each, self.node(each)) for each in names], store=store, name=name
        )

    def node(self, name: str) -> Any:
        """Return a node that does a few things, the same ones every time it runs."""
        deeds = [
            (self.dice.choice(["ask", "key", "once", "step", "stumble"]), number)
            for number in range(self.dice.randint(0, 5))
        ]

        def run(given: Any, ctx: Any) -> Any:
            self.tops.append(name)
            seen = [given, sorted(ctx.state)]
            for deed, number in deeds:
                seen.append(self.do(f"{name}.{number}", deed, ctx))
            return seen

        return run

    def do(self, place: str, deed: str, ctx: Any) -> Any:
        if deed in ("ask", "key"):
            key = place if deed == "key" else None
            try:
                return ctx.interrupt({"at": place}, key=key)
            except ApprovalRejected as refusal:
                return f"refused {refusal.reason}"
        if deed == "once":
            return ctx.once(place, lambda: self.effects.append(place) or place)
        if deed == "step":
            return ctx.step(place, lambda: [place])
        if place not in self.stumbled:
            self.stumbled.add(place)
            raise Stumble(place)
        return None

    def go(self, verb: Any, *args: Any) -> Any:
        """Run until an answer is missing or the end, whatever stumbles on the way."""
        thread = "t" if verb == self.executor.run else args[0]
        try:
            result = verb(*args)
        except Stumble:
            result = self.executor.result(thread)
        while result.status == "ready":
            AgentTurn.objects.filter(status="ready").update(next_run_at=PAST)
            try:
                result = self.executor.resume(thread)
            except Stumble:
                result = self.executor.result(thread)
        self.told.append((result.status, result.output, result.interrupt_payload))
        return result

    def to_the_end(self, result: Any) -> None:
        thread = result.thread_id
        while result.interrupted:
            result = self.go(self.executor.resume, thread, self.dice.choice(ANSWERS))
        assert result.status == "completed", result

    def play(self) -> None:
        """Run to the end, then fork at random and run each fork to its own end."""
        self.to_the_end(self.go(self.executor.run, ["in"], "t"))
        # However often it paused and stumbled. A fork has its later ones anew.
        assert len(self.effects) == len(set(self.effects))
        points = self.executor.list_checkpoints("t")
        for _fork in range(2):
            place = self.dice.choice([None, *range(len(points))])
            point = None if place is None else points[place].id
            fork = self.executor.fork("t", point)
            result = self.executor.result(fork)
            if not result.interrupted:
                result = self.go(self.executor.resume, fork)
            self.told.append(self.shown(fork))
            self.to_the_end(result)
        self.told.append(self.shown("t"))

    def shown(self, thread: str) -> Any:
        return [
            (
                one.kind,
                one.node,
                one.interrupt_payload,
                one.state,
                one.history,
                one.pending_input,
            )
            for one in self.executor.list_checkpoints(thread)
        ]


@pytest.mark.parametrize("seed", range(20))
def test_rows_and_stores_agree(seed: int, settings: Any) -> None:
    settings.HITL_APPROVALS = {**settings.HITL_APPROVALS, "MAX_ATTEMPTS": 50}
    rows = Play(seed, DjangoCheckpointStore())
    rows.play()
    memory = Play(seed, MemoryCheckpointStore())
    memory.play()

    assert memory.told == rows.told
    assert memory.effects == rows.effects
    assert memory.tops == rows.tops
