"""What holds for every durable engine: one decision, one effect, one delivery."""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command

from hitl_approvals import Edit, Reject, Respond, run_turn, services, start_turn
from hitl_approvals.agents.base import load
from hitl_approvals.agents.following import workflow_id
from hitl_approvals.agents.links import Asking, Seen
from hitl_approvals.models import (
    AgentTurn,
    TurnStep,
    db_now_plus,
)
from hitl_approvals.registry import registry
from hitl_approvals.services import control
from hitl_approvals.services.partings import LATE_START
from hitl_approvals.testing.failpoints import armed
from tests.engines import parting_process
from tests.support import turns
from tests.support.world import raises, world

AGENT = "engine"
PATIENCE = 180
"""Seconds in which an engine that was cut off has to have found back."""
HELD_UP = 30
"""Seconds after which a worker that still waits for an engine that hangs is held up."""


class Died(BaseException):
    """The process is gone at this point."""


def die() -> None:
    raise Died


def call(id_: str, name: str, /, **args: Any) -> dict[str, Any]:
    return {"id": id_, "name": name, "args": args}


PAY = call("c1", "pay", order="A1", amount="5")
MAIL = call("c2", "mail", to="kim")
NOTE = call("c3", "note", text="hello")
SECRET = call("c4", "read", name="door")
AGAIN = call("c1", "pay", order="B2", amount="7")
BROKEN = {"fail": "the model is gone"}
QUESTION = {"ask": {"which": "account?"}, "schema": {"type": "string"}}


class Harness(ABC):
    """One engine with a worker of the test workflow, and the means to disturb both."""

    name: str
    model_calls: list[Any]
    """What the workflow's recorded step was run with, every time that it was run."""

    @abstractmethod
    def stop_server(self) -> None:
        """Kill the engine."""

    @abstractmethod
    def start_server(self) -> None:
        """Start it again, with what it had stored."""

    @abstractmethod
    def stop_worker(self) -> None:
        """Take away what performs the workflows."""

    @abstractmethod
    def start_worker(self) -> None:
        """Bring it back, as a process that remembers nothing."""

    @abstractmethod
    def deliver(self, workflow: str, answer: Any) -> None:
        """Deliver an answer as the adapter does."""

    @abstractmethod
    def deliveries(self, workflow: str) -> int:
        """Return how many answers the engine has let in to a workflow."""

    @abstractmethod
    def cancel(self, workflow: str) -> None:
        """Cancel a workflow, as an operator of the engine does."""

    @abstractmethod
    def is_over(self, workflow: str) -> bool:
        """Wait a little for the end of a workflow, and tell whether it came."""


class ServerHarness(Harness):
    """One that other processes can reach."""

    @abstractmethod
    def freeze_server(self) -> None:
        """Let it take connections and say nothing more."""

    @abstractmethod
    def thaw_server(self) -> None:
        """Let it go on, if it does not."""


def begin(*script: Any, **options: Any) -> AgentTurn:
    """Start a turn whose workflow plays a script, and follow it to its first pause."""
    return turns.begin(*script, agent=AGENT, **options)


def begin_owed(*script: Any) -> AgentTurn:
    return start_turn(AGENT, list(script))


def pursue(turn: AgentTurn) -> str:
    """Run a turn that waits for its engine until something else comes of it."""
    end = time.monotonic() + PATIENCE
    while True:
        outcome = turns.resume(turn)
        if outcome != "ready":
            return outcome
        assert time.monotonic() < end, turn.last_error


def look(turn: AgentTurn) -> Seen:
    """Return what the workflow of a turn is doing, as its adapter sees it."""
    engine = load(registry.agents[turn.agent]).engine  # type: ignore[attr-defined]

    async def ask() -> Seen:
        async with engine.link() as link:
            seen: Seen = await link.look(workflow_id(turn))
            return seen

    return asyncio.run(ask())


def let_go(turn: AgentTurn) -> None:
    """Let workers come by until nothing of a cancelled turn is open any more."""
    end = time.monotonic() + PATIENCE
    while True:
        noted = AgentTurn.objects.filter(pk=turn.pk, next_run_at__isnull=False)
        if not noted.update(next_run_at=turns.PAST):
            break
        call_command("hitl_worker", "--once", stdout=StringIO())
        turn.refresh_from_db()
        assert time.monotonic() < end, turn.last_error
    turn.refresh_from_db()


