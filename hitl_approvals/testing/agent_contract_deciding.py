"""What every kind of agent makes of a decision: approved, edited, refused, answered, late."""

from __future__ import annotations

from typing import Any

import pytest

from hitl_approvals import Edit, Reject, Respond, results, services
from hitl_approvals.exceptions import PayloadRejected
from hitl_approvals.testing import agent_contract_rows as waits
from hitl_approvals.testing import agent_contract_world as world
from hitl_approvals.testing.agent_contract_harness import INPUT, AgentContractHarness
from hitl_approvals.testing.agent_contract_world import FREE, READING, UNSAFE, call

LARGE = 2**53 + 1
"""The smallest whole number above 0 that a float does not hold."""
WORDS = 'caf\u00e9 "1\\2" \u2028 <b> \U0001f600'
"""Letters that get lost where text is written or escaped twice."""
COLOR = {
    "type": "object",
    "properties": {"color": {"enum": ["red", "blue"]}},
    "required": ["color"],
}


class AgentDeciding(AgentContractHarness):
    """One pause, and every way in which it can end."""

    def test_an_approved_call_runs_once_and_the_model_is_told(self) -> None:
        turn = self.start([call("c1", UNSAFE, "a", 5)])
        assert (turn.status, self.effects(UNSAFE)) == ("suspended", [])
        row = self.only(turn)
        assert (row.tool_name, row.args) == (UNSAFE, {"amount": 5, "item": "a"})
        assert row.context["asked"] == INPUT

        self.decide(row)
        assert self.go_on(turn) == "completed"

        assert self.effects(UNSAFE) == [("a", 5)]
        assert self.told() == [("c1", results.readable({"done": "a"}))]
        assert self.asked() == [0, 1]
        assert self.events(row) == ["raised", "approved", "resolved"]
        assert self.tool_steps(turn) == ["succeeded"]
        self.assert_completed(turn, "succeeded")

    def test_an_edited_call_runs_as_edited_and_the_model_is_told_so(self) -> None:
        turn = self.start([call("c1", UNSAFE, "a", 5)])
        row = self.only(turn)

        self.decide(row, Edit({"item": "a", "amount": 3}, reason="too much"))
        self.go_on(turn)

        assert self.effects(UNSAFE) == [("a", 3)]
        [(call_id, text)] = self.told()
        assert call_id == "c1"
        assert "A reviewer changed this call before it ran: amount from 5 to 3" in text
        assert '"too much"' in text
        assert self.events(row) == ["raised", "edited", "resolved"]
        self.assert_completed(turn, "succeeded")

    def test_what_runs_is_what_was_shown_to_the_last_digit_and_letter(self) -> None:
        turn = self.start([call("c1", UNSAFE, WORDS, LARGE), call("c2", UNSAFE, "b")])
        first, second = self.rows(turn)
        assert first.args == {"amount": LARGE, "item": WORDS}

        self.decide(first)
        self.decide(second, Edit({"item": "b", "amount": LARGE + 1}))
        self.go_on(turn)

        assert self.effects(UNSAFE) == [(WORDS, LARGE), ("b", LARGE + 1)]
        told = dict(self.told())
        assert told["c1"] == results.readable({"done": WORDS})
        assert f"amount from 1 to {LARGE + 1}" in told["c2"]
        self.assert_completed(turn, "succeeded", "succeeded")

    def test_a_rejected_call_has_no_effect_and_the_model_reads_why(self) -> None:
        turn = self.start([call("c1", UNSAFE, "a"), call("c2", READING, "b")])
        first, second = self.rows(turn)

        self.decide(first, Reject("not today"))
        self.decide(second, Reject("nor this"))
        self.go_on(turn)

        assert (self.effects(UNSAFE), self.effects(READING)) == ([], [])
        assert self.tool_steps(turn) == []
        assert [call_id for call_id, _text in self.told()] == ["c1", "c2"]
        if self.capabilities.reject_text:
            assert [text for _id, text in self.told()] == [
                results.rejected("not today"),
                results.rejected("nor this"),
            ]
        assert self.events(first) == ["raised", "rejected", "resolved"]
        self.assert_completed(turn, "refused", "refused")

    def test_two_calls_of_one_reply_with_the_same_id_are_two_calls_or_none(
        self,
    ) -> None:
        turn = self.start([call("c1", UNSAFE, "a"), call("c1", UNSAFE, "b", 2)])
        if turn.status == "failed":
            # A framework that cannot tell them apart: refused before anything happens.
            assert (self.rows(turn), self.effects(UNSAFE)) == ([], [])
            return
        first, second = self.rows(turn)
        asked = [first.args, second.args]
        assert asked == [{"amount": 1, "item": "a"}, {"amount": 2, "item": "b"}]

        self.decide(first, Reject("not this one"))
        self.decide(second)
        self.go_on(turn)

        assert self.effects(UNSAFE) == [("b", 2)]
        assert self.asked() == [0, 1]
        self.assert_completed(turn, "refused", "succeeded")

    def test_a_call_that_nobody_decides_in_time_has_no_effect(self) -> None:
        turn = self.start([call("c1", UNSAFE, "a")])
        row = self.only(turn)

        waits.pass_expires_at(row)
        services.sweep()
        self.go_on(turn)

        assert self.effects(UNSAFE) == []
        assert [call_id for call_id, _text in self.told()] == ["c1"]
        if self.capabilities.reject_text:
            assert self.told() == [("c1", results.expired())]
        assert self.events(row) == ["raised", "expired", "resolved"]
        self.assert_completed(turn, "expired")

    def test_each_of_three_calls_gets_its_own_decision(self) -> None:
        turn = self.start(
            [
                call("c1", UNSAFE, "a", 1),
                call("c2", UNSAFE, "b", 2),
                call("c3", READING, "c", 3),
            ]
        )
        first, second, third = self.rows(turn)
        assert turn.undecided == 3

        self.decide(third)
        self.decide(second, Reject("no"))
        # Two of three are decided: nothing may run yet.
        assert self.go_on(turn) == "dropped"
        assert (self.effects(UNSAFE), self.effects(READING)) == ([], [])
        self.decide(first, Edit({"item": "a", "amount": 9}))
        self.go_on(turn)

        assert self.effects(UNSAFE) == [("a", 9)]
        assert self.effects(READING) == [("c", 3)]
        told = dict(self.told())
        assert set(told) == {"c1", "c2", "c3"}
        assert "amount from 1 to 9" in told["c1"]
        assert told["c3"] == results.readable({"done": "c"})
        assert self.asked() == [0, 1]
        self.assert_completed(turn, "succeeded", "refused", "succeeded")

    def test_calls_that_need_nobody_run_once_beside_one_that_waits(self) -> None:
        turn = self.start(
            [call("c1", FREE, "x"), call("c2", UNSAFE, "a"), call("c3", FREE, "y")]
        )
        assert (turn.undecided, self.effects(UNSAFE)) == (1, [])

        self.decide_all(turn)
        self.go_on(turn)

        assert self.effects(FREE) == [("x", 1), ("y", 1)]
        assert self.effects(UNSAFE) == [("a", 1)]
        assert set(dict(self.told())) == {"c1", "c2", "c3"}
        self.assert_completed(turn, "succeeded")

    def test_a_call_that_nobody_has_to_approve_does_not_wait(self) -> None:
        turn = self.start([call("c1", FREE, "x")])

        assert self.effects(FREE) == [("x", 1)]
        assert self.told() == [("c1", results.readable({"done": "x"}))]
        self.assert_completed(turn)

    def test_an_unfit_edit_is_refused_before_it_is_stored(self) -> None:
        turn = self.start([call("c1", UNSAFE, "a", 5)])
        row = self.only(turn)

        for args in (
            {"item": "a", "amount": "many"},
            {"amount": 5},
            {"item": "another", "amount": 5},
        ):
            with pytest.raises(PayloadRejected):
                self.decide(row, Edit(args))

        unchanged = self.only(turn)
        assert (unchanged.status, unchanged.revision) == ("pending", row.revision)
        assert self.events(row) == ["raised"]
        assert (self.go_on(turn), self.effects(UNSAFE)) == ("dropped", [])
        self.decide(row, Edit({"item": "a", "amount": 4}))
        self.go_on(turn)
        assert self.effects(UNSAFE) == [("a", 4)]
        self.assert_completed(turn, "succeeded")

    def test_a_tools_error_is_a_result_for_the_model(self) -> None:
        turn = self.start([call("c1", UNSAFE, "a"), call("c2", FREE, "x")])
        world.plan(UNSAFE, world.DECLINE)

        self.decide_all(turn)
        self.go_on(turn)

        assert self.effects(UNSAFE) == []
        told = dict(self.told())
        assert told["c1"] == results.failed("the other side said no")
        assert told["c2"] == results.readable({"done": "x"})
        self.assert_completed(turn, "failed")

    @pytest.mark.parametrize(
        "wrong",
        [
            {"id": "c1", "name": "no_such_tool", "args": {"item": "a"}},
            {"id": "c1", "name": UNSAFE, "args": {"item": "a", "amount": "many"}},
            {"id": "c1", "name": UNSAFE, "args": '{"item": "a'},
        ],
        ids=["unknown tool", "unfit arguments", "unreadable arguments"],
    )
    def test_what_cannot_be_called_is_an_answer_and_no_crash(self, wrong: Any) -> None:
        turn = self.start([wrong, call("c2", FREE, "x")])

        told = dict(self.told())
        assert set(told) == {"c1", "c2"}
        assert told["c1"]
        assert (self.effects(UNSAFE), self.effects(FREE)) == ([], [("x", 1)])
        assert self.asked() == [0, 1]
        self.assert_completed(turn)

    def test_a_question_is_answered_by_what_fits_it(self) -> None:
        if not self.capabilities.questions:
            with pytest.raises(NotImplementedError):
                self.make_asking_agent(self.name, {"question": "Which?"}, COLOR)
            return
        self.make_asking_agent(self.name, {"question": "Which?"}, COLOR)
        turn = self.start_registered()
        row = self.only(turn)
        assert (row.kind, row.payload) == ("question", {"question": "Which?"})

        with pytest.raises(PayloadRejected):
            self.decide(row, Respond({"color": "green"}))
        assert self.events(row) == ["raised"]
        self.decide(row, Respond({"color": "blue"}))
        self.go_on(turn)

        assert turn.output == {"color": "blue"}
        assert self.events(row) == ["raised", "responded", "resolved"]
        self.assert_completed(turn, "answered")

    def test_a_question_that_a_person_refuses_has_no_answer(self) -> None:
        if not self.capabilities.questions:
            return
        self.make_asking_agent(self.name, {"question": "Which?"}, COLOR)
        turn = self.start_registered()
        row = self.only(turn)

        self.decide(row, Reject("ask somebody else"))
        self.go_on(turn)

        # What the agent makes of it is its own affair: it may catch the refusal, be told of
        # it, or fail and be tried again. No answer is made up, and nobody is asked twice.
        told = self.only(turn)
        assert self.events(row)[:2] == ["raised", "rejected"]
        assert told.outcome_status in {"", "refused"}
        assert told.decision_value is None
        assert turn.output is None or "color" not in turn.output
