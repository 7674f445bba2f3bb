"""Hints that mean nothing are dropped, whatever they hold."""

from __future__ import annotations

from uuid import uuid4

import pytest

from hitl_approvals import results, run_turn
from hitl_approvals.models import AgentTurn
from hitl_approvals.registry import registry
from hitl_approvals.services import starting
from tests.concurrency import agents_that_race  # noqa: F401  registers the agent

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("hint", ["no uuid", "", "1", str(uuid4()), uuid4()])
def test_a_hint_for_nothing_is_dropped(hint: object) -> None:
    assert run_turn(hint) == "dropped"


def test_a_turn_of_an_agent_with_another_spelling_is_given_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    turn, _made = starting.create(agent="Racer", agent_version="1", input="one")
    # As MariaDB would say: `Racer` and `racer` are the same.
    monkeypatch.setattr(registry, "runnable", lambda: [("Racer", "1")])

    assert run_turn(turn.pk) == "ready"

    turn = AgentTurn.objects.get(pk=turn.pk)
    assert "No agent is called 'Racer' here." in turn.last_error


def test_a_fault_of_the_whole_value_is_told_without_a_place() -> None:
    errors = [{"loc": "", "message": "Is too large."}, {"loc": "a", "message": "No."}]

    told = results.does_not_fit("They do not fit.", errors)

    assert told == "They do not fit. Is too large.; a: No. The tool did not run."