@contextmanager
def thawed_at_last(engine: ServerHarness) -> Iterator[None]:
    """Thaw the engine at the end, and earlier for a worker that would wait for ever."""
    rescue = threading.Timer(HELD_UP, engine.thaw_server)
    rescue.start()
    try:
        yield
    finally:
        rescue.cancel()
        engine.thaw_server()


def contents(turn: AgentTurn) -> list[list[str]]:
    """Return the text of every message that the workflow got."""
    return [[one["message"]["content"] for one in told] for told in turn.output]


def statuses(turn: AgentTurn) -> list[str]:
    return [one["message"]["status"] for told in turn.output for one in told]


class EngineContract:
    """The suite; a module of tests names its engine by the fixture `engine`."""

    def test_an_approved_call_runs_here_once_and_its_result_arrives(
        self, engine: Harness
    ) -> None:
        turn = begin([PAY])

        assert turn.status == "suspended"
        assert (world.effects, turns.only(turn).tool_name) == ([], "pay")

        turns.decide(turns.only(turn))
        pursue(turn)

        assert turn.status == "completed"
        assert world.names() == ["pay"]
        assert turn.output == [
            [
                {
                    "decision": "approve",
                    "args": {"order": "A1", "amount": "5"},
                    "message": {
                        "role": "tool",
                        "tool_call_id": "c1",
                        "name": "pay",
                        "content": '{"effect": 1}',
                        "status": "ok",
                    },
                }
            ]
        ]
        assert turns.only(turn).status == "resolved"
        assert engine.deliveries(workflow_id(turn)) == 1
        assert len(engine.model_calls) == 1

    def test_each_call_of_a_batch_gets_its_own_decision(self, engine: Harness) -> None:
        other = call("c9", "pay", order="B2", amount="7")
        turn = begin([PAY, other, MAIL, NOTE])

        assert world.names() == ["note"]
        first, second, third = turns.rows(turn)
        turns.decide(first)
        turns.decide(second, Edit({"order": "B2", "amount": "3", "note": ""}))
        assert turns.resume(turn) == "dropped"
        turns.decide(third, Reject("not now"))
        pursue(turn)

        assert turn.status == "completed"
        assert [args.get("amount") for _, args in world.effects] == [None, 5, 3]
        told = turn.output[0]
        assert [one["decision"] for one in told] == ["approve", "edit", "reject", None]
        assert told[1]["args"]["amount"] == "3"
        assert "A reviewer changed this call" in told[1]["message"]["content"]
        assert told[2]["message"]["content"].endswith("Reason: not now")
        assert statuses(turn) == ["ok", "ok", "rejected", "ok"]
        assert [row.status for row in turns.rows(turn)] == ["resolved"] * 3
        assert engine.deliveries(workflow_id(turn)) == 1

    def test_a_rejected_call_has_no_effect(self, engine: Harness) -> None:
        turn = begin([PAY])

        turns.decide(turns.only(turn), Reject("no"))
        pursue(turn)

        assert world.effects == []
        assert statuses(turn) == ["rejected"]
        assert turns.only(turn).outcome_status == "refused"

    def test_a_second_round_asks_again_and_ids_may_come_again(
        self, engine: Harness
    ) -> None:
        turn = begin([PAY], [AGAIN])
        turns.decide(turns.only(turn))
        pursue(turn)

        assert turn.status == "suspended"
        assert [args["order"] for _, args in world.effects] == ["A1"]

        turns.decide(turns.waiting(turn)[0])
        pursue(turn)

        assert turn.status == "completed"
        assert [args["order"] for _, args in world.effects] == ["A1", "B2"]
        assert engine.deliveries(workflow_id(turn)) == 2
        assert len(engine.model_calls) == 2

    def test_calls_that_nobody_has_to_decide_never_suspend(
        self, engine: Harness
    ) -> None:
        turn = begin([NOTE], [SECRET, NOTE])
        pursue(turn)

        assert turn.status == "completed"
        assert world.names() == ["note", "read", "note"]
        assert turns.rows(turn) == []
        assert statuses(turn) == ["ok"] * 3

    def test_a_call_that_cannot_run_is_told_to_the_workflow(
        self, engine: Harness
    ) -> None:
        turn = begin([call("c1", "nonsense"), call("c2", "pay", order="A1")])
        pursue(turn)

        assert turn.status == "completed"
        assert statuses(turn) == ["error", "error"]
        assert "no tool 'nonsense'" in contents(turn)[0][0]

    def test_a_question_is_answered_or_refused(self, engine: Harness) -> None:
        turn = begin(QUESTION, QUESTION)

        assert turns.only(turn).payload == {"which": "account?"}
        turns.decide(turns.only(turn), Respond("savings"))
        pursue(turn)
        turns.decide(turns.waiting(turn)[0], Reject("none of yours"))
        pursue(turn)

        assert turn.status == "completed"
        assert turn.output == [
            {"decision": "respond", "value": "savings", "reason": ""},
            {"decision": "reject", "value": None, "reason": "none of yours"},
        ]

    def test_a_call_in_doubt_goes_to_a_person_before_anything_is_delivered(
        self, engine: Harness
    ) -> None:
        world.plan("pay", raises(TimeoutError("no answer")))
        turn = begin([PAY, MAIL])
        turns.decide_and_resume(turn)

        pay, mail = turns.rows(turn)
        assert (pay.status, mail.outcome_status) == ("in_doubt", "succeeded")
        assert engine.deliveries(workflow_id(turn)) == 0

        turns.settle(pay, "happened")
        pursue(turn)

        assert turn.status == "completed"
        assert world.names() == ["mail"]
        assert engine.deliveries(workflow_id(turn)) == 1

    @pytest.mark.parametrize("point", ["record.after_commit", "end.before_commit"])
    def test_a_worker_that_dies_after_the_effect_repeats_nothing(
        self, engine: Harness, point: str
    ) -> None:
        """Between the tool and the delivery, and between the delivery and the end."""
        turn = begin([PAY])
        turns.decide(turns.only(turn))

        with armed(point, die), pytest.raises(Died):
            pursue(turn)
        delivered = engine.deliveries(workflow_id(turn))
        assert delivered == (0 if point == "record.after_commit" else 1)
        turns.go_silent(turn)
        pursue(turn)

        assert turn.status == "completed"
        assert world.names() == ["pay"]
        assert engine.deliveries(workflow_id(turn)) == 1
        assert statuses(turn) == ["ok"]

    def test_a_worker_that_dies_after_the_delivery_of_a_refusal_keeps_it_resolved(
        self, engine: Harness
    ) -> None:
        turn = begin([PAY], [AGAIN])
        turns.decide(turns.only(turn), Reject("no"))

        with armed("suspend.before_commit", die), pytest.raises(Died):
            pursue(turn)
        turns.go_silent(turn)
        pursue(turn)

        assert [row.status for row in turns.rows(turn)] == ["resolved", "pending"]
        assert engine.deliveries(workflow_id(turn)) == 1
        assert world.effects == []

    def test_a_start_that_nobody_heard_of_is_not_repeated(
        self, engine: Harness
    ) -> None:
        turn = begin_owed([PAY])
        with armed("record.before_commit", die), pytest.raises(Died):
            run_turn(turn.pk)
        turns.go_silent(turn)
        pursue(turn)

        assert turn.status == "suspended"
        assert len(engine.model_calls) == 1

    def test_a_second_delivery_changes_nothing(self, engine: Harness) -> None:
        turn = begin([PAY], [AGAIN])
        turns.decide(turns.only(turn))
        pursue(turn)
        workflow = workflow_id(turn)
        result = {
            "decision": "approve",
            "args": {},
            "message": {"content": "forged", "status": "ok"},
        }
        answer = {
            "round": 1,
            "key": f"{workflow}-1",
            "results": {"c1": result},
        }

        engine.deliver(workflow, answer)
        engine.deliver(workflow, {**answer, "key": "another"})
        turns.decide(turns.waiting(turn)[0], Reject("no"))
        pursue(turn)

        assert turn.status == "completed"
        assert statuses(turn) == ["ok", "rejected"]
        assert "forged" not in str(turn.output)

    def test_an_engine_that_is_down_is_waited_for_and_shown(
        self, engine: Harness
    ) -> None:
        turn = begin([PAY])
        turns.decide(turns.only(turn))

        engine.stop_server()
        try:
            for _times in range(turn.max_attempts + 2):
                assert turns.resume(turn) == "ready"
        finally:
            engine.start_server()

        assert (turn.attempts, turn.status) == (0, "ready")
        assert f"Waits for {engine.name} at 127.0.0.1" in turn.last_error
        assert f", {turn.max_attempts + 2} times: " in turn.last_error
        assert turns.only(turn).status == "decided"
        assert world.effects == []

        pursue(turn)

        assert turn.status == "completed"
        assert world.names() == ["pay"]
        assert engine.deliveries(workflow_id(turn)) == 1

    def test_an_engine_that_is_down_between_effect_and_delivery_gets_it_later(
        self, engine: Harness
    ) -> None:
        turn = begin([PAY])
        turns.decide(turns.only(turn))

        with armed("record.after_commit", engine.stop_server):
            assert turns.resume(turn) == "ready"
        assert (turn.attempts, world.names()) == (0, ["pay"])
        engine.start_server()
        pursue(turn)

        assert turn.status == "completed"
        assert world.names() == ["pay"]
        assert engine.deliveries(workflow_id(turn)) == 1

    def test_an_engine_that_is_down_at_the_start_is_waited_for(
        self, engine: Harness
    ) -> None:
        engine.stop_server()
        try:
            turn = begin([PAY])
            assert (turn.status, turn.attempts) == ("ready", 0)
            assert turns.resume(turn) == "ready"
            assert ", 2 times: " in turn.last_error
        finally:
            engine.start_server()
        pursue(turn)

        assert turn.status == "suspended"
        assert len(engine.model_calls) == 1

    def test_an_approval_that_lapses_while_the_engine_is_down_is_asked_for_again(
        self, engine: Harness
    ) -> None:
        turn = begin([PAY])
        turns.decide(turns.only(turn))
        engine.stop_server()
        try:
            assert turns.resume(turn) == "ready"
            turns.pass_execute_by(turns.only(turn))
            services.sweep()
        finally:
            engine.start_server()

        turn.refresh_from_db()
        assert (turn.status, turns.only(turn).status) == ("suspended", "pending")
        assert world.effects == []
        turns.decide(turns.only(turn))
        pursue(turn)
        assert turn.status == "completed"
        assert world.names() == ["pay"]
        assert engine.deliveries(workflow_id(turn)) == 1

    def test_an_approval_that_lapsed_before_its_run_delivers_nothing(
        self, engine: Harness
    ) -> None:
        turn = begin([PAY])
        turns.decide(turns.only(turn))
        turns.pass_execute_by(turns.only(turn))

        pursue(turn)

        assert (turn.status, turns.only(turn).status) == ("suspended", "pending")
        assert (world.effects, engine.deliveries(workflow_id(turn))) == ([], 0)

    def test_engine_and_worker_may_die_while_people_think(
        self, engine: Harness
    ) -> None:
        turn = begin([PAY])
        engine.stop_worker()
        engine.stop_server()
        engine.start_server()
        engine.start_worker()

        turns.decide(turns.only(turn))
        pursue(turn)

        assert turn.status == "completed"
        assert world.names() == ["pay"]
        assert len(engine.model_calls) == 1

    def test_a_workflow_that_nobody_performs_is_waited_for(
        self, engine: Harness
    ) -> None:
        engine.stop_worker()
        try:
            turn = begin([NOTE])
            turns.resume(turn)
            assert (turn.status, turn.attempts) == ("ready", 0)
            assert f"The workflow {workflow_id(turn)} is at work" in turn.last_error
            assert "2 times seen" in turn.last_error
        finally:
            engine.start_worker()
        pursue(turn)

        assert turn.status == "completed"
        assert world.names() == ["note"]

    def test_a_workflow_that_fails_fails_its_turn(self, engine: Harness) -> None:
        turn = begin([NOTE], BROKEN)
        pursue(turn)

        assert turn.status == "failed"
        assert "the model is gone" in turn.error

    def test_nothing_runs_for_a_workflow_that_was_cancelled(
        self, engine: Harness
    ) -> None:
        turn = begin([PAY])
        engine.cancel(workflow_id(turn))
        assert engine.is_over(workflow_id(turn))
        turns.decide(turns.only(turn))
        pursue(turn)

        assert turn.status == "needs_attention"
        assert workflow_id(turn) in turn.last_error
        assert "Nobody waits there for what was decided here" in turn.last_error
        assert "Restart the turn" in turn.last_error
        assert world.effects == []
        assert turns.only(turn).status == "decided"

        # Looking again changes nothing.
        services.retry(turn.pk, by=None, via="test")
        pursue(turn)
        assert turn.status == "needs_attention"
        services.cancel(turn.pk, by=None, via="test")
        assert turns.only(turn).outcome_status == "withdrawn"
        let_go(turn)
        assert "Nobody waits there" in turn.last_error

    def test_a_workflow_that_was_cancelled_and_waited_for_nobody_fails_its_turn(
        self, engine: Harness
    ) -> None:
        """A request that nobody answered in time is no decision made in vain."""
        turn = begin([PAY])
        engine.cancel(workflow_id(turn))
        assert engine.is_over(workflow_id(turn))
        turns.pass_expires_at(turns.only(turn))
        services.sweep()
        pursue(turn)

        assert turn.status == "failed"
        assert workflow_id(turn) in turn.error
        assert world.effects == []
        assert turns.only(turn).outcome_status == "not_requested_again"

    def test_a_turn_that_is_cancelled_takes_its_workflow_along(
        self, engine: Harness
    ) -> None:
        turn = begin([PAY])
        services.cancel(turn.pk, by=None, via="test")
        assert isinstance(look(turn), Asking)

        let_go(turn)

        assert engine.is_over(workflow_id(turn))
        assert (turn.status, turn.last_error) == ("cancelled", "")
        assert turns.resume(turn) == "dropped"
        assert world.effects == []

    def test_killed_right_after_a_cancellation_the_workflow_is_ended_all_the_same(
        self, engine: Harness
    ) -> None:
        turn = begin([PAY])

        process = parting_process.killed("cancel", turn.pk)

        assert process.returncode == -signal.SIGKILL, process.stderr
        turn.refresh_from_db()
        assert turn.status == "cancelled"
        assert isinstance(look(turn), Asking)
        let_go(turn)
        assert engine.is_over(workflow_id(turn))

    def test_an_engine_that_is_down_is_told_of_a_cancelled_turn_later(
        self, engine: Harness
    ) -> None:
        turn = begin([PAY])
        engine.stop_server()
        try:
            services.cancel(turn.pk, by=None, via="test")
            assert turns.resume(turn) == "cancelled"
            assert turn.last_error.startswith("Cancelled here, but perhaps not every")
            assert f"{engine.name} at 127.0.0.1" in turn.last_error
            assert "does not answer" in turn.last_error
        finally:
            engine.start_server()

        let_go(turn)

        assert engine.is_over(workflow_id(turn))

    def test_a_workflow_that_nobody_performs_is_ended_when_somebody_does(
        self, engine: Harness
    ) -> None:
        turn = begin([PAY])
        engine.stop_worker()
        try:
            services.cancel(turn.pk, by=None, via="test")
            turns.resume(turn)
        finally:
            engine.start_worker()

        let_go(turn)

        assert engine.is_over(workflow_id(turn))

    def test_a_turn_that_no_run_ever_had_leaves_nothing_and_asks_nobody(
        self, engine: Harness
    ) -> None:
        turn = begin_owed([PAY])
        engine.stop_server()
        try:
            services.cancel(turn.pk, by=None, via="test")
            assert turns.resume(turn) == "cancelled"
        finally:
            engine.start_server()

        assert (turn.next_run_at, turn.last_error) == (None, "")

    def test_the_workflows_before_a_restart_are_ended_too(
        self, engine: Harness
    ) -> None:
        turn = begin([PAY])
        first = workflow_id(turn)
        control.restart_open(turn.pk, by=None, via="test", changes={})
        services.cancel(turn.pk, by=None, via="test")
        turn.refresh_from_db()
        # The second was never started, and nobody is about to.
        assert workflow_id(turn) != first
        AgentTurn.objects.filter(pk=turn.pk).update(
            finished_at=db_now_plus(-LATE_START)
        )

        let_go(turn)

        assert engine.is_over(first)

    def test_a_restarted_turn_has_a_workflow_of_its_own(self, engine: Harness) -> None:
        turn = begin([PAY])
        engine.cancel(workflow_id(turn))
        assert engine.is_over(workflow_id(turn))
        turns.decide(turns.only(turn))
        pursue(turn)
        services.restart(turn.pk, by=None, via="test")
        pursue(turn)

        assert workflow_id(turn).endswith("-1")
        assert turn.status == "suspended"
        turns.decide(turns.waiting(turn)[0])
        pursue(turn)
        assert turn.status == "completed"
        assert world.names() == ["pay"]

    def test_a_workflow_that_is_gone_is_a_visible_stop(self, engine: Harness) -> None:
        turn = begin([PAY])
        state = turn.state
        services.cancel(turn.pk, by=None, via="test")
        other = begin_owed([PAY])
        AgentTurn.objects.filter(pk=other.pk).update(state=state)

        turns.resume(other)

        assert other.status == "needs_attention"
        assert "does not know the workflow" in other.last_error
        assert world.effects == []
        assert TurnStep.objects.filter(turn=other.pk).count() == 0


