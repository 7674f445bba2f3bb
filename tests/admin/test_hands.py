"""Claim, release and assign at the desk: what is offered, what it does, what it refuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client

from hitl_approvals import services
from hitl_approvals.models import (
    DbNow,
    InterruptEvent,
    PendingInterrupt,
    ReviewQueue,
)
from tests.admin.html_forms import as_sent, form_to, forms_of
from tests.admin.scenes import (
    LIST,
    ask,
    charge_in_doubt,
    confirm,
    edit,
    expire,
    refund,
    send,
    url,
)

pytestmark = pytest.mark.django_db(transaction=True)
VIEW, DECIDE = "view_pendinginterrupt", "decide_pendinginterrupt"


@pytest.fixture
def lead(person: Callable[..., User]) -> User:
    return person("lead", VIEW, DECIDE, "assign_pendinginterrupt")


def kinds(row: PendingInterrupt) -> list[str]:
    found = InterruptEvent.objects.filter(subject_id=row.pk).order_by("sequence")
    return list(found.values_list("type", flat=True))


def claim(row: PendingInterrupt, by: User) -> None:
    services.claim(row.pk, by=by, via="test")


def text(response: Any) -> str:
    return " ".join(response.content.decode().split())


def button(verb: str, row: PendingInterrupt) -> str:
    return f'formaction="{url(row, verb)}"'


def test_claiming_shows_who_holds_it_and_until_when(
    desk: Client, reviewer: User
) -> None:
    row = refund()
    assert button("claim", row) in text(desk.get(url(row)))

    response = desk.post(url(row, "claim"))

    assert (response.status_code, response.url) == (302, url(row))
    page = text(desk.get(url(row)))
    assert "You hold it until <time" in page
    assert button("release", row) in page
    assert button("claim", row) not in page
    assert "Claimed by tom.weber until" in page
    row.refresh_from_db()
    assert row.assignee == reviewer
    assert kinds(row) == ["raised", "claimed"]


def test_the_button_stands_in_the_form_and_loses_nothing_that_was_typed(
    desk: Client,
) -> None:
    row = refund()
    form = form_to(desk.get(url(row)), "/decide/")

    response = desk.post(
        url(row, "claim"),
        as_sent({**form.fields, "do": "claim", "reason": "half\nway"}),
    )

    assert response.status_code == 200
    assert "half\nway" in form_to(response, "/decide/").fields["reason"]
    assert "You hold it until" in text(response)
    row.refresh_from_db()
    assert row.assignee is not None


def test_a_half_typed_answer_survives_a_claim(desk: Client) -> None:
    row = ask("Which address?")
    form = form_to(desk.get(url(row)), "/decide/")
    (name,) = (one for one in form.fields if one.startswith("f"))

    response = desk.post(url(row, "claim"), as_sent({**form.fields, name: "Leeds"}))

    assert form_to(response, "/decide/").fields[name] == "Leeds"


def test_releasing_gives_it_back(desk: Client, reviewer: User) -> None:
    row = refund()
    claim(row, reviewer)

    assert desk.post(url(row, "release")).status_code == 302

    page = text(desk.get(url(row)))
    assert button("claim", row) in page
    assert "Released by tom.weber" in page
    again = desk.post(url(row, "release"))
    assert "Nobody holds this" in text(again)
    assert kinds(row) == ["raised", "claimed", "released"]


def test_what_another_holds_has_no_decision_panel_and_says_who(
    desk: Client, other_reviewer: User
) -> None:
    row = refund()
    claim(row, other_reviewer)

    page = text(desk.get(url(row)))

    assert "priya.nair holds this until <time" in page
    assert "Nobody else decides it before that." in page
    assert 'id="decide"' not in page
    for verb in ("claim", "release", "assign"):
        assert button(verb, row) not in page
    assert desk.get(url(row, "edit")).status_code == 302


@pytest.mark.parametrize("verb", ["claim", "release"])
def test_a_crafted_post_is_refused_and_told_who_holds_it(
    desk: Client, other_reviewer: User, verb: str
) -> None:
    row = refund()
    claim(row, other_reviewer)

    page = text(desk.post(url(row, verb)))

    assert "Nothing was recorded." in page
    assert "priya.nair holds this until" in page
    row.refresh_from_db()
    assert row.assignee == other_reviewer


def test_a_decision_that_comes_after_a_claim_is_kept_and_not_recorded(
    desk: Client, other_reviewer: User
) -> None:
    row = refund()
    form = form_to(desk.get(url(row)), "/decide/")
    claim(row, other_reviewer)

    response = desk.post(
        form.action,
        as_sent({**form.fields, "decision": "reject", "reason": "typed with care"}),
    )

    page = text(response)
    assert response.status_code == 423
    assert "priya.nair holds this now" in page
    assert "priya.nair holds this until <time" in page
    assert "typed with care" in page
    row.refresh_from_db()
    assert row.status == "pending"


def test_an_edit_that_comes_after_a_claim_is_kept_and_not_recorded(
    desk: Client, other_reviewer: User
) -> None:
    row = refund()
    step_two = edit(desk, row, amount="12.00")
    claim(row, other_reviewer)

    response = confirm(desk, step_two)

    assert response.status_code == 423
    assert "12.00" in text(response)
    row.refresh_from_db()
    assert row.status == "pending"


def test_ones_own_claim_changes_nothing_about_an_open_page(
    desk: Client, reviewer: User
) -> None:
    row = refund()
    form = form_to(desk.get(url(row)), "/decide/")
    claim(row, reviewer)

    response = desk.post(form.action, as_sent({**form.fields, "decision": "approve"}))

    assert response.status_code == 302
    row.refresh_from_db()
    assert row.decision == "approve"


def test_who_may_assign_sees_a_choice_of_people_and_gives_it_to_one(
    lead: User, reviewer: User, viewer: User, login: Callable[[User], Client]
) -> None:
    row = refund()
    client = login(lead)
    page = text(client.get(url(row)))
    assert f'<option value="{reviewer.pk}">tom.weber</option>' in page
    assert f'value="{viewer.pk}"' not in page

    response = client.post(url(row, "assign"), {"to": str(reviewer.pk)})

    assert response.status_code == 302
    page = text(client.get(url(row)))
    assert "tom.weber, until <time" in page
    assert "You may decide it all the same." in page
    assert "Given to tom.weber until" in page
    assert "Take it over" in page
    assert send(client, row, "approve").status_code == 302


@pytest.mark.parametrize("to", ["", "0", "tom.weber", "\x00", "-1"])
def test_nobody_and_strangers_are_not_given_anything(
    lead: User, stranger: User, login: Callable[[User], Client], to: str
) -> None:
    row = refund()

    for key in (to, str(stranger.pk)):
        page = text(login(lead).post(url(row, "assign"), {"to": key}))
        assert "Choose whom to give it to." in page
    assert kinds(row) == ["raised"]


def test_people_of_other_queues_are_not_offered(
    lead: User, reviewer: User, other_reviewer: User, login: Callable[[User], Client]
) -> None:
    group = Group.objects.create(name="refunds")
    ReviewQueue.objects.get(pk="default").groups.add(group)
    lead.groups.add(group)
    reviewer.groups.add(group)
    row = refund()
    client = login(lead)

    page = text(client.get(url(row)))
    client.post(url(row, "assign"), {"to": str(other_reviewer.pk)})

    assert "tom.weber</option>" in page
    assert "priya.nair</option>" not in page
    assert kinds(row) == ["raised"]


def test_assigning_without_the_right_is_refused(desk: Client, reviewer: User) -> None:
    row = refund()

    page = text(desk.get(url(row)))
    response = desk.post(url(row, "assign"), {"to": str(reviewer.pk)})

    assert button("assign", row) not in page
    assert response.status_code == 403
    assert "Can assign interrupts to people" in text(response)
    assert kinds(row) == ["raised"]


@pytest.mark.parametrize("verb", ["claim", "assign"])
def test_viewers_are_refused_and_strangers_find_nothing(
    viewer: User, stranger: User, login: Callable[[User], Client], verb: str
) -> None:
    row = refund()

    assert button("claim", row) not in text(login(viewer).get(url(row)))
    assert login(viewer).post(url(row, verb)).status_code == 403
    assert login(stranger).post(url(row, verb)).status_code == 404
    assert login(stranger).post(url(row, "release")).status_code == 404
    assert Client().post(url(row, verb)).status_code == 403
    assert kinds(row) == ["raised"]


@pytest.mark.parametrize("verb", ["claim", "release", "assign", "reveal"])
def test_looking_claims_nothing(desk: Client, verb: str) -> None:
    row = refund()

    response = desk.get(url(row, verb) + "?to=1")

    assert (response.status_code, response.url) == (302, url(row))
    assert kinds(row) == ["raised"]


def test_a_token_of_the_form_is_needed(
    reviewer: User, login: Callable[..., Client]
) -> None:
    row = refund()

    response = login(reviewer, enforce_csrf_checks=True).post(url(row, "claim"))

    assert response.status_code == 403
    assert kinds(row) == ["raised"]


def test_what_is_over_can_be_taken_by_nobody(desk: Client) -> None:
    over, late = refund(), refund()
    services.cancel(over.turn_id, by=None, via="test")
    expire(late)

    for row in (over, late):
        assert button("claim", row) not in text(desk.get(url(row)))
        assert "Nothing was recorded." in text(desk.post(url(row, "claim")))


def test_a_doubt_in_anothers_hands_has_no_roads(
    settler: User, person: Callable[..., User], login: Callable[[User], Client]
) -> None:
    row = charge_in_doubt()
    omar = person("omar", VIEW, "settle_pendinginterrupt")
    page = login(omar).get(url(row))
    form = form_to(page, "/settle/")
    assert login(settler).post(url(row, "claim")).status_code == 302

    later = text(login(omar).get(url(row)))
    response = login(omar).post(
        form.action, {**form.fields, "answer": "give_up", "note": "asked the bank"}
    )

    assert "farah holds this until" in later
    assert "Give up on this call" not in later
    assert response.status_code == 423
    assert "asked the bank" in text(response)
    row.refresh_from_db()
    assert row.status == "in_doubt"
    mine = text(login(settler).get(url(row)))
    assert "You hold it until" in mine
    assert "Give up on this call" in mine


def test_the_list_says_in_whose_hands_each_is_and_can_be_cut_to_them(
    desk: Client, reviewer: User, other_reviewer: User
) -> None:
    mine, theirs = refund(order_id="A-mine"), refund(order_id="A-theirs")
    _free, lapsed = refund(order_id="A-free"), refund(order_id="A-lapsed")
    claim(mine, reviewer)
    claim(theirs, other_reviewer)
    claim(lapsed, other_reviewer)
    PendingInterrupt.objects.filter(pk=lapsed.pk).update(claim_until=DbNow())

    page = text(desk.get(LIST))

    assert page.count("You, until <time") == 1
    assert page.count("priya.nair, until <time") == 1
    assert page.count('<span class="desk-quiet">nobody</span>') == 2

    def shown(query: str) -> set[str]:
        found = text(desk.get(f"{LIST}?hands={query}"))
        return {
            name
            for name in ("mine", "theirs", "free", "lapsed")
            if f"A-{name}" in found
        }

    assert shown("mine") == {"mine"}
    assert shown("nobodys") == {"free", "lapsed"}
    assert shown("everybodys") == {"mine", "theirs", "free", "lapsed"}


def test_the_list_asks_as_often_for_many_holders_as_for_none(
    desk: Client, other_reviewer: User, django_assert_num_queries: Any
) -> None:
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    rows = [refund() for _ in range(4)]
    with CaptureQueriesContext(connection) as before:
        desk.get(LIST)
    for row in rows:
        claim(row, other_reviewer)
    with CaptureQueriesContext(connection) as after:
        desk.get(LIST)

    assert len(before) == len(after)


def test_the_list_offers_a_claim_to_those_who_may_close_a_row(
    desk: Client,
    reviewer: User,
    other_reviewer: User,
    viewer: User,
    settler: User,
    login: Callable[[User], Client],
) -> None:
    own, free, held = refund(by=reviewer), refund(), refund()
    late, doubt = refund(), charge_in_doubt()
    claim(held, other_reviewer)
    expire(late)

    def offered(client: Client) -> set[Any]:
        page = text(client.get(LIST))
        rows = (own, free, held, late, doubt)
        return {row.pk for row in rows if button("claim", row) in page}

    assert offered(desk) == {free.pk}
    assert offered(login(other_reviewer)) == {own.pk, free.pk}
    assert offered(login(settler)) == {doubt.pk}
    assert offered(login(viewer)) == set()
    form = next(one for one in forms_of(text(desk.get(LIST))) if one.method == "post")
    assert "csrfmiddlewaretoken" in form.fields
    response = desk.post(url(free, "claim"), form.fields)
    assert (response.status_code, response.url) == (302, url(free))
