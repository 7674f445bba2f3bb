from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from hitl_approvals.models import AgentTurn, InterruptEvent, ReviewQueue
from tests.admin.html_forms import form_to
from tests.admin.scenes import charge_in_doubt, refund, start, url

pytestmark = pytest.mark.django_db(transaction=True)

TURNS = "/admin/hitl_approvals/agentturn/"
QUEUES = "/admin/hitl_approvals/reviewqueue/"
EVENTS = "/admin/hitl_approvals/interruptevent/"


@pytest.fixture
def client(boss: User, login: Callable[[User], Client]) -> Client:
    return login(boss)


def test_turns_are_listed_by_where_they_stand(client: Client) -> None:
    waits = refund().turn

    page = client.get(TURNS).content.decode()

    assert url(waits, "change", "agentturn") in page
    assert "1 decision is missing" in page
    assert (
        url(waits, "change", "agentturn")
        not in client.get(f"{TURNS}?view=over").content.decode()
    )
    assert (
        url(waits, "change", "agentturn")
        in client.get(TURNS, {"q": str(waits.pk)}).content.decode()
    )
    assert client.get(TURNS, {"q": "a\x00"}).status_code == 200


def test_the_list_of_turns_asks_a_fixed_number_of_queries(client: Client) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as found:
            client.get(f"{TURNS}?view=all")
        return len(found)

    refund()
    few = queries()
    for _ in range(4):
        refund()

    assert queries() == few


def test_a_turn_shows_its_journal_and_its_interrupts(client: Client) -> None:
    row = charge_in_doubt()

    page = client.get(url(row.turn, "change", "agentturn")).content.decode()

    assert "desk_charge" in page
    assert url(row) in page
    assert "unknown" in page
    assert "I want my money back." in page


def test_cancelling_withdraws_what_waits(client: Client, boss: User) -> None:
    row = refund()
    form = form_to(client.get(url(row.turn, "change", "agentturn")), "/cancel/")

    response = client.post(form.action, {**form.fields, "reason": "not needed"})

    assert response.status_code == 302
    assert "The turn was cancelled." in client.get(response.url).content.decode()
    row.refresh_from_db()
    assert row.status == "cancelled"
    event = InterruptEvent.objects.get(type="turn_cancelled")
    assert (event.actor, event.via, event.detail) == (
        "boss",
        "admin",
        {"reason": "not needed"},
    )
    again = client.post(form.action, form.fields)
    assert "it cannot be cancelled" in client.get(again.url).content.decode()


def test_retrying_gives_a_stuck_turn_fresh_attempts(client: Client) -> None:
    turn = start()
    AgentTurn.objects.filter(pk=turn.pk).update(
        status="needs_attention", finished_at=None, last_error="it broke"
    )
    page = client.get(url(turn, "change", "agentturn"))
    form = form_to(page, "/retry/")

    response = client.post(form.action, form.fields)

    assert "it broke" in page.content.decode()
    assert response.status_code == 302
    turn.refresh_from_db()
    assert (turn.status, turn.attempts) == ("ready", 0)


def test_a_get_cancels_and_retries_nothing(client: Client) -> None:
    row = refund()

    for verb in ("cancel", "retry"):
        assert client.get(url(row.turn, verb, "agentturn")).status_code == 302
    assert client.post(url(row.turn, "change", "agentturn")).status_code == 405
    row.refresh_from_db()
    assert row.status == "pending"


def test_who_may_see_a_turn_may_not_therefore_end_it(
    person: Callable[..., User], login: Callable[[User], Client]
) -> None:
    row = refund()
    watcher = login(person("watcher", "view_agentturn"))

    page = watcher.get(url(row.turn, "change", "agentturn")).content.decode()
    response = watcher.post(url(row.turn, "cancel", "agentturn"))

    assert "Cancel this turn" not in page
    assert response.status_code == 403
    assert "Can administer turns and queues" in response.content.decode()
    row.refresh_from_db()
    assert row.status == "pending"


def test_a_requester_sees_and_ends_the_own_turn_only(
    stranger: User, login: Callable[[User], Client]
) -> None:
    own, other = refund(by=stranger), refund()
    client = login(stranger)

    assert client.get(TURNS).status_code == 403
    assert client.get(url(other.turn, "change", "agentturn")).status_code == 404
    assert client.post(url(other.turn, "cancel", "agentturn")).status_code == 404
    assert client.get(url(own.turn, "change", "agentturn")).status_code == 200
    assert client.post(url(own.turn, "cancel", "agentturn")).status_code == 302


def test_a_queue_is_set_up_in_the_admin(client: Client, viewer: User) -> None:
    response = client.post(
        f"{QUEUES}add/",
        {
            "slug": "refunds",
            "title": "Refunds",
            "users": [str(viewer.pk)],
            "groups": [],
        },
    )

    assert response.status_code == 302
    queue = ReviewQueue.objects.get(pk="refunds")
    assert list(queue.users.all()) == [viewer]
    page = client.get(f"{QUEUES}refunds/change/").content.decode()
    assert 'name="slug"' not in page
    assert client.get(f"{QUEUES}refunds/delete/").status_code == 403
    changed = client.post(
        f"{QUEUES}refunds/change/", {"slug": "other", "title": "Money", "users": []}
    )
    assert changed.status_code == 302
    assert ReviewQueue.objects.get(pk="refunds").title == "Money"


def test_queues_can_be_set_up_without_the_right_to_search_users(
    person: Callable[..., User], login: Callable[[User], Client]
) -> None:
    rights = ("add_reviewqueue", "change_reviewqueue", "view_reviewqueue")
    client = login(person("operator", *rights))

    page = client.get(f"{QUEUES}add/").content.decode()

    assert 'class="vManyToManyRawIdAdminField"' in page
    added = client.post(f"{QUEUES}add/", {"slug": "mail", "users": ""})
    assert added.status_code == 302


def test_events_are_read_and_searched_and_nothing_else(
    client: Client, viewer: User, login: Callable[[User], Client]
) -> None:
    row = refund()
    event = InterruptEvent.objects.get(subject_id=row.pk)

    assert "raised" in client.get(EVENTS).content.decode()
    for text, found in ((row.pk, 1), (row.turn_id, 1), ("system", 1), ("nobody", 0)):
        response = client.get(EVENTS, {"q": str(text)})
        assert len(response.context["cl"].result_list) == found
    page = client.get(f"{EVENTS}{event.pk}/change/").content.decode()
    assert event.hash in page
    assert 'name="_save"' not in page
    assert client.post(f"{EVENTS}{event.pk}/change/", {}).status_code == 403
    assert client.get(f"{EVENTS}{event.pk}/delete/").status_code == 403
    assert client.get(f"{EVENTS}add/").status_code == 403
    assert login(viewer).get(EVENTS).status_code == 403


def test_the_front_page_offers_what_a_person_may_see(
    client: Client, viewer: User, stranger: User, login: Callable[[User], Client]
) -> None:
    def offered(who: Any) -> list[str]:
        page = who.get("/admin/").content.decode()
        return [
            part for part in ("pendinginterrupt", "agentturn") if f"{part}/" in page
        ]

    assert offered(client) == ["pendinginterrupt", "agentturn"]
    assert offered(login(viewer)) == ["pendinginterrupt"]
    assert offered(login(stranger)) == []
