"""The export tells every event in a stable order, and everything that was hashed."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from hitl_approvals import Reject, canonical
from hitl_approvals.auditing import export
from hitl_approvals.models import AgentTurn, InterruptEvent
from hitl_approvals.models.events import HASHED
from tests.auditing.tampering import COMMITS, change
from tests.support.agents import call
from tests.support.turns import begin, decide_and_resume, full_events, only

pytestmark = [
    pytest.mark.django_db(transaction=COMMITS),
    pytest.mark.breaks_invariants,
    pytest.mark.usefixtures("trail"),
]


def finished(to: str = "a") -> AgentTurn:
    turn = begin([call("mail", to=to)])
    decide_and_resume(turn)
    return turn


def exported(**options: Any) -> list[dict[str, Any]]:
    return list(export(**options))


def test_every_event_is_exported_in_the_order_of_writing() -> None:
    turn = finished()

    assert [one["type"] for one in exported()] == [
        "raised",
        "approved",
        "resolved",
        "turn_completed",
    ]
    assert {one["turn_id"] for one in exported()} == {str(turn.pk)}


def test_two_exports_are_the_same() -> None:
    for _ in range(5):
        finished()

    assert exported() == exported()


def test_pages_follow_one_another_without_gap_or_repeat(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("hitl_approvals.auditing.lines.PAGE", 3)
    finished()
    finished()

    ids = [one["id"] for one in exported()]

    found = InterruptEvent.objects.order_by("pk").values_list("pk", flat=True)
    assert ids == [str(pk) for pk in found]


def test_times_are_utc_with_z() -> None:
    finished()
    event = InterruptEvent.objects.order_by("pk")[1]

    one = exported()[1]

    assert one["at"].endswith("Z")
    assert datetime.fromisoformat(one["at"]) == event.at
    assert one["execute_by"].endswith("Z")


def test_moments_without_a_fraction_are_written_as_long_as_the_others() -> None:
    finished()
    moment = datetime(2026, 1, 31, 8, tzinfo=UTC)
    change(InterruptEvent.objects.order_by("pk")[0], at=moment)

    assert exported()[0]["at"] == "2026-01-31T08:00:00.000000Z"


def test_only_events_since_a_moment_can_be_exported() -> None:
    finished()
    finished("b")
    old = full_events(AgentTurn.objects.order_by("pk")[0])[0]
    change(old, at=timezone.now() - timedelta(days=2))

    since = exported(since=timezone.now() - timedelta(days=1))

    assert str(old.pk) not in {one["id"] for one in since}
    assert len(since) == InterruptEvent.objects.count() - 1


def test_only_the_events_of_one_turn_can_be_exported() -> None:
    finished()
    turn = finished("b")

    types = [one["type"] for one in exported(turn_id=turn.pk)]

    assert types == ["raised", "approved", "resolved", "turn_completed"]


def test_a_reader_can_recompute_the_hashes_from_the_lines_alone() -> None:
    decide_and_resume(begin([call("mail", to="\x00\ud800é")]), Reject("no, “é”"))

    for line in map(json.dumps, exported()):
        one = json.loads(line)
        body = {name: one[name] for name in HASHED}
        for name in ("at", "execute_by"):
            if body[name] is not None:
                body[name] = body[name][:-4] + "+00:00"
        assert canonical.digest(canonical.dumps(body)) == one["hash"]


def test_an_event_that_cannot_be_read_is_named_and_the_others_follow() -> None:
    turn = finished()
    broken = full_events(only(turn))[1]
    change(broken, detail="{")

    lines = exported()

    assert [("error" in one) for one in lines] == [False, True, False, False]
    assert lines[1]["id"] == str(broken.pk)
