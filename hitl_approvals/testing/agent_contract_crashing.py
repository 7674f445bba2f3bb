"""What every kind of agent makes of a worker that dies: in a call, and between two pauses."""

from __future__ import annotations

import signal
from typing import Any

import pytest

from hitl_approvals import results, services
from hitl_approvals.models import AgentTurn
from hitl_approvals.testing import agent_contract_world as world
from hitl_approvals.testing.agent_contract_harness import AgentContractHarness
from hitl_approvals.testing.agent_contract_world import (
    FREE,
    IDEMPOTENT,
    LOOKUP,
    READING,
    TRANSACTIONAL,
    UNSAFE,
    call,
)


class AgentCrashing(AgentContractHarness):
    """Real processes, killed where it hurts."""

    def killed_in_call(self, name: str) -> AgentTurn:
        """Return a turn whose worker died in its approved call, taken from it since."""
        turn = self.start([call("c1", name, "a", 2), call("c2", FREE, "x")])
        self.decide_all(turn)
        world.plan(name, world.DIE)

        self.killed_elsewhere(turn)

        self.recover(turn)
        return turn

    def killed_elsewhere(self, turn: AgentTurn, *, killed_at: str = "") -> None:
        """Run a turn in a process that is killed while it does."""
        [ended] = self.elsewhere(turn, killed_at=killed_at)
        assert (ended.signal, ended.outcome) == (signal.SIGKILL, "")
        assert turn.status == "running"

    # in a call

    @pytest.mark.parametrize(
        ("answer", "times", "text", "outcome", "event"),
        [
            ("happened", 1, '{"done": "a"}', "succeeded", "settled_happened"),
            ("run_again", 2, '{"done": "a"}', "succeeded", "settled_run_again"),
            ("give_up", 1, results.given_up(), "given_up", "settled_gave_up"),
        ],
    )
    def test_killed_in_an_unsafe_call_a_person_says_what_became_of_it(
        self, answer: Any, times: int, text: str, outcome: str, event: str
    ) -> None:
        turn = self.killed_in_call(UNSAFE)

        assert self.go_on(turn) == "suspended"
        row = self.only(turn)
        assert (row.status, self.effects(UNSAFE)) == ("in_doubt", [("a", 2)])
        known = {"done": "a"} if answer == "happened" else None
        services.settle(row.pk, answer, by=None, via="contract", result=known)
        self.go_on(turn)

        assert self.effects(UNSAFE) == [("a", 2)] * times
        assert self.effects(FREE) == [("x", 1)]
        assert dict(self.told())["c1"] == text
        told = ["raised", "approved", "in_doubt", event]
        last = ["resolved"] if answer == "run_again" else []
        assert self.events(row) == told + last
        self.assert_completed(turn, outcome)

    def test_killed_in_an_idempotent_call_it_runs_again_under_the_same_key(
        self,
    ) -> None:
        turn = self.killed_in_call(IDEMPOTENT)

        self.go_on(turn)

        first, second = (
            one["key"] for one in world.noted("effect") if one["tool"] == IDEMPOTENT
        )
        assert first == second != ""
        assert self.effects(FREE) == [("x", 1)]
        assert self.tool_steps(turn).count("succeeded") == 2
        self.assert_completed(turn, "succeeded")

    def test_killed_in_a_call_that_can_be_looked_up_it_is_looked_up(self) -> None:
        turn = self.killed_in_call(LOOKUP)

        self.go_on(turn)

        [key] = [one["key"] for one in world.noted("effect") if one["tool"] == LOOKUP]
        assert [one["key"] for one in world.noted("lookup")] == [key]
        assert self.effects(FREE) == [("x", 1)]
        assert dict(self.told())["c1"] == results.readable({"done": "a"})
        self.assert_completed(turn, "succeeded")

    def test_killed_in_a_transactional_call_it_happens_exactly_once(self) -> None:
        turn = self.killed_in_call(TRANSACTIONAL)
        assert self.effects(TRANSACTIONAL) == []

        self.go_on(turn)

        assert self.effects(TRANSACTIONAL) == [("a", 2)]
        assert self.effects(FREE) == [("x", 1)]
        self.assert_completed(turn, "succeeded")

    def test_killed_in_a_call_that_only_reads_it_reads_again(self) -> None:
        turn = self.killed_in_call(READING)

        self.go_on(turn)

        assert self.effects(READING) == [("a", 2)] * 2
        assert self.effects(FREE) == [("x", 1)]
        self.assert_completed(turn, "succeeded")

    def test_killed_in_a_free_call_a_person_says_what_became_of_it(self) -> None:
        turn = self.start([call("c1", FREE, "x")], run=False)
        world.plan(FREE, world.DIE)
        self.killed_elsewhere(turn)
        self.recover(turn)

        assert self.go_on(turn) == "suspended"
        row = self.only(turn)
        assert (row.status, self.effects(FREE)) == ("in_doubt", [("x", 1)])
        services.settle(
            row.pk, "happened", by=None, via="contract", result={"done": "x"}
        )
        self.go_on(turn)

        assert self.effects(FREE) == [("x", 1)]
        assert self.told() == [("c1", results.readable({"done": "x"}))]
        self.assert_completed(turn, "succeeded")

    def test_of_a_call_that_nobody_knows_about_the_others_run(self) -> None:
        turn = self.start([call("c1", UNSAFE, "a"), call("c2", READING, "b")])
        world.plan(UNSAFE, world.LOSE)

        self.decide_all(turn)

        assert self.go_on(turn) == "suspended"
        doubtful, other = self.rows(turn)
        assert (doubtful.status, other.outcome_status) == ("in_doubt", "succeeded")
        assert (self.effects(UNSAFE), self.effects(READING)) == ([("a", 1)], [("b", 1)])
        services.settle(doubtful.pk, "give_up", by=None, via="contract")
        self.go_on(turn)

        assert (self.effects(UNSAFE), self.effects(READING)) == ([("a", 1)], [("b", 1)])
        assert dict(self.told())["c1"] == results.given_up()
        self.assert_completed(turn, "given_up", "succeeded")

    # between two pauses

    def test_killed_before_the_first_pause_it_asks_once(self) -> None:
        turn = self.start([call("c1", FREE, "x"), call("c2", UNSAFE, "a")], run=False)
        self.killed_elsewhere(turn, killed_at="suspend.before_commit")
        assert self.rows(turn) == []
        self.recover(turn)

        self.go_on(turn)

        self.decide(self.only(turn))
        self.go_on(turn)
        assert (self.effects(UNSAFE), self.effects(FREE)) == ([("a", 1)], [("x", 1)])
        self.assert_completed(turn, "succeeded")

    def test_killed_between_two_pauses_nothing_is_done_twice(self) -> None:
        turn = self.start(
            [call("c1", UNSAFE, "a")],
            [call("c2", FREE, "x")],
            [call("c3", UNSAFE, "b")],
        )
        self.decide_all(turn)
        self.killed_elsewhere(turn, killed_at="suspend.before_commit")
        assert (self.effects(UNSAFE), self.effects(FREE)) == ([("a", 1)], [("x", 1)])
        self.recover(turn)

        self.go_on(turn)

        assert (self.effects(UNSAFE), self.effects(FREE)) == ([("a", 1)], [("x", 1)])
        if self.capabilities.replays_replies:
            # On record since the free call began; the reply after it was not yet.
            assert self.asked().count(1) == 1
        (second,) = self.waiting(turn)
        self.decide(second)
        self.go_on(turn)
        assert self.effects(UNSAFE) == [("a", 1), ("b", 1)]
        assert self.effects(FREE) == [("x", 1)]
        self.assert_completed(turn, "succeeded", "succeeded")

    def test_killed_at_its_end_it_ends_without_doing_anything_twice(self) -> None:
        turn = self.start([call("c1", UNSAFE, "a"), call("c2", FREE, "x")])
        self.decide_all(turn)
        self.killed_elsewhere(turn, killed_at="end.before_commit")
        self.recover(turn)

        self.go_on(turn)

        assert (self.effects(UNSAFE), self.effects(FREE)) == ([("a", 1)], [("x", 1)])
        self.assert_completed(turn, "succeeded")
