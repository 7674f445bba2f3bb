"""Claim, release and assign over REST, and what they keep others from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from rest_framework.test import APIClient

from hitl_approvals.models import DbNow, InterruptEvent, PendingInterrupt
from tests.api import scenes

pytestmark = pytest.mark.django_db(transaction=True)
ASSIGN = ("decide_pendinginterrupt", "assign_pendinginterrupt")


@pytest.fixture
def row(people: dict[str, User]) -> PendingInterrupt:
    return scenes.pending()


@pytest.fixture
def second() -> APIClient:
    return _client(scenes.user("second", "decide_pendinginterrupt"))


@pytest.fixture
def lead() -> APIClient:
    return _client(scenes.user("lead", *ASSIGN))


def _client(user: User) -> APIClient:
    made = APIClient()
    made.force_authenticate(user)
    return made


def post(client: APIClient, row: PendingInterrupt, verb: str, **body: Any) -> Any:
    return client.post(scenes.url(row, verb), body, format="json")


def test_a_claim_is_shown_and_keeps_others_out(
    row: PendingInterrupt, reviewer: APIClient, second: APIClient
) -> None:
    claimed = post(reviewer, row, "claim", minutes=5)

    body = claimed.json()
    assert claimed.status_code == 200
    assert (body["assignee"], body["status"], body["revision"]) == (
        "reviewer",
        "pending",
        1,
    )
    assert body["claim_until"].endswith("Z")
    for verb, sent in [
        ("approve", {}),
        ("reject", {"reason": "no"}),
        ("edit", {"args": {"order": "A-1", "amount": 1}}),
        ("claim", {}),
        ("release", {}),
    ]:
        refused = post(second, row, verb, **sent)
        told = refused.json()
        assert (refused.status_code, told["code"]) == (423, "claimed_by_another"), verb
        assert told["detail"].startswith("reviewer holds this until ")
        assert told["interrupt"]["assignee"] == "reviewer"
    assert scenes.events(row) == ["raised", "claimed"]
    assert post(reviewer, row, "approve", revision=1).status_code == 200


def test_after_the_decision_it_is_in_nobodys_hands(
    row: PendingInterrupt, reviewer: APIClient
) -> None:
    post(reviewer, row, "claim")

    body = post(reviewer, row, "approve").json()

    assert (body["assignee"], body["claim_until"]) == (None, None)


def test_a_claim_that_lapsed_is_not_shown(
    row: PendingInterrupt, reviewer: APIClient, second: APIClient
) -> None:
    post(reviewer, row, "claim")
    PendingInterrupt.objects.filter(pk=row.pk).update(claim_until=DbNow())

    body = second.get(scenes.url(row)).json()

    assert (body["assignee"], body["claim_until"]) == (None, None)
    assert post(second, row, "approve").status_code == 200


def test_a_released_row_is_anybodys(
    row: PendingInterrupt, reviewer: APIClient, second: APIClient
) -> None:
    post(reviewer, row, "claim")

    assert post(reviewer, row, "release", note="lunch").json()["assignee"] is None

    event = InterruptEvent.objects.get(subject_id=row.pk, type="released")
    assert (event.via, event.detail["note"]) == ("api", "lunch")
    again = post(reviewer, row, "release")
    assert (again.status_code, again.json()["code"]) == (409, "transition_not_allowed")
    assert post(second, row, "claim").status_code == 200


def test_assigning_is_a_right(
    row: PendingInterrupt, reviewer: APIClient, lead: APIClient, second: APIClient
) -> None:
    refused = post(reviewer, row, "assign", to="second")
    assert (refused.status_code, refused.json()["code"]) == (
        403,
        "reviewer_not_allowed",
    )

    given = post(lead, row, "assign", to="second")

    assert given.json()["assignee"] == "second"
    assert post(reviewer, row, "approve").status_code == 423
    assert post(second, row, "approve").status_code == 200


@pytest.mark.parametrize(
    "name", ["viewer", "stranger", "nobody-of-this-name", "requester"]
)
def test_people_who_cannot_close_it_and_people_who_are_not_there_look_the_same(
    name: str, people: dict[str, User], lead: APIClient
) -> None:
    row = scenes.pending(by=people["requester"])

    refused = post(lead, row, "assign", to=name)

    body = refused.json()
    assert (refused.status_code, body["code"]) == (400, "payload_rejected")
    assert body["errors"] == [
        {
            "loc": "to",
            "message": "There is no such person, or they could not close this.",
        }
    ]
    assert scenes.events(row) == ["raised"]


@pytest.mark.parametrize(
    ("verb", "body"),
    [
        ("claim", {"minutes": "5"}),
        ("claim", {"minutes": True}),
        ("claim", {"until": 5}),
        ("release", {"note": 7}),
        ("release", {"reason": "x"}),
        ("assign", {}),
        ("assign", {"to": ""}),
        ("assign", {"to": 7}),
        ("assign", {"to": "a\x00b"}),
        ("assign", {"to": "second", "minutes": 5}),
    ],
)
def test_what_cannot_be_read_is_refused(
    verb: str, body: dict[str, Any], row: PendingInterrupt, lead: APIClient
) -> None:
    refused = post(lead, row, verb, **body)

    assert (refused.status_code, refused.json()["code"]) == (400, "malformed")
    assert scenes.events(row) == ["raised"]


@pytest.mark.parametrize("minutes", [0, -3, 1441, 10**30])
def test_a_time_that_is_none_is_refused(
    minutes: float, row: PendingInterrupt, reviewer: APIClient
) -> None:
    refused = post(reviewer, row, "claim", minutes=minutes)

    assert (refused.status_code, refused.json()["code"]) == (400, "payload_rejected")


@pytest.mark.parametrize("verb", ["claim", "release", "assign"])
def test_roles(
    verb: str, row: PendingInterrupt, client_of: Callable[[str], APIClient]
) -> None:
    sent = {"to": "reviewer"} if verb == "assign" else {}

    assert post(client_of("anonymous"), row, verb, **sent).status_code == 401
    assert post(client_of("stranger"), row, verb, **sent).status_code == 404
    refused = post(client_of("viewer"), row, verb, **sent)
    # To release needs no right but to hold it.
    assert refused.status_code == (409 if verb == "release" else 403)
    assert client_of("reviewer").get(scenes.url(row, verb)).status_code == 405
    assert scenes.events(row) == ["raised"]


def test_lists_can_be_cut_to_ones_own_and_to_nobodys(
    reviewer: APIClient, second: APIClient
) -> None:
    mine, theirs, free, lapsed, done = (scenes.pending() for _ in range(5))
    for row in (mine, lapsed, done):
        post(reviewer, row, "claim")
    post(second, theirs, "claim")
    post(reviewer, done, "approve")
    PendingInterrupt.objects.filter(pk=lapsed.pk).update(claim_until=DbNow())

    def listed(query: str) -> set[str]:
        found = reviewer.get(f"{scenes.LIST}?{query}").json()["results"]
        return {one["id"] for one in found}

    assert listed("assignee=me") == {str(mine.pk)}
    assert listed("assignee=none") == {str(free.pk), str(lapsed.pk)}
    assert reviewer.get(f"{scenes.LIST}?assignee=second").status_code == 400
