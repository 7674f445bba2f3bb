"""Saved reasons, skipping through the queue, the line about what was done, and reveals."""

from __future__ import annotations

import re
from collections.abc import Callable
from html import unescape
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from hitl_approvals import services
from hitl_approvals.engine import run_turn
from hitl_approvals.models import InterruptEvent, PendingInterrupt
from tests.admin.html_forms import form_to
from tests.admin.scenes import LIST, REFUND, charge_in_doubt, edit, refund, send, url

pytestmark = pytest.mark.django_db(transaction=True)
REASONS = ["Not covered by the returns policy", "Wrong amount & <b>currency</b>"]
SECRET = REFUND["payout_token"]
VIEW, DECIDE = "view_pendinginterrupt", "decide_pendinginterrupt"


@pytest.fixture
def saved(settings: Any) -> list[str]:
    settings.HITL_APPROVALS = {**settings.HITL_APPROVALS, "REJECT_REASONS": REASONS}
    return REASONS


def reason_of(row: PendingInterrupt) -> str:
    return PendingInterrupt.objects.get(pk=row.pk).reason


def text(response: Any) -> str:
    return " ".join(response.content.decode().split())


def skip_of(response: Any) -> str:
    html = response.content.decode()
    (found,) = re.findall(r'<a class="desk-btn" href="([^"]+)"[^>]*>Skip</a>', html)
    return unescape(found)


def test_a_saved_reason_is_enough(desk: Client, saved: list[str]) -> None:
    row = refund()

    assert send(desk, row, "reject", canned=saved[1]).status_code == 302

    assert reason_of(row) == saved[1]


def test_a_saved_reason_and_ones_own_words_are_joined(
    desk: Client, saved: list[str]
) -> None:
    row = refund()

    send(desk, row, "reject", canned=saved[0], reason="Ask for a photo.")

    assert reason_of(row) == f"{saved[0]}\nAsk for a photo."


def test_without_a_choice_the_words_count(desk: Client, saved: list[str]) -> None:
    row = refund()

    send(desk, row, "reject", reason="Mine.")

    assert reason_of(row) == "Mine."


def test_neither_is_refused(desk: Client, saved: list[str]) -> None:
    row = refund()

    response = send(desk, row, "reject")

    assert "Say why" in text(response)
    assert reason_of(row) == ""


def test_what_is_not_offered_is_refused_and_the_words_kept(
    desk: Client, saved: list[str]
) -> None:
    row = refund()

    response = send(desk, row, "reject", canned="You are fired", reason="typed")

    assert "not offered any more" in text(response)
    assert form_to(response, "/decide/").fields["reason"] == "typed"
    assert reason_of(row) == ""


def test_a_choice_survives_an_error(desk: Client, saved: list[str]) -> None:
    row = refund()

    response = send(desk, row, "reject", canned=saved[1], reason="bad \x00 reason")

    assert form_to(response, "/decide/").fields["canned"] == saved[1]


def test_a_choice_is_in_what_a_loser_gets_back(
    desk: Client, saved: list[str], other_reviewer: User
) -> None:
    row = refund()
    form = form_to(desk.get(url(row)), "/decide/")
    services.decide(row.pk, {"type": "approve"}, by=other_reviewer, via="test")

    response = desk.post(
        form.action, {**form.fields, "decision": "reject", "canned": saved[0]}
    )

    assert response.status_code == 409
    assert saved[0] in text(response)


def test_a_site_without_saved_reasons_shows_no_choice(desk: Client) -> None:
    assert 'name="canned"' not in text(desk.get(url(refund())))


def test_skipping_shows_each_once_and_comes_to_an_end(desk: Client) -> None:
    rows = [refund() for _ in range(4)]
    place, seen = url(rows[2]), []

    while not place.startswith(f"{LIST}?"):
        place = skip_of(desk.get(place))
        seen.append(place.partition("?")[0])

    assert seen == [url(rows[3]), url(rows[0]), url(rows[1]), LIST]
    assert "You have been through all that you may decide." in text(desk.get(place))
    assert not InterruptEvent.objects.exclude(type="raised").exists()


def test_a_decision_in_a_pass_goes_on_with_it_and_not_back_to_what_was_skipped(
    desk: Client,
) -> None:
    first, second, third = (refund() for _ in range(3))
    place = skip_of(desk.get(url(first)))

    form = form_to(desk.get(place), f"/decide/?pass={first.pk}")
    response = desk.post(form.action, {**form.fields, "decision": "approve"})

    assert response.url.partition("?")[0] == url(third)
    page = desk.get(response.url)
    assert "You approved" in text(page)
    assert skip_of(page).partition("?")[0] == LIST
    form = form_to(page, f"/decide/?pass={first.pk}")
    last = desk.post(form.action, {**form.fields, "decision": "approve"})
    assert last.url.partition("?")[0] == LIST
    page = text(desk.get(last.url))
    assert "You approved" in page
    assert "What you skipped is still here." in page
    second.refresh_from_db()
    assert second.decision == "approve"


