"""The contract of every kind of agent, and what only a forwarder has to do."""

from __future__ import annotations

from hitl_approvals import results
from hitl_approvals.testing.agent_contract import AgentContract
from hitl_approvals.testing.agent_contract_world import FREE, UNSAFE, call


class ForwarderContract(AgentContract):
    """Workers that are killed between an effect and the delivery of its result."""

    def test_killed_between_a_call_and_its_delivery_another_process_delivers(
        self,
    ) -> None:
        turn = self.start([call("c1", UNSAFE, "a")], [call("c2", UNSAFE, "b")])
        self.decide_all(turn)
        self.killed_elsewhere(turn, killed_at="record.after_commit")
        assert (self.effects(UNSAFE), self.asked()) == ([("a", 1)], [0])
        self.recover(turn)

        [ended] = self.elsewhere(turn)

        assert (ended.outcome, turn.status) == ("suspended", "suspended")
        assert self.effects(UNSAFE) == [("a", 1)]
        assert self.asked() == [0, 1]
        assert self.told() == [("c1", results.readable({"done": "a"}))]
        self.decide_all(turn)
        self.go_on(turn)
        assert self.effects(UNSAFE) == [("a", 1), ("b", 1)]
        self.assert_completed(turn, "succeeded", "succeeded")

    def test_killed_between_a_free_call_and_its_delivery_it_is_not_run_again(
        self,
    ) -> None:
        turn = self.start([call("c1", FREE, "x")], [call("c2", UNSAFE, "a")], run=False)
        # The first record is that the workflow was started; it goes on without us.
        self.killed_elsewhere(turn, killed_at="record.after_commit")
        assert self.effects(FREE) == []
        self.recover(turn)
        self.killed_elsewhere(turn, killed_at="record.after_commit")
        assert (self.effects(FREE), self.asked()) == ([("x", 1)], [0])
        self.recover(turn)

        self.go_on(turn)

        assert turn.status == "suspended"
        assert (self.effects(FREE), self.asked()) == ([("x", 1)], [0, 1])
        self.decide_all(turn)
        self.go_on(turn)
        assert self.effects(FREE) == [("x", 1)]
        self.assert_completed(turn, "succeeded")
