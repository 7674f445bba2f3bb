"""With a swapped user model everything works, and the trail outlives the people."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission
from django.test import Client
from rest_framework.test import APIClient

from hitl_approvals import permissions, services
from hitl_approvals.auditing import Verification
from hitl_approvals.decisions import Approve
from hitl_approvals.exceptions import (
    ClaimedByAnother,
    InterruptNotFound,
    ReviewerNotAllowed,
)
from hitl_approvals.models import AgentTurn, PendingInterrupt, ReviewQueue
from hitl_approvals.services.claims import assign_by_name
from hitl_approvals.testing import run_owed
from tests.admin.scenes import send
from tests.sites.custom_user.people.models import Person
from tests.support.agents import call
from tests.support.turns import begin, full_events, only
from tests.support.world import World

pytestmark = pytest.mark.django_db(transaction=True)

DECIDE = ("decide_pendinginterrupt", "view_pendinginterrupt")


def person(email: str, *rights: str) -> Person:
    made = Person.objects.create(email=email)
    made.user_permissions.set(Permission.objects.filter(codename__in=rights))
    return made


@pytest.fixture
def rita() -> Person:
    return person("rita@example.org", *DECIDE)


def waiting(**options: Any) -> PendingInterrupt:
    return only(begin([call("mail", to="a")], **options))


def test_a_decision_names_who_made_it(rita: Person, world: World) -> None:
    row = waiting()

    services.decide(row.pk, Approve(), by=rita, via="test")

    row.refresh_from_db()
    assert (row.decided_by, row.decided_by_label) == (rita, "rita@example.org")
    approved = full_events(row)[1]
    assert (approved.actor_id, approved.actor) == (str(rita.pk), "rita@example.org")
    assert run_owed() == ["completed"]
    assert world.names() == ["mail"]


def test_the_same_decision_sent_again_is_a_replay(rita: Person) -> None:
    row = waiting()
    sent = {"by": rita, "via": "test", "key": "k"}

    first = services.decide(row.pk, Approve(), **sent)
    second = services.decide(row.pk, Approve(), **sent)

    assert (first.replayed, second.replayed) == (False, True)


def test_who_started_a_turn_may_not_decide_its_calls(rita: Person) -> None:
    row = waiting(requested_by=rita)

    with pytest.raises(ReviewerNotAllowed):
        services.decide(row.pk, Approve(), by=rita, via="test")

    turn = AgentTurn.objects.get()
    assert (turn.requested_by, turn.requested_by_label) == (rita, "rita@example.org")


def test_a_row_is_held_and_given_to_people_of_the_queue(rita: Person) -> None:
    otto = person("otto@example.org", *DECIDE)
    ada = person("ada@example.org")
    group = Group.objects.create(name="by group")
    group.permissions.set(Permission.objects.filter(codename__in=DECIDE))
    ada.groups.add(group)
    person("vera@example.org", "view_pendinginterrupt")
    row = waiting()

    services.claim(row.pk, by=rita, via="test")

    with pytest.raises(ClaimedByAnother, match=r"rita@example\.org"):
        services.decide(row.pk, Approve(), by=otto, via="test")
    names = [one.get_username() for one in permissions.people_of(row)]
    assert names == ["ada@example.org", "otto@example.org", "rita@example.org"]
    assert permissions.person_named("otto@example.org") == otto
    given = assign_by_name(row.pk, "otto@example.org", by=None, via="test")
    assert given.assignee == otto


@pytest.mark.parametrize("by", ["name", "group"])
def test_a_queue_is_open_to_its_members_only(rita: Person, by: str) -> None:
    outsider = person("otto@example.org", *DECIDE)
    queue = ReviewQueue.objects.get_or_create(pk="default")[0]
    if by == "name":
        queue.users.add(rita)
    else:
        group = Group.objects.create(name="reviewers")
        rita.groups.add(group)
        queue.groups.add(group)
    row = waiting()

    with pytest.raises(InterruptNotFound):
        services.decide(row.pk, Approve(), by=outsider, via="test")
    services.decide(row.pk, Approve(), by=rita, via="test")


def test_api_lists_shows_and_decides(rita: Person, world: World) -> None:
    row = waiting()
    client = APIClient()
    client.force_authenticate(rita)

    listed = client.get("/api/interrupts/")
    shown = client.get(f"/api/interrupts/{row.pk}/")
    decided = client.post(f"/api/interrupts/{row.pk}/approve/", {}, format="json")

    assert [one["id"] for one in listed.json()["results"]] == [str(row.pk)]
    assert (shown.status_code, decided.status_code) == (200, 200)
    assert run_owed() == ["completed"]
    assert world.names() == ["mail"]


def test_admin_lists_shows_and_decides(rita: Person, world: World) -> None:
    row = waiting()
    client: Any = Client()
    client.force_login(rita)

    listed = client.get("/admin/hitl_approvals/pendinginterrupt/")
    response = send(client, row, "approve")

    assert listed.status_code == 200
    assert response.status_code == 302
    assert run_owed() == ["completed"]
    assert world.names() == ["mail"]
    assert client.get(response.url).status_code == 200


@pytest.mark.parametrize(
    "model", ["pendinginterrupt", "agentturn", "interruptevent", "reviewqueue"]
)
def test_admin_pages_open_for_somebody_who_may_do_everything(
    rita: Person, model: str
) -> None:
    Person.objects.update(is_superuser=True)
    services.decide(waiting().pk, Approve(), by=rita, via="test")
    client: Any = Client()
    client.force_login(Person.objects.get(pk=rita.pk))

    page = f"/admin/hitl_approvals/{model}/"

    assert client.get(page).status_code == 200


def test_deleting_a_person_keeps_the_rows_and_their_labels(rita: Person) -> None:
    rudi = person("rudi@example.org")
    row = waiting(requested_by=rudi)
    services.decide(row.pk, Approve(), by=rita, via="test")
    key = str(rita.pk)

    rita.delete()
    rudi.delete()

    row.refresh_from_db()
    assert (row.decided_by, row.decided_by_label) == (None, "rita@example.org")
    turn = AgentTurn.objects.get()
    assert (turn.requested_by, turn.requested_by_label) == (None, "rudi@example.org")
    assert full_events(row)[1].actor_id == key
    assert list(Verification().findings()) == []
    assert run_owed() == ["completed"]


def test_the_page_of_a_row_opens_after_its_people_are_gone(rita: Person) -> None:
    row = waiting()
    services.decide(row.pk, Approve(), by=rita, via="test")
    rita.delete()
    client: Any = Client()
    client.force_login(person("nina@example.org", *DECIDE))

    page = client.get(f"/admin/hitl_approvals/pendinginterrupt/{row.pk}/change/")

    assert page.status_code == 200
    assert "rita@example.org" in page.content.decode()