class ServerContract(EngineContract):
    """What holds besides for every engine that other processes can reach."""

    def test_an_engine_that_says_nothing_holds_no_worker_up(
        self, engine: ServerHarness
    ) -> None:
        turn = begin([PAY])
        turns.decide(turns.only(turn))

        with thawed_at_last(engine):
            engine.freeze_server()
            assert turns.resume(turn) == "ready"

        assert (turn.attempts, world.effects) == (0, [])
        assert f"Waits for {engine.name} at 127.0.0.1" in turn.last_error
        pursue(turn)
        assert turn.status == "completed"
        assert world.names() == ["pay"]

    def test_an_engine_that_falls_silent_in_a_run_holds_no_worker_up(
        self, engine: ServerHarness
    ) -> None:
        """Between the effect and its delivery, over a connection that was good."""
        turn = begin([PAY])
        turns.decide(turns.only(turn))

        with thawed_at_last(engine), armed("record.after_commit", engine.freeze_server):
            assert turns.resume(turn) == "ready"

        assert (turn.attempts, world.names()) == (0, ["pay"])
        assert f"Waits for {engine.name} at 127.0.0.1" in turn.last_error
        pursue(turn)
        assert turn.status == "completed"
        assert world.names() == ["pay"]
        assert engine.deliveries(workflow_id(turn)) == 1

    def test_killed_once_the_engine_was_told_it_is_told_again(
        self, engine: Harness
    ) -> None:
        turn = begin([PAY])
        services.cancel(turn.pk, by=None, via="test")

        process = parting_process.killed("leave", turn.pk)

        assert process.returncode == -signal.SIGKILL, process.stderr
        turn.refresh_from_db()
        assert turn.next_run_at is not None
        assert turns.resume(turn) == "dropped"
        let_go(turn)
        assert engine.is_over(workflow_id(turn))


