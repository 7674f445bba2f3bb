"""What every kind of agent makes of a release in the middle of a pause."""

from __future__ import annotations

from typing import Any

import pytest

from hitl_approvals import services
from hitl_approvals.models import AgentTurn
from hitl_approvals.testing import agent_contract_rows as waits
from hitl_approvals.testing.agent_contract_harness import AgentContractHarness
from hitl_approvals.testing.agent_contract_world import FREE, NAMES, UNSAFE, call

REMEDIES = ("retry", "re_review", "restart", "cancel")
"""What a person can do about a turn that needs attention."""


class AgentDrift(AgentContractHarness):
    """Another tool, another agent, another framework than the one that paused."""

    def approved(self) -> AgentTurn:
        """Return a turn whose one call was approved and did not run yet."""
        turn = self.start([call("c1", UNSAFE, "a")])
        self.decide_all(turn)
        turn.refresh_from_db()
        assert turn.status == "ready"
        return turn

    def assert_kept(self, turn: AgentTurn) -> None:
        """Assert that nothing ran and that the decision is still there."""
        row = self.only(turn)
        assert (row.status, row.decision) == ("decided", "approve")
        assert self.events(row) == ["raised", "approved"]
        assert self.effects(UNSAFE) == []
        assert self.tool_steps(turn) == []

    def test_a_tool_that_takes_other_arguments_now_goes_back_to_a_person(self) -> None:
        turn = self.approved()

        [ended] = self.elsewhere(turn, upgraded=True)

        assert (ended.outcome, turn.status) == ("suspended", "suspended")
        row = self.only(turn)
        assert (row.status, row.generation) == ("pending", 2)
        assert "currency" in row.args_schema["properties"]
        assert self.effects(UNSAFE) == []
        self.decide(row)
        self.elsewhere(turn, upgraded=True)
        assert self.effects(UNSAFE) == [("a", 1)]
        assert self.events(row) == [
            "raised",
            "approved",
            "reopened",
            "approved",
            "resolved",
        ]
        self.assert_completed(turn, "succeeded")

    def test_a_tool_that_is_gone_is_a_visible_stop(self) -> None:
        turn = self.approved()
        left = [name for name in NAMES if name != UNSAFE]

        self.elsewhere(turn, tools=left)

        assert turn.status == "needs_attention"
        assert UNSAFE in turn.last_error
        self.assert_kept(turn)
        services.retry(turn.pk, by=None, via="contract")
        self.go_on(turn)
        assert self.effects(UNSAFE) == [("a", 1)]
        self.assert_completed(turn, "succeeded")

    def test_another_version_of_the_agent_does_not_take_the_turn(self) -> None:
        turn = self.approved()

        [ended] = self.elsewhere(turn, version="2")

        assert (ended.outcome, turn.status) == ("dropped", "ready")
        self.assert_kept(turn)
        [ended] = self.elsewhere(turn, version="2", accepts=["1"])
        assert ended.outcome == "completed"
        assert self.effects(UNSAFE) == [("a", 1)]
        self.assert_completed(turn, "succeeded")

    @pytest.mark.parametrize("remedy", REMEDIES)
    def test_a_turn_that_no_process_takes_is_a_visible_stop(self, remedy: str) -> None:
        turn = self.approved()
        self.elsewhere(turn, version="2")

        waits.go_unclaimed(turn)

        turn.refresh_from_db()
        assert turn.status == "needs_attention"
        assert f"No worker takes agent `{self.name}` version 1" in turn.last_error
        self.assert_kept(turn)
        self.remedied(turn, remedy)

    @pytest.mark.parametrize("remedy", REMEDIES)
    def test_a_state_of_a_newer_framework_is_a_visible_stop(self, remedy: str) -> None:
        turn = self.approved()
        if not self.keeps_versions(turn):
            return
        state = turn.state

        waits.rewrite_state(turn, framework_version="999.0")
        self.go_on(turn)

        assert turn.status == "needs_attention"
        assert "999.0" in turn.last_error
        self.assert_kept(turn)
        if remedy in {"retry", "re_review"}:
            # The version that wrote it is installed again.
            waits.rewrite_state(turn, **state)
        self.remedied(turn, remedy)

    @pytest.mark.parametrize(
        "changes",
        [{"adapter": 999}, {"framework": "another"}],
        ids=["adapter", "framework"],
    )
    def test_a_state_of_another_adapter_is_a_visible_stop(
        self, changes: dict[str, Any]
    ) -> None:
        turn = self.approved()
        if not self.keeps_versions(turn):
            return

        waits.rewrite_state(turn, **changes)
        self.go_on(turn)

        assert turn.status == "needs_attention"
        assert "was paused by" in turn.last_error or "not paused by" in turn.last_error
        self.assert_kept(turn)
        self.remedied(turn, "restart")

    def keeps_versions(self, turn: AgentTurn) -> bool:
        """Tell whether the turn has a state with versions; assert why not otherwise."""
        if self.capabilities.state_format == "journal":
            # Steps are read by every version of this package alike.
            assert "framework_version" not in (turn.state or {})
            return False
        assert turn.state["framework_version"]
        return True

    def remedied(self, turn: AgentTurn, remedy: str) -> None:
        """Do what a person does about a stopped turn, and see it end."""
        if remedy == "cancel":
            services.cancel(turn.pk, by=None, via="contract")
            turn.refresh_from_db()
            assert turn.status == "cancelled"
            assert self.only(turn).outcome_status == "withdrawn"
            assert self.effects(UNSAFE) == []
            self.assert_settled_once(turn)
            return
        if remedy == "re_review":
            services.re_review(self.only(turn).pk, by=None, via="contract")
        verb = services.restart if remedy == "restart" else services.retry
        verb(turn.pk, by=None, via="contract")
        self.go_on(turn)
        before = {"restart": ["withdrawn"], "re_review": ["superseded"]}.get(remedy, [])
        if before:
            # What was decided is taken back, and the call is asked about again.
            assert (turn.status, self.effects(UNSAFE)) == ("suspended", [])
            self.decide_all(turn)
            self.go_on(turn)
        assert self.effects(UNSAFE) == [("a", 1)]
        assert self.effects(FREE) == []
        self.assert_completed(turn, *before, "succeeded")
