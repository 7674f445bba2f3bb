"""What a cancelled turn may have left outside is noted, announced and looked after."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import DatabaseError

from hitl_approvals import dispatchers, run_turn, services, start_turn
from hitl_approvals.agents import base
from hitl_approvals.agents.capabilities import KINDS, capabilities_of
from hitl_approvals.models import AgentTurn, db_now_plus
from hitl_approvals.registry import AgentDefinition, registry
from hitl_approvals.services import partings
from tests.support.turns import PAST, begin

pytestmark = pytest.mark.django_db

OUTSIDE = "outside"


class Outside:
    """An agent that leaves something outside, for as long as a test wants it to."""

    def __init__(self) -> None:
        self.is_open: str | Exception = ""
        self.asked: list[Any] = []
        self.meanwhile: Callable[[], None] = lambda: None

    def leave(self, turn: AgentTurn) -> str:
        self.asked.append(turn.pk)
        self.meanwhile()
        if isinstance(self.is_open, Exception):
            raise self.is_open
        return self.is_open


@pytest.fixture
def outside(monkeypatch: pytest.MonkeyPatch) -> Outside:
    made, real = Outside(), base.load
    definition = AgentDefinition(name=OUTSIDE, target=None, kind="tests.outside")

    def load(asked: AgentDefinition) -> Any:
        return made if asked is definition else real(asked)

    monkeypatch.setitem(registry.agents, OUTSIDE, definition)
    monkeypatch.setattr("hitl_approvals.agents.parting.load", load)
    return made


def cancelled() -> AgentTurn:
    turn = start_turn(OUTSIDE, None)
    return services.cancel(turn.pk, by=None, via="test")


def wait(turn: AgentTurn) -> timedelta:
    """Return in what time somebody looks again."""
    found = AgentTurn.objects.annotate(now=db_now_plus(timedelta())).get(pk=turn.pk)
    return found.next_run_at - found.now  # type: ignore[attr-defined]


def test_only_kinds_that_keep_their_turns_with_us_leave_nothing_outside() -> None:
    elsewhere = {k for k in KINDS if capabilities_of(k).durability == "engine"}

    assert {*KINDS, "request"} - elsewhere == partings.OF_ITS_OWN
    assert elsewhere == {"temporal", "dbos", "restate"}


def test_a_turn_of_our_own_leaves_nothing_to_do(world: Any) -> None:
    turn = begin([{"id": "n", "name": "pay", "args": {"order": "A", "amount": "1"}}])
    assert turn.status == "suspended"

    services.cancel(turn.pk, by=None, via="test")

    turn.refresh_from_db()
    assert turn.next_run_at is None
    assert not partings.unsettled().exists()


def test_what_is_over_is_settled_and_asked_for_once(outside: Outside) -> None:
    turn = cancelled()
    assert partings.is_noted(turn)

    assert run_turn(turn.pk) == "cancelled"
    assert run_turn(turn.pk) == "dropped"

    turn.refresh_from_db()
    assert (outside.asked, turn.next_run_at) == ([turn.pk], None)


def test_what_is_open_is_said_and_looked_at_less_and_less_often(
    outside: Outside,
) -> None:
    turn = cancelled()
    outside.is_open = "It waits there."
    waits = []
    for age in (0, 100, 6000, 600_000):
        AgentTurn.objects.filter(pk=turn.pk).update(
            next_run_at=PAST, finished_at=db_now_plus(timedelta(seconds=-age))
        )
        assert run_turn(turn.pk) == "cancelled"
        waits.append(round(wait(turn).total_seconds()))

    turn.refresh_from_db()
    assert turn.last_error == f"{partings.OPEN} It waits there."
    assert waits == [1, 10, 600, 600]

    outside.is_open = ""
    AgentTurn.objects.filter(pk=turn.pk).update(next_run_at=PAST)
    run_turn(turn.pk)
    turn.refresh_from_db()
    assert (turn.next_run_at, turn.last_error) == (None, "")


def test_what_an_earlier_run_said_is_kept(outside: Outside) -> None:
    turn = cancelled()
    AgentTurn.objects.filter(pk=turn.pk).update(last_error="The worker went silent.")

    run_turn(turn.pk)

    turn.refresh_from_db()
    assert turn.last_error == "The worker went silent."


def test_whatever_goes_wrong_is_tried_again(
    outside: Outside, caplog: pytest.LogCaptureFixture
) -> None:
    turn = cancelled()
    outside.is_open = DatabaseError("no such luck")

    assert run_turn(turn.pk) == "cancelled"

    turn.refresh_from_db()
    assert turn.last_error.endswith("DatabaseError: no such luck")
    assert turn.next_run_at is not None
    assert "is not ended" in caplog.text


def test_a_try_that_nobody_hears_of_again_is_made_anew(outside: Outside) -> None:
    turn = cancelled()
    assert partings.take(turn.pk, [OUTSIDE]) is not None

    # The process that took it is gone. Nobody else comes near it until its time is over.
    assert run_turn(turn.pk) == "dropped"
    assert timedelta(seconds=50) < wait(turn) <= partings.LEASE
    AgentTurn.objects.filter(pk=turn.pk).update(next_run_at=PAST)
    assert run_turn(turn.pk) == "cancelled"


def test_an_agent_that_this_process_does_not_know_is_left_to_one_that_does(
    outside: Outside, monkeypatch: pytest.MonkeyPatch
) -> None:
    turn = start_turn(OUTSIDE, None)
    with monkeypatch.context() as patch:
        patch.delitem(registry.agents, OUTSIDE)
        services.cancel(turn.pk, by=None, via="test")
        assert run_turn(turn.pk) == "dropped"
        assert partings.due_to(registry.agents) == []

    assert partings.due_to(registry.agents) == [turn.pk]
    assert run_turn(turn.pk) == "cancelled"
    assert outside.asked == [turn.pk]


def test_the_agent_of_another_letter_case_is_left_alone(outside: Outside) -> None:
    turn = cancelled()
    AgentTurn.objects.filter(pk=turn.pk).update(agent=OUTSIDE.upper())

    assert run_turn(turn.pk) == "dropped"
    assert outside.asked == []


def test_the_sweeper_announces_it_until_somebody_comes(
    outside: Outside, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    settings.HITL_APPROVALS = {**settings.HITL_APPROVALS, "DISPATCHER": "celery"}
    sent: list[Any] = []
    monkeypatch.setattr(dispatchers, "wake", lambda turn_id: not sent.append(turn_id))
    turn = cancelled()
    announced = []
    for seconds in (0, 16, 16, 31):
        AgentTurn.objects.filter(pk=turn.pk).update(
            dispatched_at=db_now_plus(timedelta(seconds=-seconds))
        )
        announced.append(services.sweep().announced)
    assert announced == [0, 1, 0, 1]
    assert set(sent) == {turn.pk}

    run_turn(turn.pk)
    AgentTurn.objects.filter(pk=turn.pk).update(dispatched_at=PAST)
    assert services.sweep().announced == 0


def test_something_that_was_started_too_late_is_noted_again(outside: Outside) -> None:
    turn = cancelled()
    run_turn(turn.pk)

    partings.note_again(turn.pk)

    assert run_turn(turn.pk) == "cancelled"
    assert outside.asked == [turn.pk] * 2
    other = start_turn(OUTSIDE, None)
    before = other.next_run_at
    partings.note_again(other.pk)
    other.refresh_from_db()
    assert other.next_run_at == before


def test_whoever_cancels_announces_it_after_the_commit(
    outside: Outside,
    monkeypatch: pytest.MonkeyPatch,
    django_capture_on_commit_callbacks: Any,
) -> None:
    sent: list[Any] = []
    turn = start_turn(OUTSIDE, None)
    monkeypatch.setattr(dispatchers, "wake", lambda turn_id: not sent.append(turn_id))
    with django_capture_on_commit_callbacks(execute=True):
        services.cancel(turn.pk, by=None, via="test")
        assert sent == []

    assert sent == [turn.pk]


@pytest.mark.parametrize("said", ["", "It waits there."])
def test_a_start_noted_while_somebody_looks_is_looked_for_at_once(
    outside: Outside, said: str
) -> None:
    """What that look found was true before the start."""
    turn = cancelled()
    outside.is_open = said
    outside.meanwhile = lambda: partings.note_again(turn.pk)

    assert run_turn(turn.pk) == "cancelled"

    assert partings.due_to(registry.agents) == [turn.pk]