class ForestallingContract(ServerContract):
    """What holds for engines that keep the id of a workflow that was never performed."""

    def test_a_worker_frozen_before_its_start_starts_nothing_after_a_cancellation(
        self, engine: Harness
    ) -> None:
        """However long it was frozen, and though it is killed before it could tell."""
        turn = begin_owed([PAY])
        with parting_process.frozen_before_its_start(turn.pk):
            services.cancel(turn.pk, by=None, via="test")
            AgentTurn.objects.filter(pk=turn.pk).update(
                finished_at=db_now_plus(-10 * LATE_START)
            )
            let_go(turn)

        assert engine.is_over(workflow_id(turn))
        assert len(engine.model_calls) == 0
        assert (turn.status, turn.next_run_at, turn.last_error) == (
            "cancelled",
            None,
            "",
        )

    def test_a_worker_frozen_before_its_start_starts_nothing_after_a_restart(
        self, engine: Harness
    ) -> None:
        turn = begin_owed([PAY])
        first = workflow_id(turn)
        with parting_process.frozen_before_its_start(turn.pk):
            turns.go_silent(turn)
            control.restart_open(turn.pk, by=None, via="test", changes={})
            turn.refresh_from_db()
            pursue(turn)

        assert turn.status == "suspended"
        assert engine.is_over(first)
        assert len(engine.model_calls) == 1
        turns.decide(turns.only(turn))
        pursue(turn)
        assert turn.status == "completed"
        assert world.names() == ["pay"]
