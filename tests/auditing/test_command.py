"""`manage.py hitl_audit` prints what is found and says with its exit code how it is."""

from __future__ import annotations

import json
from argparse import ArgumentTypeError
from datetime import UTC, datetime
from io import StringIO
from typing import Any
from uuid import uuid4

import pytest
from django.core.management import CommandError, call_command

from hitl_approvals.management.moments import moment
from hitl_approvals.models import AgentTurn, PendingInterrupt
from tests.auditing.tampering import COMMITS, change, remove_turn
from tests.support.agents import call
from tests.support.turns import begin, decide_and_resume, full_events, only

pytestmark = [
    pytest.mark.django_db(transaction=COMMITS),
    pytest.mark.breaks_invariants,
    pytest.mark.usefixtures("trail"),
]


def run(*arguments: str, **options: Any) -> tuple[int, str]:
    """Return the exit code and what was printed."""
    out = StringIO()
    try:
        call_command("hitl_audit", *arguments, stdout=out, stderr=out, **options)
    except SystemExit as ended:
        return int(ended.code or 0), out.getvalue()
    return 0, out.getvalue()


def finished() -> PendingInterrupt:
    turn = begin([call("mail", to="a")])
    decide_and_resume(turn)
    return only(turn)


def test_a_clean_trail_is_counted_and_ends_with_0() -> None:
    finished()

    assert run("verify") == (
        0,
        "Checked 4 events of 1 interrupts and 1 turns. All is well.\n",
    )


def test_an_empty_trail_is_well() -> None:
    assert run("verify") == (
        0,
        "Checked 0 events of 0 interrupts and 0 turns. All is well.\n",
    )


def test_a_fault_is_printed_and_ends_with_1() -> None:
    row = finished()
    change(full_events(row)[1], actor="x")

    assert run("verify") == (
        1,
        f"CHANGED interrupt {row.pk}: Event 1 (approved) was changed: its content does "
        "not give its hash.\n"
        "Checked 4 events of 1 interrupts and 1 turns. "
        "1 things are not as they were written.\n",
    )


def test_json_is_one_object_a_line_and_the_last_one_sums_up() -> None:
    row = finished()
    change(full_events(row)[1], actor="x")

    code, printed = run("verify", "--json")

    finding, summary = map(json.loads, printed.splitlines())
    assert code == 1
    assert (finding["problem"], finding["sequence"]) == ("changed", 1)
    assert summary == {
        "checked": {"interrupts": 1, "turns": 1, "events": 4, "gone": 0},
        "faults": 1,
        "ok": False,
    }


def test_subjects_without_a_row_are_counted_and_no_fault() -> None:
    row = finished()
    remove_turn(AgentTurn.objects.get(pk=row.turn_id))

    assert run("verify") == (
        0,
        "Checked 4 events of 0 interrupts and 0 turns. "
        "2 subjects have events and no row any more. All is well.\n",
    )
    assert f"GONE subject {row.pk}" in run("verify", verbosity=2)[1]
    assert run("verify", "--interrupt", str(row.pk))[0] == 0


def test_one_turn_or_one_interrupt_can_be_named() -> None:
    changed, other = finished(), finished()
    change(full_events(changed)[1], actor="x")

    assert run("verify", "--turn", str(other.turn_id))[0] == 0
    assert run("verify", "--turn", str(changed.turn_id))[0] == 1
    assert run("verify", "--interrupt", str(other.pk))[0] == 0
    assert run("verify", "--interrupt", str(changed.pk))[0] == 1


@pytest.mark.parametrize("scope", ["--turn", "--interrupt"])
def test_a_name_that_nothing_bears_ends_with_2(scope: str) -> None:
    with pytest.raises(CommandError, match="no such row") as refused:
        run("verify", scope, str(uuid4()))

    assert refused.value.returncode == 2


def test_export_prints_one_event_a_line() -> None:
    row = finished()

    code, printed = run("export", "--turn", str(row.turn_id))

    types = [json.loads(line)["type"] for line in printed.splitlines()]
    assert (code, types) == (0, ["raised", "approved", "resolved", "turn_completed"])
    assert run("export", "--since", "2999-01-01T00:00:00Z") == (0, "")


def test_export_of_what_cannot_be_read_ends_with_1() -> None:
    row = finished()
    change(full_events(row)[1], detail="{")

    code, printed = run("export")

    assert code == 1
    assert printed.endswith("1 events could not be read.\n")


def test_a_moment_needs_its_time_zone() -> None:
    assert moment("2026-01-31T09:00:00+01:00") == datetime(2026, 1, 31, 8, tzinfo=UTC)
    for text in ("2026-01-31T09:00:00", "2026-01-31", "2026-02-31T09:00:00Z", "now"):
        with pytest.raises(ArgumentTypeError, match="with a time zone"):
            moment(text)
