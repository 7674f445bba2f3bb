"""Async agents and tools: the same journal, the same gate, the same once."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from hitl_approvals import (
    Approve,
    AsyncTurn,
    Reject,
    agent,
    run_turn,
    services,
    start_turn,
    tool,
)
from hitl_approvals.exceptions import HitlConfigurationError
from hitl_approvals.models import InterruptEvent, PendingInterrupt

pytestmark = pytest.mark.django_db(transaction=True)
RAN: list[Any] = []
LOOPS: set[int] = set()


@tool(name="async_send")
async def async_send(to: str) -> str:
    """Send something, in the agent's own loop."""
    await asyncio.sleep(0)
    LOOPS.add(id(asyncio.get_running_loop()))
    RAN.append(to)
    return f"sent to {to}"


@tool(name="async_look", effect="none", requires_approval=False)
async def async_look(name: str) -> str:
    """Look something up."""
    await asyncio.sleep(0)
    return f"found {name}"


async def _ask_model(prompt: str) -> dict[str, Any]:
    await asyncio.sleep(0)
    LOOPS.add(id(asyncio.get_running_loop()))
    RAN.append("model")
    calls = [
        {"id": "1", "name": "async_look", "args": {"name": prompt}},
        {"id": "2", "name": "async_send", "args": {"to": prompt}},
    ]
    return {"content": "", "tool_calls": calls}


@agent("async", tools=[async_send, async_look])
async def async_agent(turn: AsyncTurn, prompt: str) -> Any:
    LOOPS.clear()
    LOOPS.add(id(asyncio.get_running_loop()))
    if prompt == "plain":
        return await async_send(to="plain")
    reply = await turn.step("model", _ask_model, prompt)
    told = await turn.call_tools(reply["tool_calls"])
    first = await turn.once("note", _note)
    return [*(one["content"] for one in told), first]


async def _note() -> str:
    RAN.append("noted")
    return "noted"


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    RAN.clear()


def test_an_async_agent_suspends_resumes_and_runs_everything_once() -> None:
    turn = start_turn("async", "ann", run=True)
    assert turn.status == "suspended", turn.last_error
    (row,) = PendingInterrupt.objects.filter(turn=turn)

    services.decide(row.pk, Approve(), by=None, via="test")

    assert run_turn(turn.pk) == "completed"
    turn.refresh_from_db()
    assert turn.output == ["found ann", "sent to ann", "noted"]
    assert RAN == ["model", "ann", "noted"]
    # Clients that belong to the agent's loop may be used in steps and tools.
    assert len(LOOPS) == 1
    types = InterruptEvent.objects.filter(subject_id=row.pk).order_by("sequence")
    assert list(types.values_list("type", flat=True)) == [
        "raised",
        "approved",
        "resolved",
    ]


@pytest.mark.parametrize("decision", [Approve(), Reject("no")])
def test_an_awaited_tool_is_gated_like_any_call(decision: Any) -> None:
    turn = start_turn("async", "plain", run=True)
    assert turn.status == "suspended", turn.last_error
    (row,) = PendingInterrupt.objects.filter(turn=turn)

    services.decide(row.pk, decision, by=None, via="test")
    outcome = run_turn(turn.pk)

    turn.refresh_from_db()
    if decision.type == "approve":
        assert (outcome, turn.output, RAN) == ("completed", "sent to plain", ["plain"])
    else:
        assert (outcome, RAN) == ("ready", [])
        assert "ApprovalRejected" in turn.last_error


def test_an_async_transactional_tool_is_refused_at_registration() -> None:
    with pytest.raises(HitlConfigurationError, match="async and transactional"):

        @tool(name="async_tx", effect="transactional")
        async def async_tx(to: str) -> str:
            """Never registered."""
            return to
