from __future__ import annotations

from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.db.models import F
from django.test import Client

from hitl_approvals.engine import run_turn
from hitl_approvals.models import AgentTurn, InterruptEvent, PendingInterrupt
from tests.admin import agents_for_admin
from tests.admin.html_forms import as_sent, forms_of
from tests.admin.scenes import LIST, charge_in_doubt, refund, url

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def client(settler: User, login: Any) -> Client:
    found: Client = login(settler)
    return found


def answer(client: Client, row: PendingInterrupt, name: str, **changes: str) -> Any:
    html = client.get(url(row)).content.decode()
    [form] = [one for one in forms_of(html) if one.fields.get("answer") == name]
    return client.post(form.action, as_sent({**form.fields, **changes}))


def test_it_says_what_is_known_and_how_to_look(client: Client) -> None:
    row = charge_in_doubt()
    step = row.steps.get()

    page = client.get(url(row)).content.decode()

    assert "may have run, or not" in page
    assert "Search the card company&#x27;s log for the key." in page
    assert step.idempotency_key in page
    assert "In doubt" in client.get(LIST).content.decode()


def test_it_happened_gives_the_agent_the_typed_result(client: Client) -> None:
    row = charge_in_doubt()

    response = answer(
        client,
        row,
        "happened",
        result='{"charge": "ch_1"}',
        note="In their log",
        **{"as": "json"},
    )

    assert response.status_code == 302
    row.refresh_from_db()
    assert row.status == "resolved"
    event = InterruptEvent.objects.filter(subject_id=row.pk).last()
    assert event is not None
    assert (event.actor, event.detail["note"]) == ("farah", "In their log")
    run_turn(row.turn_id)
    [told] = AgentTurn.objects.get(pk=row.turn_id).output
    assert "ch_1" in told["content"]
    assert LogEntry.objects.count() == 1


def test_run_again_is_a_second_start(client: Client) -> None:
    row = charge_in_doubt()
    agents_for_admin.RAN.clear()

    response = answer(client, row, "run_again", note="Not there", looked="on")

    assert response.status_code == 302
    run_turn(row.turn_id)
    assert [name for name, _ in agents_for_admin.RAN] == ["desk_charge"]


def test_giving_up_tells_the_agent_that_nobody_knows(client: Client) -> None:
    row = charge_in_doubt()

    response = answer(client, row, "give_up", note="Asked them twice")

    assert response.status_code == 302
    row.refresh_from_db()
    assert (row.status, row.outcome_status) == ("cancelled", "given_up")
    assert "Settled: given up: desk_charge" in client.get(response.url).content.decode()


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("happened", {"result": "x"}, "Say how you know"),
        ("happened", {"note": "typed with care"}, "Type what the call returned."),
        (
            "happened",
            {"note": "typed with care", "result": "{", "as": "json"},
            "not readable as JSON",
        ),
        (
            "happened",
            {"note": "typed with care", "result": "a text"},
            "result of desk_charge",
        ),
        ("run_again", {"note": "typed with care"}, "Look first, then tick this."),
        ("run_again", {"looked": "on", "note": " "}, "Say how you know"),
        ("give_up", {"note": ""}, "Say how you know"),
    ],
)
def test_an_unfinished_finding_is_not_recorded_and_not_lost(
    client: Client, name: str, changes: dict[str, str], message: str
) -> None:
    row = charge_in_doubt()

    response = answer(client, row, name, **changes)

    page = response.content.decode()
    assert response.status_code == 200
    assert message in page
    assert all(value.strip() in page for value in changes.values())
    row.refresh_from_db()
    assert row.status == "in_doubt"


@pytest.mark.breaks_invariants
def test_it_cannot_be_run_again_while_the_first_call_may_be_under_way(
    client: Client,
) -> None:
    from datetime import timedelta

    row = charge_in_doubt()
    row.steps.update(hard_deadline=F("hard_deadline") + timedelta(hours=1))

    page = client.get(url(row)).content.decode()
    response = answer(client, row, "run_again", note="Not there", looked="on")

    assert "Run it again (from" in page
    assert "may still be under way" in response.content.decode()
    row.refresh_from_db()
    assert row.status == "in_doubt"


def test_a_second_press_is_no_second_finding(client: Client) -> None:
    row = charge_in_doubt()
    html = client.get(url(row)).content.decode()
    [form] = [one for one in forms_of(html) if one.fields.get("answer") == "give_up"]
    sent = as_sent({**form.fields, "note": "tried"})

    first, second = client.post(form.action, sent), client.post(form.action, sent)

    assert (first.status_code, second.status_code) == (302, 302)
    settled = InterruptEvent.objects.filter(subject_id=row.pk, type="settled_gave_up")
    assert settled.count() == 1


def test_somebody_elses_finding_came_first(
    client: Client, boss: User, login: Any
) -> None:
    row = charge_in_doubt()
    html = client.get(url(row)).content.decode()
    [form] = [one for one in forms_of(html) if one.fields.get("answer") == "happened"]
    answer(login(boss), row, "give_up", note="mine")

    response = client.post(
        form.action,
        as_sent({**form.fields, "result": "x", "note": "typed with care"}),
    )

    page = response.content.decode()
    assert response.status_code == 409
    assert "What you sent was not recorded" in page
    assert "typed with care" in page


def test_a_row_that_is_not_in_doubt_cannot_be_settled(client: Client) -> None:
    row = refund()

    response = client.post(
        url(row, "settle"),
        {"answer": "happened", "note": "x", "result": "x", "revision": "1", "key": "k"},
    )

    assert response.status_code == 409
    row.refresh_from_db()
    assert row.status == "pending"


def test_a_closed_turn_offers_no_second_run(client: Client, boss: User) -> None:
    from hitl_approvals import services

    row = charge_in_doubt()
    services.cancel(row.turn_id, by=boss, via="admin")

    page = client.get(url(row)).content.decode()

    assert "The turn is over, so nothing can run in it again." in page
    assert answer(client, row, "give_up", note="closed").status_code == 302
