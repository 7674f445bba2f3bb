"""Approvals that were given for another tool, or another state of the world."""

from __future__ import annotations

from typing import Any

import pytest

from hitl_approvals import (
    Approve,
    Edit,
    Turn,
    agent,
    run_turn,
    services,
    start_turn,
    tool,
)
from hitl_approvals.exceptions import TransitionNotAllowed
from hitl_approvals.models import (
    AgentTurn,
    InterruptEvent,
    PendingInterrupt,
    TurnStep,
)

pytestmark = pytest.mark.django_db(transaction=True)
RAN: list[tuple[str, str]] = []
SAYS: dict[str, Any] = {}
PROMPT = {"tool": "world_unsafe", "args": {"to": "a"}}


def _look(to: str) -> Any:
    said = SAYS["answer"]
    if isinstance(said, Exception):
        raise said
    return said


@tool(name="world_unsafe", precondition=_look)
def world_unsafe(to: str) -> str:
    """Send something, if the world allows."""
    RAN.append(("unsafe", to))
    return "sent"


@tool(name="world_tx", effect="transactional", precondition=_look)
def world_tx(to: str) -> str:
    """Book something, if the world allows."""
    RAN.append(("tx", to))
    return "booked"


@tool(name="world_free", requires_approval=False, precondition=_look)
def world_free(to: str) -> str:
    """Send something that nobody has to approve."""
    RAN.append(("free", to))
    return "sent"


@agent("world", tools=[world_unsafe, world_tx, world_free])
def world_agent(turn: Turn, prompt: dict[str, Any]) -> Any:
    return turn.call_tool(prompt["tool"], prompt["args"], id="a")


@pytest.fixture(autouse=True)
def _as_it_was() -> None:
    RAN.clear()
    SAYS["answer"] = True


def _approved(name: str) -> tuple[AgentTurn, PendingInterrupt]:
    turn = start_turn("world", {"tool": name, "args": {"to": "a"}}, run=True)
    row = PendingInterrupt.objects.get(turn=turn)
    services.decide(row.pk, Approve(), by=None, via="test")
    return turn, row


def _types(row: PendingInterrupt) -> list[str]:
    found = InterruptEvent.objects.filter(subject_id=row.pk).order_by("sequence")
    return list(found.values_list("type", flat=True))


@pytest.mark.parametrize("name", ["world_unsafe", "world_tx"])
@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("the order is cancelled", "the order is cancelled"),
        (False, "precondition fails"),
        (None, "precondition fails"),
        (ValueError("gone"), "ValueError: gone"),
    ],
)
def test_a_changed_world_sends_the_approval_back_and_a_fresh_one_runs_once(
    name: str, said: Any, why: str
) -> None:
    turn, row = _approved(name)
    SAYS["answer"] = said

    assert run_turn(turn.pk) == "suspended"

    assert RAN == []
    assert not TurnStep.objects.filter(turn=turn, kind="tool").exists()
    row.refresh_from_db()
    assert (row.status, row.generation, row.revision) == ("pending", 2, 3)
    assert row.decision is None
    assert _types(row) == ["raised", "approved", "reopened"]
    last = InterruptEvent.objects.get(subject_id=row.pk, type="reopened")
    assert why in last.detail["why"]

    SAYS["answer"] = True
    services.decide(row.pk, Approve(), by=None, via="test", revision=3)
    assert run_turn(turn.pk) == "completed"
    assert len(RAN) == 1
    assert _types(row)[3:] == ["approved", "resolved"]


def test_a_free_call_in_a_changed_world_does_not_run_and_the_model_is_told() -> None:
    SAYS["answer"] = "the shop is closed"

    prompt = {"tool": "world_free", "args": {"to": "a"}}
    turn = start_turn("world", prompt, run=True)

    assert turn.status == "completed"
    assert turn.output["status"] == "error"
    assert "the shop is closed" in turn.output["content"]
    assert RAN == []


@pytest.mark.breaks_invariants
def test_a_tool_that_changed_since_the_approval_is_shown_again_as_it_is_now() -> None:
    turn, row = _approved("world_unsafe")
    old = "c1:" + "0" * 64
    PendingInterrupt.objects.filter(pk=row.pk).update(schema_digest=old)

    assert run_turn(turn.pk) == "suspended"

    row.refresh_from_db()
    assert (row.status, row.generation) == ("pending", 2)
    assert row.schema_digest == world_unsafe.signature.schema_digest
    assert RAN == []
    services.decide(row.pk, Edit({"to": "b"}), by=None, via="test")
    assert run_turn(turn.pk) == "completed"
    assert RAN == [("unsafe", "b")]


def _diverged() -> tuple[AgentTurn, PendingInterrupt]:
    turn, row = _approved("world_unsafe")
    other = {"tool": "world_unsafe", "args": {"to": "b"}}
    AgentTurn.objects.filter(pk=turn.pk).update(input=other)
    assert run_turn(turn.pk) == "needs_attention"
    return turn, row


def test_re_review_asks_for_the_call_as_it_is_and_never_uses_the_old_approval() -> None:
    turn, row = _diverged()

    services.re_review(row.pk, by=None, via="test")
    services.retry(turn.pk, by=None, via="test")
    assert run_turn(turn.pk) == "suspended"

    row.refresh_from_db()
    new = PendingInterrupt.objects.get(turn=turn, status="pending")
    assert (row.status, row.outcome_status) == ("cancelled", "superseded")
    assert row.superseded_by_id == new.pk
    assert new.args_text == '{"to":"b"}'
    assert RAN == []
    services.decide(new.pk, Approve(), by=None, via="test")
    assert run_turn(turn.pk) == "completed"
    assert RAN == [("unsafe", "b")]


def test_re_review_is_refused_while_the_turn_is_not_stopped() -> None:
    _turn, row = _approved("world_unsafe")

    with pytest.raises(TransitionNotAllowed):
        services.re_review(row.pk, by=None, via="test")

    row.refresh_from_db()
    assert row.status == "decided"


def test_restart_replays_nothing_and_asks_again() -> None:
    turn, row = _diverged()

    restarted = services.restart(turn.pk, by=None, via="test", input=PROMPT)

    assert (restarted.status, restarted.restarts) == ("ready", 1)
    row.refresh_from_db()
    assert (row.status, row.outcome_status) == ("cancelled", "withdrawn")
    assert run_turn(turn.pk) == "suspended"
    new = PendingInterrupt.objects.get(turn=turn, status="pending")
    services.decide(new.pk, Approve(), by=None, via="test")
    assert run_turn(turn.pk) == "completed"
    assert RAN == [("unsafe", "a")]
    told = InterruptEvent.objects.filter(subject_id=turn.pk).order_by("sequence")
    assert list(told.values_list("type", flat=True)) == [
        "turn_needs_attention",
        "turn_restarted",
        "turn_completed",
    ]
