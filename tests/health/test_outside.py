"""Each line about webhooks and agent clients: quiet when all is well, plain if not."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest

from hitl_approvals import health, services
from hitl_approvals.health import Level, Line, outside
from hitl_approvals.models import (
    AgentClient,
    DbNow,
    Delivery,
    DeliveryChannel,
    db_now_plus,
)
from tests.support import remote

pytestmark = pytest.mark.django_db

SECRET = "whsec_" + "c2VjcmV0LXRoYXQtbm9ib2R5LXNlZXM" + "AAAAA="


@pytest.fixture(autouse=True)
def _webhooks(settings: Any) -> None:
    point = {"url": "https://crm.example/", "secrets": [SECRET]}
    hooks = {"crm": point, "ops": point}
    settings.HITL_APPROVALS = {"DISPATCHER": "worker", "WEBHOOKS": hooks}


def owe(channel: str = "crm", **changes: Any) -> Delivery:
    fields = {
        "event_type": "interrupt.raised",
        "event_id": uuid4(),
        "subject_id": uuid4(),
        "body": {},
        "next_attempt_at": DbNow(),
        "give_up_at": db_now_plus(timedelta(days=3)),
        **changes,
    }
    return Delivery.objects.create(channel=f"webhook:{channel}", **fields)


def told(line: Line) -> tuple[str, str]:
    return line.level.name, line.text


def test_a_site_that_tells_nobody_anything_is_well(settings: Any) -> None:
    settings.HITL_APPROVALS = {"DISPATCHER": "worker"}

    assert [
        told(line)
        for line in (
            outside.deliveries(),
            outside.failing_endpoints(),
            outside.clients(),
        )
    ] == [
        ("OK", "No deliveries are owed, none overdue."),
        ("OK", "No webhook endpoints."),
        ("OK", "No requests of agent clients wait."),
    ]


def test_what_is_owed_and_was_just_written_is_well() -> None:
    owe()
    owe(next_attempt_at=db_now_plus(timedelta(hours=6)), attempts=4)

    line = outside.deliveries()

    assert told(line) == ("OK", "2 deliveries are owed, none overdue.")
    assert line.facts["owed"] == 2
    assert told(outside.failing_endpoints()) == (
        "OK",
        "2 webhook endpoints, none failing.",
    )


def test_what_nobody_sends_is_told_by_endpoint() -> None:
    owe("ops", next_attempt_at=db_now_plus(timedelta(minutes=-10)))
    owe("ops", next_attempt_at=db_now_plus(timedelta(minutes=-20)))
    owe("crm", next_attempt_at=db_now_plus(timedelta(minutes=-5)))

    line = outside.deliveries()

    assert line.level is Level.WARN
    assert line.text.startswith(
        "3 deliveries are owed, 3 overdue, the oldest for 20 min"
    )
    assert line.text.endswith("(`ops` 2, `crm` 1).")
    assert line.facts["overdue"] == {"webhook:ops": 2, "webhook:crm": 1}
    assert 1200 <= line.facts["oldest_seconds"] < 1300
    assert "Workers send them" in line.advice


def test_what_was_given_up_is_told_for_a_day() -> None:
    over: dict[str, Any] = {"status": "given_up", "next_attempt_at": None}
    owe(**over, give_up_at=db_now_plus(timedelta(hours=-23)))
    owe(**over, give_up_at=db_now_plus(timedelta(hours=-25)))

    line = outside.deliveries()

    assert told(line) == (
        "WARN",
        "No deliveries are owed, 1 given up in the last day (`crm` 1).",
    )
    assert "send again what matters" in line.advice


def test_an_endpoint_that_fails_is_named_and_what_it_is_owed_is_not_overdue() -> None:
    owe("crm", next_attempt_at=db_now_plus(timedelta(minutes=-10)), attempts=6)
    DeliveryChannel.objects.create(
        name="webhook:crm",
        failures=6,
        rests_until=db_now_plus(timedelta(minutes=2)),
        last_error="The answer was 503 Service Unavailable.",
    )
    DeliveryChannel.objects.create(name="webhook:ops", failures=1)

    line = outside.failing_endpoints()

    assert told(line) == (
        "WARN",
        "Failed in a row: `crm` 6 times. The answer was 503 Service Unavailable.",
    )
    assert line.facts == {"failing": {"webhook:crm": 6}, "unknown": {}}
    assert outside.deliveries().level is Level.OK


def test_a_rest_that_is_over_and_that_nobody_minds_is_overdue_again() -> None:
    owe("crm", next_attempt_at=db_now_plus(timedelta(minutes=-10)))
    DeliveryChannel.objects.create(
        name="webhook:crm", failures=6, rests_until=db_now_plus(timedelta(minutes=-5))
    )

    assert outside.deliveries().level is Level.WARN


def test_what_is_owed_to_an_endpoint_that_is_gone_is_told() -> None:
    for number in range(7):
        owe(f"old-{number}")

    line = outside.failing_endpoints()

    assert line.level is Level.WARN
    assert line.text.startswith("7 deliveries are owed to what no settings here name: ")
    assert line.text.endswith("and 2 more.")
    assert len(line.facts["unknown"]) == 7


def test_requests_of_a_revoked_client_are_told_until_they_are_closed() -> None:
    client = services.ensure_client("billing")
    row, doubt = remote.ask(client), remote.in_doubt(client)
    services.revoke_client(client.pk, by=None)

    line = outside.clients()
    remote.withdraw(row)
    after = outside.clients()
    services.settle(doubt.pk, "give_up", by=None, note="x", via="test")

    assert told(line) == (
        "WARN",
        "2 requests are open of revoked agent clients: `billing` 2.",
    )
    assert line.facts == {"revoked": {"billing": 2}, "full": {}}
    assert after.facts["revoked"] == {"billing": 1}
    assert told(outside.clients()) == ("OK", "No requests of agent clients wait.")


def test_a_client_that_may_ask_for_no_more_is_told() -> None:
    client = services.ensure_client("billing")
    AgentClient.objects.filter(pk=client.pk).update(limits={"open": 2})
    remote.ask(client)
    before = outside.clients()
    remote.ask(client)

    line = outside.clients()

    assert told(before) == ("OK", "1 request of an agent client waits.")
    assert told(line) == (
        "WARN",
        "As many open requests as they may have: `billing` 2.",
    )


def test_the_examination_has_these_lines() -> None:
    names = [line.name for line in health.examine()]

    assert {"clients", "deliveries", "endpoints"} <= set(names)
