"""The state machines: every allowed change is listed here a second time, by hand."""

from __future__ import annotations

import subprocess
import sys

import pytest

from hitl_approvals.enums import InterruptStatus, StepStatus, TurnStatus
from hitl_approvals.exceptions import TransitionNotAllowed
from hitl_approvals.transitions import (
    BIRTH,
    INTERRUPT,
    STEP,
    TURN,
    check_transition,
    is_open,
    mermaid,
    page,
)
from tests.workspace import ROOT

TABLES = {
    "turn": (TURN, TurnStatus),
    "interrupt": (INTERRUPT, InterruptStatus),
    "step": (STEP, StepStatus),
}

ALLOWED = {
    "turn": """
        -> ready | running | suspended
        ready -> running | suspended | needs_attention | cancelled
        running -> ready | suspended | completed | needs_attention | failed | cancelled
        suspended -> ready | cancelled
        needs_attention -> ready | suspended | cancelled
        failed -> ready | suspended
    """,
    "interrupt": """
        -> pending | in_doubt | resolved | cancelled
        pending -> decided | cancelled
        decided -> resolved | pending | in_doubt | cancelled
        in_doubt -> resolved | decided | cancelled
    """,
    "step": """
        -> started | succeeded | failed
        started -> succeeded | failed | not_started | unknown
        unknown -> succeeded
        not_started -> started
    """,
}


def pairs(text):
    for line in text.strip().splitlines():
        start, _, ends = line.partition("->")
        for end in ends.split("|"):
            yield start.strip(), end.strip()


@pytest.mark.parametrize("name", TABLES)
def test_exactly_the_designed_changes_are_allowed(name):
    table, statuses = TABLES[name]
    allowed = set(pairs(ALLOWED[name]))
    every = {(a, b) for a in (BIRTH, *statuses) for b in (BIRTH, *statuses)}

    accepted = set()
    for start, end in every:
        try:
            check_transition(table, start, end)
        except TransitionNotAllowed:
            continue
        accepted.add((start, end))

    assert accepted == allowed


@pytest.mark.parametrize("name", TABLES)
def test_every_status_stands_in_its_table_and_can_be_reached(name):
    table, statuses = TABLES[name]

    assert set(table) == {BIRTH, *statuses}
    assert set().union(*table.values()) == set(statuses)


@pytest.mark.parametrize(
    ("start", "end"),
    [("ready", "nonsense"), ("nonsense", "ready"), ("", ""), ("x", "x")],
)
def test_an_unknown_status_is_refused(start, end):
    with pytest.raises(TransitionNotAllowed) as caught:
        check_transition(TURN, start, end)

    assert caught.value.context == {"from_": start, "to": end}


def test_the_refusal_names_both_statuses():
    with pytest.raises(TransitionNotAllowed, match='from "completed" to "ready"'):
        check_transition(TURN, TurnStatus.COMPLETED, TurnStatus.READY)
    with pytest.raises(TransitionNotAllowed, match='at the start to "decided"'):
        check_transition(INTERRUPT, "", "decided")


@pytest.mark.parametrize("table", [TURN, INTERRUPT, STEP])
def test_a_table_cannot_be_changed(table):
    with pytest.raises(TypeError):
        table["ready"] = frozenset({"completed"})


def test_exactly_the_open_turns_can_be_cancelled():
    open_turns = {status for status in TurnStatus if is_open(status)}

    assert open_turns == {"ready", "running", "suspended", "needs_attention"}
    assert open_turns == {
        status for status in TurnStatus if "cancelled" in TURN[status]
    }
    assert is_open("ready")
    assert not is_open("nonsense")


@pytest.mark.parametrize("table", [TURN, INTERRUPT, STEP])
def test_a_diagram_shows_every_change_once_and_where_it_ends(table):
    first, *lines = mermaid(table).splitlines()

    arrows = [tuple(line.strip().split(" --> ")) for line in lines]
    changes = [(start or "[*]", end) for start, ends in table.items() for end in ends]
    ends = [(status, "[*]") for status, after in table.items() if not after]
    assert first == "stateDiagram-v2"
    assert sorted(arrows) == sorted(changes + ends)


def test_the_docs_page_is_the_one_that_the_tables_draw():
    stored = (ROOT / "docs" / "reference" / "states.md").read_text()

    assert stored == page(), "run `python -m hitl_approvals.transitions`"


def test_the_module_prints_the_docs_page_without_settings():
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "hitl_approvals.transitions"],
        cwd=ROOT,
        env={"PATH": "", "PYTHONHASHSEED": "0"},
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout == page()
    assert done.stderr == ""
