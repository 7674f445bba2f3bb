"""Who may decide what in which state: one table, every cell of it."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from hitl_approvals.models import PendingInterrupt
from tests.api import scenes

BODIES: dict[str, Any] = {
    "approve": {},
    "reject": {"reason": "not this one"},
    "edit": {"args": {"order": "A-1", "amount": 900}},
    "respond": {"value": 42},
}
BY_ROLE = {
    "anonymous": (401, "not_authenticated"),
    "stranger": (404, "interrupt_not_found"),
    "viewer": (403, "reviewer_not_allowed"),
    "requester": (403, "reviewer_not_allowed"),
}
"""For those who may not decide it does not matter what they would decide."""
BY_STATE = {
    "decided": (409, "already_decided"),
    "resolved": (409, "already_decided"),
    "cancelled": (410, "interrupt_cancelled"),
    "overdue": (410, "interrupt_expired"),
    "expired": (410, "interrupt_expired"),
    "in_doubt": (409, "transition_not_allowed"),
}
ROLES = ["superuser", "reviewer", *BY_ROLE]
TABLE = list(product(ROLES, ["pending", *BY_STATE], BODIES))


def expected(role: str, state: str, decision: str) -> tuple[int, str | None]:
    if role in BY_ROLE:
        return BY_ROLE[role]
    if state in BY_STATE:
        return BY_STATE[state]
    return (400, "decision_not_allowed") if decision == "respond" else (200, None)


@pytest.mark.parametrize(("role", "state", "decision"), TABLE)
def test_every_role_meets_every_state_with_every_decision(
    role, state, decision, people, client_of
):
    row = scenes.make(state, by=people["requester"])
    before = scenes.events(row)

    response = client_of(role).post(
        scenes.url(row, decision), BODIES[decision], format="json"
    )

    status, code = expected(role, state, decision)
    body = response.json()
    now = PendingInterrupt.objects.get(pk=row.pk)
    assert (response.status_code, body.get("code")) == (status, code)
    if status == 200:
        assert body["id"] == str(row.pk)
        assert (now.decision, now.decided_by_label) == (decision, role)
        assert (now.decided_via, now.status) == ("api", "decided")
        assert len(scenes.events(row)) == len(before) + 1
    else:
        assert set(body) == {"code", "detail", "interrupt"}
        assert scenes.events(row) == before
        assert (now.status, now.decision, now.revision) == (
            row.status,
            row.decision,
            row.revision,
        )
    if role in ("stranger", "anonymous"):
        assert body["interrupt"] is None
    elif status != 200:
        assert body["interrupt"]["status"] == row.status


@pytest.mark.parametrize(
    ("role", "state"), list(product(ROLES, ["pending", *BY_STATE]))
)
def test_reading_depends_on_the_role_and_not_on_the_state(
    role, state, people, client_of
):
    row = scenes.make(state, by=people["requester"])
    client = client_of(role)

    one, many = client.get(scenes.url(row)), client.get(scenes.LIST)

    if role == "anonymous":
        assert (one.status_code, many.status_code) == (401, 401)
    elif role == "stranger":
        assert (one.status_code, many.status_code) == (404, 200)
        assert many.json()["results"] == []
    else:
        assert (one.status_code, many.status_code) == (200, 200)
        assert [each["id"] for each in many.json()["results"]] == [str(row.pk)]
