"""Role, status, action: the tables of the reference, every cell of them."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from hitl_approvals.api.schema.operations import OPERATIONS
from hitl_approvals.models import PendingInterrupt
from tests.api import matrix
from tests.support.undoing import undone

PAGE = Path(__file__).resolve().parents[2] / "docs/reference/api/matrix.md"
CLIENTS = ("owner", "other client", "revoked client")
WHOEVER = ("401", "403", "404")
"""Who gets these gets them in every state. Of what no state changes, the plain suite tries
the first state only."""
MAY_ASSIGN = ("assigner", "superuser")
SAID: dict[str, tuple[str, str]] = {
    "401": ("401 not_authenticated", "401 authentication_failed"),
    "403": ("403 reviewer_not_allowed", "403 client_not_allowed"),
}
"""What a number of the page stands for, for a person and for a client."""

Make = Callable[[matrix.Cast], PendingInterrupt]
Table = dict[str, dict[str, str]]

PARTS: dict[str, tuple[dict[str, Make], tuple[str, ...], Any, str]] = {
    "Interrupts of turns": (
        matrix.STATUSES,
        (*matrix.READS, *matrix.BODIES),
        matrix.send,
        "interrupt",
    ),
    "Interrupts of remote agents": (
        matrix.REMOTE,
        (*matrix.READS, *matrix.BODIES),
        matrix.send,
        "interrupt",
    ),
    "Turns": (
        matrix.TURNS,
        (*matrix.TURN_READS, *matrix.TURN_BODIES),
        matrix.send_to_turn,
        "turn",
    ),
}


@pytest.fixture(autouse=True)
def every_answer_is_documented() -> None:
    """Look at the statuses only: bodies are looked at where there are fewer of them."""


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logging.getLogger("django.request"), "disabled", True)


def tables(part: str) -> tuple[Table, Table]:
    """Return who may do what, and what a state answers to those who may."""
    section = PAGE.read_text().split(f"## {part}\n", 1)[1].split("\n## ", 1)[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    found: list[Table] = []
    for number, line in enumerate(lines):
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if number + 1 < len(lines) and lines[number + 1].startswith("| ---"):
            columns = cells[1:]
            found.append({})
        elif not line.startswith("| ---"):
            row = dict(zip(columns, cells[1:], strict=True))
            found[-1] |= {action.strip(): row for action in cells[0].split(",")}
    who, when = found
    return who, when


def expected(
    who: Table, when: Table, role: str, status: str, action: str, base: str
) -> str:
    row = who.get(f"{action} {status}", who[action])
    said = row[role]
    if said == "404":
        return f"404 {base}_not_found"
    if said != "yes":
        return SAID[said][role in CLIENTS]
    first, _, second = when[action][status].partition(" or ")
    return second if second and role not in MAY_ASSIGN else first


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.breaks_invariants  # inputs and times are changed behind the services' back
def test_whoever_may_do_it_is_answered_by_the_state(part: str, db: None) -> None:
    try_cells(part, every=False)


@pytest.mark.roles
@pytest.mark.parametrize("part", PARTS)
@pytest.mark.breaks_invariants  # as above
def test_every_role_meets_every_state_with_every_action(part: str, db: None) -> None:
    try_cells(part, every=True)


def try_cells(part: str, *, every: bool) -> None:
    """Try the cells of one part, and see that refusals leave everything as it was."""
    statuses, actions, send, base = PARTS[part]
    who, when = tables(part)
    cast = matrix.Cast()
    wrong = []
    first = None

    for status, make in statuses.items():
        row = make(cast)
        first = first or row
        for role, caller in cast.callers.items():
            before = matrix.state()
            for action in actions:
                meant = expected(who, when, role, status, action, base)
                same = meant[:3] in WHOEVER or len({*when[action].values()}) == 1
                if same and not every and row is not first:
                    continue
                changes = meant.startswith("2") and action not in matrix.TURN_READS
                with undone() if changes else nullcontext():
                    answer = send(caller, row, action)
                told = matrix.told(answer)
                if blind(who, role) and answer.status_code >= 400:
                    assert answer.json()["interrupt"] is None
                if told != meant:
                    wrong.append(f"{role}, {status}, {action}: {told}, not {meant}")
                assert documented(base, action, answer.status_code), (action, told)
            assert matrix.state() == before, (role, status, "a refusal left something")

    assert not wrong, "\n".join(wrong)


def blind(who: Table, role: str) -> bool:
    return who["read"][role] != "yes"


def documented(base: str, action: str, status: int) -> bool:
    name = "retrieve" if action == "read" else action.replace("-", "_")
    operation = OPERATIONS[base, name]
    return status in operation.answers or status in operation.statuses()


def test_the_tables_have_a_row_for_every_action_and_a_column_for_everybody() -> None:
    everybody = ["anonymous", *matrix.RIGHTS, "superuser", *CLIENTS]
    for part, (statuses, actions, _send, _base) in PARTS.items():
        who, when = tables(part)
        assert {*who} - {"claim in doubt"} == set(actions)
        assert all(list(row) == everybody for row in who.values())
        assert all(list(row) == list(statuses) for row in when.values())
