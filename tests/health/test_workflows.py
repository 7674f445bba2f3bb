"""The line about workflows of cancelled turns."""

from __future__ import annotations

from datetime import timedelta

import pytest

from hitl_approvals import services, start_turn
from hitl_approvals.health import workflows
from hitl_approvals.health.lines import Level
from hitl_approvals.models import AgentTurn, db_now_plus
from hitl_approvals.registry import AgentDefinition, registry
from hitl_approvals.services import partings

pytestmark = pytest.mark.django_db


@pytest.fixture
def turn(monkeypatch: pytest.MonkeyPatch) -> AgentTurn:
    """A turn that was cancelled long ago by a process that does not know its agent."""
    with monkeypatch.context() as patch:
        known = AgentDefinition(name="away", target=None, kind="tests.away")
        patch.setitem(registry.agents, "away", known)
        made = start_turn("away", None)
    services.cancel(made.pk, by=None, via="test")
    long_ago = db_now_plus(-workflows.PATIENCE - timedelta(hours=1))
    AgentTurn.objects.filter(pk=made.pk).update(finished_at=long_ago)
    return made


def test_all_is_well_without_any() -> None:
    line = workflows.cancelled()

    assert (line.level, line.facts["count"]) == (Level.OK, 0)
    assert line.text == "No cancelled turns may have open workflows."


def test_one_that_was_cancelled_just_now_is_nothing_to_look_at(turn: AgentTurn) -> None:
    AgentTurn.objects.filter(pk=turn.pk).update(finished_at=db_now_plus(timedelta()))

    line = workflows.cancelled()

    assert (line.level, line.facts["count"]) == (Level.OK, 1)


def test_one_that_nobody_looked_after_is_named_with_its_agent(turn: AgentTurn) -> None:
    line = workflows.cancelled()

    assert line.level is Level.WARN
    assert "1 cancelled turn may have an open workflow, the oldest for 1 h" in line.text
    assert str(turn.pk) in line.text
    assert "`away`" in line.text
    assert "does not register it" in line.text
    assert line.facts["oldest"][0]["agent"] == "away"


def test_what_the_last_try_came_to_is_told(turn: AgentTurn) -> None:
    said = f"{partings.OPEN} Temporal at x:1 does not answer: refused"
    AgentTurn.objects.filter(pk=turn.pk).update(last_error=said)

    line = workflows.cancelled()

    assert line.text.endswith("Temporal at x:1 does not answer: refused")
    assert "by hand" in line.advice


def test_what_is_settled_is_not_spoken_of(turn: AgentTurn) -> None:
    taken = partings.take(turn.pk, ["away"])
    assert taken is not None
    partings.settle(taken)

    assert workflows.cancelled().facts["count"] == 0