def test_an_edit_keeps_to_the_pass(desk: Client) -> None:
    first, second, third = (refund() for _ in range(3))

    page = desk.get(skip_of(desk.get(url(first))))

    assert f'href="{url(second, "edit")}?pass={first.pk}"' in text(page)
    step_one = desk.get(f"{url(second, 'edit')}?pass={first.pk}")
    form = form_to(step_one, f"/edit/?pass={first.pk}")
    step_two = desk.post(form.action, {**form.fields, "step": "review"})
    form = form_to(step_two, f"/edit/?pass={first.pk}")
    response = desk.post(form.action, {**form.fields, "step": "approve"})
    assert response.url.partition("?")[0] == url(third)
    assert third.pk != second.pk


@pytest.mark.parametrize(
    "named", ["nonsense", "\x00", "01a2289a-ab15-7189-a3dd-ed3ff228f90c"]
)
def test_a_pass_that_began_nowhere_is_none(desk: Client, named: str) -> None:
    first, second = refund(), refund()

    page = desk.get(url(first), {"pass": named})

    assert skip_of(page) == f"{url(second)}?pass={first.pk}"


def test_what_others_hold_is_skipped(desk: Client, other_reviewer: User) -> None:
    first, second, third = (refund() for _ in range(3))
    services.claim(second.pk, by=other_reviewer, via="test")

    assert skip_of(desk.get(url(first))).partition("?")[0] == url(third)


def test_the_line_follows_the_decision_to_its_end(desk: Client) -> None:
    row, other = refund(), refund()
    place = send(desk, row, "approve").url
    assert place.partition("?")[0] == url(other)

    before = text(desk.get(place))
    run_turn(row.turn_id)
    after = text(desk.get(place))

    assert "You approved" in before
    assert "the turn is about to go on" in before
    assert "resolved" not in before.split('class="desk-trail"')[1].split("</ol>")[0]
    trail = after.split('class="desk-trail"')[1].split("</ol>")[0]
    assert re.search(
        r"decided <time.*started <time.*<b>ran once, resolved <time[^>]*>\d\d:\d\d",
        trail,
    )


@pytest.fixture
def rosa(person: Callable[..., User]) -> User:
    return person("rosa", VIEW, DECIDE, "reveal_pendinginterrupt")


def reveals(row: PendingInterrupt) -> int:
    return InterruptEvent.objects.filter(subject_id=row.pk, type="revealed").count()


def test_hidden_values_are_in_the_answer_to_the_post_and_nowhere_else(
    rosa: User, login: Callable[[User], Client]
) -> None:
    row = refund()
    client = login(rosa)
    page = client.get(url(row))
    form = form_to(page, "/reveal/")
    assert SECRET not in text(page)
    assert "Reveal; this is recorded" in text(page)

    answer = client.post(form.action, form.fields)

    assert answer.status_code == 200
    assert text(answer).count(SECRET) == 1
    assert "no-store" in answer["Cache-Control"]
    assert "Hidden arguments revealed to rosa, in the admin" in text(answer)
    assert reveals(row) == 1
    for place in (url(row), url(row, "edit"), url(row, "reveal"), LIST):
        assert SECRET not in text(client.get(place, follow=True))
    event = InterruptEvent.objects.get(subject_id=row.pk, type="revealed")
    assert SECRET not in str(event.detail)
    assert reveals(row) == 1


def test_one_decides_from_the_page_that_shows_them(
    rosa: User, login: Callable[[User], Client]
) -> None:
    row = refund()
    client = login(rosa)

    form = form_to(client.post(url(row, "reveal")), "/decide/")
    response = client.post(form.action, {**form.fields, "decision": "approve"})

    assert response.status_code == 302
    row.refresh_from_db()
    assert row.decision == "approve"


def test_to_reveal_is_a_right(
    desk: Client, stranger: User, login: Callable[[User], Client]
) -> None:
    row = refund()

    page = text(desk.get(url(row)))
    refused = desk.post(url(row, "reveal"))

    assert "Reveal; this is recorded" not in page
    assert refused.status_code == 403
    assert "Can reveal hidden arguments" in text(refused)
    assert SECRET not in text(refused)
    assert login(stranger).post(url(row, "reveal")).status_code == 404
    assert reveals(row) == 0


def test_a_call_that_may_be_under_way_is_not_revealed(
    rosa: User, login: Callable[[User], Client]
) -> None:
    row = refund()
    services.decide(row.pk, {"type": "approve"}, by=None, via="test")
    client = login(rosa)

    page = text(client.get(url(row)))
    answer = text(client.post(url(row, "reveal")))

    assert "Reveal; this is recorded" not in page
    assert "may be under way" in answer
    assert SECRET not in answer
    run_turn(row.turn_id)
    assert SECRET in text(client.post(url(row, "reveal")))


def test_where_nothing_is_hidden_nothing_is_offered(
    person: Callable[..., User], login: Callable[[User], Client]
) -> None:
    row = charge_in_doubt()
    client = login(person("rosa", VIEW, "reveal_pendinginterrupt"))

    assert "Reveal; this" not in text(client.get(url(row)))
    assert "Nothing is hidden" in text(client.post(url(row, "reveal")))
    assert reveals(row) == 0


def test_an_edit_still_hides_them(rosa: User, login: Callable[[User], Client]) -> None:
    row = refund()
    client = login(rosa)
    client.post(url(row, "reveal"))

    assert SECRET not in text(edit(client, row, amount="12.00"))
