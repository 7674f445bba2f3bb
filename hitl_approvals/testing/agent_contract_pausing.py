"""What every kind of agent makes of several pauses, of itself, and of other processes."""

from __future__ import annotations

import os

import pytest

from hitl_approvals import Reject, results, services
from hitl_approvals.exceptions import TransitionNotAllowed
from hitl_approvals.services.forking import REPLAYED_KINDS
from hitl_approvals.testing import agent_contract_rows as waits
from hitl_approvals.testing import agent_contract_world as world
from hitl_approvals.testing.agent_contract_harness import AgentContractHarness
from hitl_approvals.testing.agent_contract_world import FREE, READING, UNSAFE, call


class AgentPausing(AgentContractHarness):
    """Pauses after each other, and who may end them."""

    def test_it_pauses_again_after_it_went_on(self) -> None:
        turn = self.start(
            [call("c1", UNSAFE, "a")],
            [call("c2", FREE, "x"), call("c3", UNSAFE, "b")],
            [call("c4", READING, "c")],
        )

        for done in (1, 2, 3):
            (row,) = self.waiting(turn)
            self.decide(row)
            self.go_on(turn)
            assert len(self.rows(turn)) == min(done + 1, 3)

        assert self.effects(UNSAFE) == [("a", 1), ("b", 1)]
        assert (self.effects(FREE), self.effects(READING)) == ([("x", 1)], [("c", 1)])
        assert self.asked() == [0, 1, 2, 3]
        assert [call_id for call_id, _text in self.told()] == ["c1", "c2", "c3", "c4"]
        self.assert_completed(turn, "succeeded", "succeeded", "succeeded")

    def test_an_id_that_comes_again_in_a_later_reply_is_another_call(self) -> None:
        turn = self.start([call("c1", UNSAFE, "a")], [call("c1", UNSAFE, "b")])

        self.decide(self.only(turn), Reject("not this"))
        self.go_on(turn)
        assert (turn.status, self.effects(UNSAFE)) == ("suspended", [])
        (second,) = self.waiting(turn)
        self.decide(second)
        self.go_on(turn)

        assert self.effects(UNSAFE) == [("b", 1)]
        self.assert_completed(turn, "refused", "succeeded")

    @pytest.mark.parametrize("call_id", ["c1", "c2"])
    def test_the_very_same_call_again_is_asked_about_again(self, call_id: str) -> None:
        turn = self.start([call("c1", UNSAFE, "a")], [call(call_id, UNSAFE, "a")])
        first = self.only(turn)

        self.decide(first)
        self.go_on(turn)
        # One approval is one effect, whatever the model asks for afterwards.
        assert (turn.status, self.effects(UNSAFE)) == ("suspended", [("a", 1)])
        (second,) = self.waiting(turn)
        assert second.context["repeat_of"] == str(first.pk)
        self.decide(second, Reject("once is enough"))
        self.go_on(turn)

        assert self.effects(UNSAFE) == [("a", 1)]
        self.assert_completed(turn, "succeeded", "refused")

    def test_an_approval_that_was_not_used_in_time_is_asked_for_again(self) -> None:
        turn = self.start([call("c1", UNSAFE, "a")])
        row = self.only(turn)
        self.decide(row)
        waits.pass_execute_by(row)

        # Nobody swept: the run itself finds that it comes too late.
        assert self.go_on(turn) == "suspended"
        assert self.effects(UNSAFE) == []
        again = self.only(turn)
        assert (again.status, again.generation) == ("pending", 2)
        self.decide(again)
        self.go_on(turn)

        assert self.effects(UNSAFE) == [("a", 1)]
        assert self.events(row) == [
            "raised",
            "approved",
            "lapsed",
            "approved",
            "resolved",
        ]
        self.assert_completed(turn, "succeeded")

    def test_a_stop_that_the_agent_swallows_is_not_believed(self) -> None:
        script = world.Script(
            [{"text": "I will.", "tool_calls": [call("c1", UNSAFE, "a")]}]
        )
        if not self.make_stubborn_agent(self.name, world.tools(), script):
            # No code of a site's own stands between the model and the gate.
            assert self.effects(UNSAFE) == []
            return
        turn = self.start_registered()

        assert turn.status in {"suspended", "needs_attention"}
        assert self.effects(UNSAFE) == []
        assert self.tool_steps(turn) == []

    def test_a_fork_is_refused_where_nothing_can_be_replayed(self) -> None:
        turn = self.start([call("c1", UNSAFE, "a")])
        if self.kind in REPLAYED_KINDS:
            assert services.fork(turn.pk).status == "suspended"
            return

        with pytest.raises(TransitionNotAllowed, match="cannot be forked"):
            services.fork(turn.pk)

        assert self.events(self.only(turn)) == ["raised"]

    # other processes

    def test_another_process_goes_on_with_what_this_one_paused(self) -> None:
        turn = self.start(
            [call("c1", UNSAFE, "a"), call("c2", FREE, "x")], [call("c3", UNSAFE, "b")]
        )
        self.decide_all(turn)

        [ended] = self.elsewhere(turn)

        assert (ended.outcome, turn.status) == ("suspended", "suspended")
        self.decide_all(turn)
        self.go_on(turn)
        here = os.getpid()
        pids = {one["item"]: one["pid"] for one in world.noted("effect")}
        assert pids == {"x": here, "a": ended.pid, "b": here} or pids == {
            "x": ended.pid,
            "a": ended.pid,
            "b": here,
        }
        assert self.effects(UNSAFE) == [("a", 1), ("b", 1)]
        assert self.effects(FREE) == [("x", 1)]
        assert self.asked() == [0, 1, 2]
        self.assert_completed(turn, "succeeded", "succeeded")

    def test_this_process_goes_on_with_what_another_one_paused(self) -> None:
        turn = self.start([call("c1", UNSAFE, "a")], run=False)

        [ended] = self.elsewhere(turn)

        assert (ended.outcome, turn.status) == ("suspended", "suspended")
        self.decide_all(turn)
        self.go_on(turn)
        assert self.effects(UNSAFE) == [("a", 1)]
        assert self.told() == [("c1", results.readable({"done": "a"}))]
        self.assert_completed(turn, "succeeded")

    def test_of_two_processes_that_go_on_at_once_one_does(self) -> None:
        for _round in range(2):
            turn = self.start([call("c1", UNSAFE, "a"), call("c2", READING, "b")])
            before = len(self.effects(UNSAFE)), self.asked().count(1)
            self.decide_all(turn)

            ended = self.elsewhere(turn, processes=2)

            outcomes = sorted(one.outcome for one in ended)
            assert outcomes == ["completed", "dropped"]
            assert len(self.effects(UNSAFE)) == before[0] + 1
            assert self.asked().count(1) == before[1] + 1
            self.assert_completed(turn, "succeeded", "succeeded")
