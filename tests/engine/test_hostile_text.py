"""NUL and half surrogates from models, tools and people never stop a turn."""

from __future__ import annotations

from typing import Any

import pytest

from hitl_approvals import (
    Turn,
    agent,
    run_turn,
    services,
    start_turn,
    tool,
)
from hitl_approvals.exceptions import PayloadRejected
from hitl_approvals.models import AgentTurn, PendingInterrupt

pytestmark = pytest.mark.django_db(transaction=True)
HOSTILE = "a\x00b\ud800c"


@tool(name="hostile_tool", effect="transactional")
def hostile_tool(text: str) -> str:
    """Fail with a text that no database holds."""
    raise ValueError(HOSTILE)


@agent("hostile", tools=[hostile_tool])
def hostile(turn: Turn, prompt: str) -> Any:
    if prompt == "fail":
        raise ValueError(HOSTILE)
    call = {"id": HOSTILE, "name": "hostile_tool", "args": {"text": HOSTILE}}
    return turn.call_tools([call], reason=HOSTILE)


def test_a_call_with_a_hostile_id_and_hostile_arguments_waits_and_runs() -> None:
    turn = start_turn("hostile", HOSTILE, run=True)
    row = PendingInterrupt.objects.get(turn=turn)

    services.decide(row.pk, {"type": "approve"}, by=None, via="test")

    assert run_turn(turn.pk) == "completed"
    turn.refresh_from_db()
    (message,) = turn.output
    assert message["tool_call_id"] == HOSTILE
    assert message["status"] == "error"
    assert row.context["agent_reason"] == HOSTILE


def test_an_error_with_a_hostile_text_is_kept_for_the_operator() -> None:
    turn = start_turn("hostile", "fail", run=True)

    turn = AgentTurn.objects.get(pk=turn.pk)
    assert turn.status == "ready"
    assert turn.last_error.startswith("ValueError: a")


def test_a_hostile_reason_is_refused_and_nothing_is_stored() -> None:
    turn = start_turn("hostile", "call", run=True)
    row = PendingInterrupt.objects.get(turn=turn)

    body = {"type": "reject", "reason": HOSTILE}

    with pytest.raises(TypeError, match="reason"):
        services.decide(row.pk, body, by=None, via="test")

    row.refresh_from_db()
    assert (row.status, row.events_count) == ("pending", 1)


@pytest.mark.parametrize("thread", ["a\x00", "\ud800", "x" * 256])
def test_a_thread_that_cannot_be_stored_is_refused(thread: str) -> None:
    with pytest.raises(PayloadRejected):
        start_turn("hostile", "call", thread_id=thread)

    assert not AgentTurn.objects.exists()
