"""What the reviewer sees is what the signature made of the call, and that runs."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel

from hitl_approvals import (
    Approve,
    CallInfo,
    Edit,
    Turn,
    agent,
    canonical,
    run_turn,
    services,
    start_turn,
    tool,
)
from hitl_approvals.models import PendingInterrupt

pytestmark = pytest.mark.django_db(transaction=True)
RAN: list[Any] = []


class Address(BaseModel):
    """Where something goes; a field that is not here is dropped by pydantic."""

    city: str
    floor: int = 0


def _meddle(call: CallInfo) -> bool:
    call.args["address"].city = "Elsewhere"
    return bool(call.args["count"] > 1)


@tool(name="shown_ship", requires_approval=True, fixed=("count",))
def shown_ship(address: Address, count: int) -> str:
    """Ship something."""
    RAN.append((address.city, address.floor, count))
    return "shipped"


@tool(name="shown_free", requires_approval=_meddle)
def shown_free(address: Address, count: int) -> str:
    """Ship something small."""
    RAN.append((address.city, address.floor, count))
    return "shipped"


@agent("shown", tools=[shown_ship, shown_free])
def shown(turn: Turn, prompt: dict[str, Any]) -> Any:
    return turn.call_tools([{"id": "a", **prompt}])


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    RAN.clear()


def _asked(name: str, **args: Any) -> Any:
    turn = start_turn("shown", {"name": name, "args": args}, run=True)
    return turn, PendingInterrupt.objects.filter(turn=turn).first()


def test_the_row_shows_what_would_run_and_not_what_the_tool_would_drop() -> None:
    turn, row = _asked(
        "shown_ship", address={"city": "Lagos", "note": "by air"}, count=True
    )

    assert canonical.stored(row.args_text) == {
        "address": {"city": "Lagos", "floor": 0},
        "count": 1,
    }
    assert canonical.digest(row.args_text) == row.args_digest
    assert row.requested_digest != row.args_digest
    services.decide(row.pk, Approve(), by=None, via="test")

    assert run_turn(turn.pk) == "completed"
    assert RAN == [("Lagos", 0, 1)]


def test_an_edit_is_stored_as_the_tool_reads_it() -> None:
    turn, row = _asked("shown_ship", address={"city": "Lagos"}, count=2)
    edited = {"address": {"city": "Leeds", "note": "x"}, "count": 2}

    services.decide(row.pk, Edit(edited), by=None, via="test")

    row.refresh_from_db()
    assert canonical.stored(row.decision_args_text) == {
        "address": {"city": "Leeds", "floor": 0},
        "count": 2,
    }
    assert run_turn(turn.pk) == "completed"
    assert RAN == [("Leeds", 0, 2)]


def test_an_edit_that_reads_the_same_is_an_approval() -> None:
    turn, row = _asked("shown_ship", address={"city": "Lagos"}, count=2)
    same = {"count": 2, "address": {"city": "Lagos"}}

    receipt = services.decide(row.pk, Edit(same), by=None, via="test")

    assert receipt.decision == "approve"
    assert run_turn(turn.pk) == "completed"
    assert RAN == [("Lagos", 0, 2)]


def test_a_predicate_that_changes_its_arguments_changes_nothing_that_runs() -> None:
    turn, row = _asked("shown_free", address={"city": "Lagos"}, count=1)

    assert row is None
    assert turn.status == "completed"
    assert RAN == [("Lagos", 0, 1)]
