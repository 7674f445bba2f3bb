"""Deliveries in the admin: seen to the letter, sent again, given up, by some people only."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.admin import AdminSite
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client, override_settings
from django.test.utils import CaptureQueriesContext
from django.urls import path

from hitl_approvals import canonical
from hitl_approvals.admin import DeliveryAdmin
from hitl_approvals.figures.status import status
from hitl_approvals.models import (
    DbNow,
    Delivery,
    DeliveryChannel,
    InterruptEvent,
    db_now_plus,
)
from tests.admin.html_forms import as_sent, form_to, forms_of
from tests.admin.scenes import refund, url
from tests.admin.test_hostile import NASTY, assert_harmless
from tests.admin.test_status import rendered

pytestmark = pytest.mark.django_db

DELIVERIES = "/admin/hitl_approvals/delivery/"
SECRET = "whsec_" + "c2VjcmV0LXRoYXQtbm9ib2R5LXNlZXM" + "AAAAA="
CRM = "webhook:crm"
SITE = {
    "DISPATCHER": "worker",
    "WEBHOOKS": {
        "crm": {"url": "https://crm.example/in/t0ken?key=hush", "secrets": [SECRET]},
        "ops": {"url": "https://ops.example:8443/", "secrets": [SECRET, SECRET]},
    },
}

own_site = AdminSite(name="backoffice")
own_site.register(Delivery, DeliveryAdmin)
urlpatterns = [path("backoffice/", own_site.urls)]


@pytest.fixture
def transactional_db(db: None) -> None:
    """Nothing here races: a transaction that is rolled back will do."""


@pytest.fixture(autouse=True)
def _webhooks(settings: Any) -> None:
    settings.HITL_APPROVALS = SITE


@pytest.fixture
def operator(person: Callable[..., User]) -> User:
    return person("olga", "administer_pendinginterrupt")


@pytest.fixture
def office(operator: User, login: Callable[[User], Client]) -> Client:
    """The browser of somebody who may administer."""
    return login(operator)


def delivery(**changes: Any) -> Delivery:
    """Return a delivery that is due, unlike the test says otherwise."""
    fields = {
        "channel": CRM,
        "event_type": "interrupt.raised",
        "event_id": uuid4(),
        "subject_id": uuid4(),
        "body": {"type": "interrupt.raised", "data": {"id": "1"}},
        "next_attempt_at": DbNow(),
        "give_up_at": db_now_plus(timedelta(days=3)),
        **changes,
    }
    return Delivery.objects.create(**fields)


def failed(**changes: Any) -> Delivery:
    return delivery(
        attempts=3,
        last_status=503,
        last_error="The answer was 503 Service Unavailable.",
        next_attempt_at=db_now_plus(timedelta(hours=1)),
        **changes,
    )


def given_up(**changes: Any) -> Delivery:
    fields = {"give_up_at": DbNow(), "next_attempt_at": None, **changes}
    return delivery(status="given_up", attempts=9, last_status=500, **fields)


def arrived(**changes: Any) -> Delivery:
    return delivery(
        status="delivered",
        attempts=1,
        last_status=204,
        next_attempt_at=None,
        delivered_at=DbNow(),
        **changes,
    )


def address(row: Delivery, page: str = "change") -> str:
    return url(row, page, "delivery")


def listed(office: Client, **query: str) -> list[Any]:
    response = office.get(DELIVERIES, query)
    assert response.status_code == 200
    return [row.id for row in response.context["rows"]]


def press(office: Client, row: Delivery, page: str, **fields: str) -> Any:
    form = form_to(office.get(address(row)), f"/{page}/")
    return office.post(form.action, as_sent({**form.fields, **fields}))


def test_what_happens_is_owed_and_listed_with_what_it_is_about(office: Client) -> None:
    row = refund()

    page = office.get(DELIVERIES).content.decode()

    owed = Delivery.objects.filter(subject_id=row.pk)
    assert {one.channel for one in owed} == {"webhook:crm", "webhook:ops"}
    for one in owed:
        assert address(one) in page
    assert page.count(f'href="{url(row)}"') == 2
    assert "desk_refund" in page
    assert ">crm<" in page


def test_the_page_shows_the_body_to_the_letter_and_no_secret(office: Client) -> None:
    body = {
        "data": {"note": "Grüße\n\u202e<b>", "n": 2**70},
        "type": "interrupt.raised",
    }
    one = failed(body=body)
    two = failed(channel="webhook:ops", event_type="turn.failed")

    page = office.get(address(one)).content.decode()
    other = office.get(address(two)).content.decode()
    saved = office.get(address(one, "body"))

    text = canonical.dumps(body, max_bytes=None, max_depth=None)
    assert saved.content.decode() == text
    assert saved["Content-Disposition"].startswith("attachment")
    assert saved["X-Content-Type-Options"] == "nosniff"
    escaped = text.replace('"', "&quot;").replace("<", "&lt;").replace(">", "&gt;")
    assert escaped in page
    assert "https://crm.example/…" in page
    assert "https://ops.example:8443/…" in other
    for said in ("webhook-id", "webhook-timestamp", "webhook-signature", str(one.pk)):
        assert said in page
    assert "1 signature," in page
    assert "2 signatures" in other
    for secret in ("t0ken", "hush", SECRET, SECRET[6:20]):
        assert secret not in page + other
    assert "The answer was 503 Service Unavailable." in page
    assert "answer 503 Service Unavailable" in page


@pytest.mark.parametrize("make", [delivery, failed, given_up, arrived])
def test_it_is_sent_again(
    office: Client, operator: User, make: Callable[..., Delivery]
) -> None:
    row = make()

    response = press(office, row, "again")

    assert response.status_code == 302
    assert "It is sent again" in office.get(response["Location"]).content.decode()
    was, row = row, Delivery.objects.get()
    now = Delivery.objects.annotate(now=DbNow()).get().now
    assert (row.status, row.attempts, row.pk) == ("owed", 0, was.pk)
    assert row.next_attempt_at is not None
    assert row.next_attempt_at <= now
    assert row.body == was.body
    entry = LogEntry.objects.get()
    assert (entry.user_id, entry.object_id) == (operator.pk, str(row.pk))
    assert "Who sent it again" in office.get(address(row)).content.decode()
    assert "sent again" in office.get(address(row, "history")).content.decode()


def test_what_is_being_sent_is_left_alone(office: Client) -> None:
    row = failed(lease_token="somebody")

    response = press(office, row, "again")

    page = response.content.decode()
    assert response.status_code == 409
    assert "It is being sent right now" in page
    assert "being sent</span>" in page
    assert "<title>Error: interrupt.raised to crm" in page
    assert LogEntry.objects.count() == 0


def test_it_is_given_up_with_a_reason_and_once(office: Client) -> None:
    row = failed()
    form = form_to(office.get(address(row)), "/give-up/")
    fields = {**form.fields, "reason": "The shop\nis <b>closed</b>."}

    response = office.post(form.action, as_sent(fields))
    again = office.post(form.action, as_sent(fields))

    row.refresh_from_db()
    assert response.status_code == 302
    assert (row.status, row.next_attempt_at) == ("given_up", None)
    assert row.last_error == "Given up by olga: The shop\nis <b>closed</b>."
    page = office.get(address(row)).content.decode()
    assert "is &lt;b&gt;closed&lt;/b&gt;." in page
    assert "/give-up/" not in page
    assert again.status_code == 409
    assert "What you had typed" in again.content.decode()
    assert LogEntry.objects.count() == 1
    assert listed(office, view="given_up") == [row.pk]
    found = status(User.objects.get(username="olga"))
    assert found is not None
    assert found.given_up == 1


@pytest.mark.parametrize(
    ("reason", "fault"),
    [
        (" \x00\n ", "Say why nobody needs to hear of it."),
        ("r" * 501, "Write at most 500 characters."),
    ],
)
def test_giving_up_needs_a_reason(office: Client, reason: str, fault: str) -> None:
    row = failed()

    response = press(office, row, "give-up", reason=reason)

    page = response.content.decode()
    assert fault in page
    assert reason.strip() in page
    assert 'aria-invalid="true"' in page
    ids = re.findall(r'\sid="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    row.refresh_from_db()
    assert row.status == "owed"


def test_several_are_sent_again_and_each_refusal_is_told(office: Client) -> None:
    rows = [
        given_up(),
        failed(),
        failed(lease_token="busy"),
        given_up(channel="webhook:no"),
    ]
    page = office.get(DELIVERIES, {"view": "all", "channel": "", "after": "x"})
    form = form_to(page, "/again/")
    chosen = [str(row.pk) for row in rows]

    response = office.post(
        form.action, {**form.fields, "chosen": [*chosen, str(uuid4()), "7", chosen[0]]}
    )
    told = office.get(response["Location"]).content.decode()

    assert response["Location"] == f"{DELIVERIES}?view=all&after=x"
    assert "2 deliveries are sent again." in told
    assert "3 deliveries are not sent again:" in told
    assert LogEntry.objects.count() == 2
    assert [Delivery.objects.get(pk=row.pk).attempts for row in rows] == [0, 0, 3, 9]


def test_nothing_ticked_sends_nothing(office: Client) -> None:
    row = failed()
    form = form_to(office.get(DELIVERIES), "/again/")

    response = office.post(form.action, form.fields)
    nowhere = office.post(form.action, {"back": "?next=//evil.example&view=all"})

    assert (
        "Tick what to send again." in office.get(response["Location"]).content.decode()
    )
    assert nowhere["Location"] == f"{DELIVERIES}?view=all"
    row.refresh_from_db()
    assert row.attempts == 3


def test_the_list_is_in_views_and_narrowed(office: Client) -> None:
    owed, late = delivery(), failed(channel="webhook:ops")
    over = given_up(event_type="turn.failed")
    done = arrived()

    assert listed(office) == [owed.pk, late.pk]
    assert listed(office, view="given_up") == [over.pk]
    assert listed(office, view="delivered") == [done.pk]
    every = [done.pk, over.pk, late.pk, owed.pk]
    assert set(listed(office, view="all")) == set(every)
    assert listed(office, channel="webhook:ops") == [late.pk]
    assert listed(office, view="all", event="turn.failed") == [over.pk]
    assert set(listed(office, view="all", event="nonsense")) == set(every)
    for key in (late.pk, late.subject_id):
        assert listed(office, view="all", q=str(key)) == [late.pk]
    assert listed(office, view="all", q="refund") == []
    assert listed(office, view="all", q="\x00", channel="\x00") == []
    page = office.get(DELIVERIES, {"view": "all"}).content.decode()
    assert re.findall(r'desk-count">(\d+)<', page) == ["2", "1", "1", "4"]
    for said in ("owed</span>", "failed so far", "given up</span>", "delivered</span>"):
        assert said in page


def test_a_turns_id_finds_what_is_about_its_calls(office: Client) -> None:
    row = refund()
    about = {one.pk for one in Delivery.objects.filter(subject_id=row.pk)}
    delivery()

    assert set(listed(office, view="all", q=str(row.turn_id))) == about


def test_a_list_goes_on_and_back(office: Client) -> None:
    rows = [arrived() for _ in range(53)]

    first = office.get(DELIVERIES, {"view": "delivered", "channel": CRM})
    second = office.get(f"{DELIVERIES}{first.context['next_query']}")
    back = office.get(f"{DELIVERIES}{second.context['previous_query']}")

    shown = [[row.id for row in one.context["rows"]] for one in (first, second, back)]
    assert [len(one) for one in shown] == [50, 3, 50]
    assert {*shown[0], *shown[1]} == {row.pk for row in rows}
    assert shown[2] == shown[0]
    assert "channel=webhook%3Acrm" in first.context["next_query"]


def test_the_pages_ask_a_fixed_number_of_queries(office: Client) -> None:
    def queries(place: str) -> int:
        with CaptureQueriesContext(connection) as found:
            assert office.get(place).status_code == 200
        return len(found)

    row = failed()
    few = {place: queries(place) for place in (DELIVERIES, address(row))}
    for _ in range(20):
        refund()
        failed()

    assert all(queries(place) <= most for place, most in few.items())
    assert max(few.values()) <= 16


def test_an_endpoint_that_is_left_alone_is_said_and_not_called_overdue(
    office: Client, operator: User
) -> None:
    row = delivery(next_attempt_at=db_now_plus(timedelta(hours=-2)), attempts=1)
    before = status(operator)
    overdue = office.get(DELIVERIES).content.decode()
    DeliveryChannel.objects.create(
        name=CRM, failures=7, rests_until=db_now_plus(timedelta(minutes=4))
    )

    after = status(operator)
    waits = office.get(DELIVERIES).content.decode()
    page = office.get(address(row)).content.decode()

    assert before is not None
    assert after is not None
    assert (before.overdue, before.failing) == (1, 0)
    assert (after.overdue, after.failing) == (0, 1)
    assert "due for 2 h" in overdue
    assert "its endpoint is left alone until" in waits
    assert "The endpoint failed 7 times in a row" in page
    assert "overdue" not in waits + page


def test_an_endpoint_that_is_not_in_the_settings_is_said(office: Client) -> None:
    page = office.get(address(delivery(channel="webhook:old"))).content.decode()

    assert "know no endpoint of this name" in page
    assert "unknown here" in page
    listed_page = office.get(DELIVERIES, {"channel": "webhook:old"}).content.decode()
    assert '<option value="webhook:old" selected>old</option>' in listed_page


def test_the_status_line_says_what_the_outside_was_not_told(
    operator: User, reviewer: User, office: Client
) -> None:
    delivery(next_attempt_at=db_now_plus(timedelta(hours=-2)))
    given_up()
    given_up(give_up_at=db_now_plus(timedelta(days=-2)))
    DeliveryChannel.objects.create(
        name="webhook:ops", failures=9, rests_until=db_now_plus(timedelta(minutes=4))
    )

    line = rendered(operator)

    assert "1 delivery is overdue, the oldest for 2 h" in line
    assert "1 webhook endpoint fails" in line
    assert "1 delivery was given up in the last day" in line
    assert f'href="{DELIVERIES}?view=given_up"' in line
    assert "deliver" not in rendered(reviewer)
    assert "webhook" not in rendered(reviewer)


def test_the_pages_of_rows_lead_to_what_was_told_of_them(
    boss: User, reviewer: User, login: Callable[[User], Client]
) -> None:
    row, office = refund(), login(boss)
    place = f"{DELIVERIES}?view=all&amp;q="

    call = office.get(url(row)).content.decode()
    turn = office.get(url(row.turn, "change", "agentturn")).content.decode()
    others = login(reviewer).get(url(row)).content.decode()
    Delivery.objects.all().delete()
    silent = office.get(url(row)).content.decode()

    assert f'href="{place}{row.pk}"' in call
    assert f'href="{place}{row.turn_id}"' in turn
    for page in (others, silent):
        assert "hitl_approvals/delivery/?view" not in page


def test_a_get_changes_nothing(office: Client) -> None:
    row = failed()
    with CaptureQueriesContext(connection) as found:
        for place in (
            f"{DELIVERIES}?view=all&chosen={row.pk}",
            f"{DELIVERIES}again/?chosen={row.pk}",
            *(address(row, one) for one in ("change", "again", "give_up", "body")),
        ):
            assert office.get(place).status_code in (200, 302)
            assert office.head(place).status_code in (200, 302)
    asked = [one["sql"] for one in found]

    assert not [sql for sql in asked if re.match(r"(INSERT|UPDATE|DELETE)", sql)]
    row.refresh_from_db()
    assert (row.status, row.attempts) == ("owed", 3)
    for place in (DELIVERIES, address(row), address(row, "body")):
        assert office.post(place).status_code == 405
    assert office.get(f"{DELIVERIES}add/").status_code == 403
    assert office.post(address(row, "delete"), {"post": "yes"}).status_code == 403
    assert Delivery.objects.count() == 1


def test_every_change_asks_for_the_forms_own_token(
    operator: User, login: Callable[..., Client]
) -> None:
    row = failed()
    strict = login(operator, enforce_csrf_checks=True)

    answers = [
        strict.post(address(row, "again")),
        strict.post(address(row, "give_up"), {"reason": "no"}),
        strict.post(f"{DELIVERIES}again/", {"chosen": [str(row.pk)]}),
    ]

    assert [one.status_code for one in answers] == [403] * 3
    row.refresh_from_db()
    assert (row.status, row.attempts) == ("owed", 3)


@pytest.mark.parametrize("who", ["reviewer", "viewer", "settler", "stranger"])
def test_only_those_who_administer_get_in(
    who: str, request: pytest.FixtureRequest, login: Callable[..., Client]
) -> None:
    row = failed()
    browser = login(request.getfixturevalue(who))

    assert browser.get(DELIVERIES).status_code == 403
    assert "Can administer turns" in browser.get(DELIVERIES).content.decode()
    for page in ("change", "body"):
        assert browser.get(address(row, page)).status_code == 404
    assert browser.post(address(row, "again")).status_code == 404
    assert browser.post(address(row, "give_up"), {"reason": "no"}).status_code == 404
    several = browser.post(f"{DELIVERIES}again/", {"chosen": [str(row.pk)]})
    assert several.status_code == 403
    assert "delivery/" not in browser.get("/admin/").content.decode()
    row.refresh_from_db()
    assert (row.status, row.attempts) == ("owed", 3)


def test_nobody_who_was_logged_out_changes_anything() -> None:
    row = failed()

    answers = [
        Client().post(address(row, "again")),
        Client().post(address(row, "give_up"), {"reason": "typed <b>"}),
        Client().post(f"{DELIVERIES}again/", {"chosen": [str(row.pk)]}),
    ]

    assert [one.status_code for one in answers] == [403] * 3
    assert "typed &lt;b&gt;" in answers[1].content.decode()
    row.refresh_from_db()
    assert (row.status, row.attempts) == ("owed", 3)


def test_whatever_was_written_is_text(office: Client) -> None:
    bad = NASTY.replace("\x00", "")
    row = failed(
        channel=f"webhook:{bad}"[:64],
        event_type=bad[:64],
        body={NASTY: [NASTY]},
        subject_id=refund(note=NASTY).pk,
    )
    Delivery.objects.filter(pk=row.pk).update(last_error=bad)

    pages = [
        office.get(address(row)),
        office.get(DELIVERIES, {"q": NASTY, "channel": NASTY, "view": "all"}),
        office.get(DELIVERIES, {"view": "all"}),
        press(
            office, row, "give-up", reason="</textarea><script>alert(1)</script>" * 20
        ),
        press(office, row, "again"),
    ]

    for response in pages:
        assert response.status_code in (200, 409)
        assert_harmless(response.content.decode())


@pytest.mark.parametrize("name", ["not-a-uuid", "7", str(uuid4())])
def test_what_is_not_there_is_not_found(office: Client, name: str) -> None:
    assert office.get(f"{DELIVERIES}{name}/change/").status_code == 404
    assert office.get(f"{DELIVERIES}{name}/history/").status_code in (302, 404)


@override_settings(ROOT_URLCONF=__name__)
def test_a_site_of_ones_own_with_only_the_deliveries(
    operator: User, login: Callable[..., Client]
) -> None:
    office = login(operator)
    base = "/backoffice/hitl_approvals/delivery/"
    row = failed(subject_id=refund().pk)

    pages = [office.get(base), office.get(f"{base}{row.pk}/change/")]

    for response in pages:
        html = response.content.decode()
        assert response.status_code == 200
        assert 'href="/admin/' not in html
        posts = [one.action for one in forms_of(html) if one.method == "post"]
        assert posts
        assert all(action.startswith("/backoffice/") for action in posts)


def test_an_event_is_led_to_from_the_delivery_that_tells_of_it(office: Client) -> None:
    row = refund()
    event = InterruptEvent.objects.get(subject_id=row.pk)
    one = Delivery.objects.filter(event_id=event.pk).first()
    assert one is not None

    page = office.get(address(one)).content.decode()

    assert f"/interruptevent/{event.pk}/change/" in page
