"""Agent clients and deliveries in a browser: read, filled in, copied, by keys, on a phone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Error, Page, expect

from hitl_approvals import services
from hitl_approvals.models import (
    AgentClient,
    DbNow,
    Delivery,
    DeliveryChannel,
    ReviewQueue,
    db_now_plus,
)
from tests.admin.scenes import refund, url
from tests.browser.conftest import OpenAs
from tests.browser.processes import web
from tests.browser.test_axe import AXE, SERIOUS, assert_nothing_serious
from tests.browser.test_hostile import TEXTS, harmless
from tests.support import remote

pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
]

CLIENTS = "/admin/hitl_approvals/agentclient/"
DELIVERIES = "/admin/hitl_approvals/delivery/"
PHONE = {"width": 390, "height": 844}


@pytest.fixture(scope="module")
def unfold(django_db_setup: None) -> Iterator[str]:
    with web("tests.settings.browser_unfold") as address:
        yield address


def billing() -> AgentClient:
    """Return a client that has asked for a few things."""
    ReviewQueue.objects.get_or_create(slug="refunds", title="Refunds over 100")
    client, _token = services.create_client(
        "billing", queue="refunds", limits={"open": 2, "waiting": None}, by=None
    )
    services.rotate_token(client.pk, by=None, keep_old_for=timedelta(hours=1))
    remote.ask(client)
    remote.approved(client)
    remote.fetched(client)
    remote.in_doubt(client)
    return services.change_client(client.pk, by=None, limits={"open": 2})


def delivery(channel: str = "crm", **changes: Any) -> Delivery:
    fields = {
        "event_type": "interrupt.raised",
        "event_id": uuid4(),
        "subject_id": uuid4(),
        "body": {"data": {"id": "1", "tool_name": "issue_refund"}, "type": "x" * 300},
        "next_attempt_at": DbNow(),
        "give_up_at": db_now_plus(timedelta(days=3)),
        **changes,
    }
    return Delivery.objects.create(channel=f"webhook:{channel}", **fields)


def trouble() -> Delivery:
    """Return a delivery that failed, among others in every state."""
    about = refund().pk
    delivery(next_attempt_at=db_now_plus(timedelta(hours=-2)), subject_id=about)
    delivery(lease_token="x", next_attempt_at=db_now_plus(timedelta(seconds=60)))
    delivery(next_attempt_at=db_now_plus(timedelta(hours=1)), subject_id=about)
    over: dict[str, Any] = {"next_attempt_at": None, "subject_id": about}
    delivery("ops", status="delivered", last_status=204, delivered_at=DbNow(), **over)
    delivery("ops", status="given_up", attempts=22, last_status=410, **over)
    DeliveryChannel.objects.create(
        name="webhook:ops", failures=7, rests_until=db_now_plus(timedelta(minutes=4))
    )
    delivery("ops", event_type="turn.needs_attention", attempts=6)
    return delivery(
        attempts=3,
        last_status=503,
        last_error="The answer was 503 Service Unavailable.",
        next_attempt_at=db_now_plus(timedelta(minutes=20)),
        subject_id=about,
    )


def clients(page: Page) -> None:
    billing()
    services.ensure_client("nightly-import")
    gone = services.ensure_client("retired")
    services.revoke_client(gone.pk, by=None)
    page.goto(f"{CLIENTS}?view=all")


def one_client(page: Page) -> None:
    page.goto(url(billing(), model="agentclient"))


def faulty_rotation(page: Page) -> None:
    one_client(page)
    page.click("text=Make a new token")
    page.wait_for_selector("#faults")


def first_token(page: Page) -> None:
    page.goto(url(services.ensure_client("nightly"), model="agentclient"))


def revoked(page: Page) -> None:
    client = billing()
    services.revoke_client(client.pk, by=None)
    page.goto(url(client, model="agentclient"))


def adding(page: Page) -> None:
    ReviewQueue.objects.create(slug="refunds", title="Refunds over 100")
    page.goto(f"{CLIENTS}add/")


def faulty_adding(page: Page) -> None:
    adding(page)
    page.fill("#id_open", "0")
    page.click("text=Make it and show its token")
    page.wait_for_selector("#faults")


def token(page: Page) -> None:
    page.goto(f"{CLIENTS}add/")
    page.fill("#id_name", "billing")
    page.click("text=Make it and show its token")
    page.wait_for_selector("#token")


def limits(page: Page) -> None:
    page.goto(url(billing(), "limits", "agentclient"))


def revoking(page: Page) -> None:
    page.goto(url(billing(), "revoke", "agentclient"))


def owed(page: Page) -> None:
    trouble()
    page.goto(DELIVERIES)


def every_delivery(page: Page) -> None:
    trouble()
    page.goto(f"{DELIVERIES}?view=all")


def one_delivery(page: Page) -> None:
    page.goto(url(trouble(), model="delivery"))


def resting(page: Page) -> None:
    trouble()
    page.goto(url(Delivery.objects.get(attempts=6), model="delivery"))


def faulty_reason(page: Page) -> None:
    one_delivery(page)
    page.click("button:has-text('Give up')")
    page.wait_for_selector("#faults")


PAGES: dict[str, Callable[[Page], None]] = {
    "clients": clients,
    "client": one_client,
    "client, faulty": faulty_rotation,
    "client without a token": first_token,
    "client, revoked": revoked,
    "new client": adding,
    "new client, faulty": faulty_adding,
    "token": token,
    "limits": limits,
    "revoke": revoking,
    "deliveries": owed,
    "all deliveries": every_delivery,
    "delivery": one_delivery,
    "delivery to a dead endpoint": resting,
    "delivery, faulty": faulty_reason,
}


@pytest.mark.parametrize("show", PAGES.values(), ids=PAGES)
def test_nothing_serious(
    open_as: OpenAs, boss: User, show: Callable[[Page], None]
) -> None:
    page = open_as(boss)
    show(page)
    assert_nothing_serious(page)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_can_be_read_under_unfold(
    open_as: OpenAs, boss: User, unfold: str, scheme: str
) -> None:
    client, row = billing(), trouble()
    page = open_as(boss, base=unfold, color_scheme=scheme)
    for place in (
        CLIENTS,
        f"{CLIENTS}add/",
        url(client, model="agentclient"),
        url(client, "revoke", "agentclient"),
        DELIVERIES,
        url(row, model="delivery"),
    ):
        page.goto(place)
        page.wait_for_selector(
            "html.dark" if scheme == "dark" else "html:not(.dark)", state="attached"
        )
        page.evaluate(AXE.read_text(encoding="utf-8"))
        result = page.evaluate("axe.run('.desk', {resultTypes: ['violations']})")
        found = [
            (one["id"], [node["html"][:160] for node in one["nodes"]])
            for one in result["violations"]
            if one["impact"] in SERIOUS
        ]
        assert found == [], place


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no scripts"])
def test_a_client_is_made_renewed_and_revoked(
    open_as: OpenAs, boss: User, scripts: bool
) -> None:
    page = open_as(boss, CLIENTS, java_script_enabled=scripts)
    page.click("text=New agent client")
    page.fill("#id_name", "billing")
    page.fill("#id_open", "20")
    page.click("text=Make it and show its token")
    first = page.input_value("#token")
    copies = page.locator("[data-desk-copy]").is_visible()
    page.click("text=I have kept it")
    page.check("text=for an hour")
    page.click("text=Make a new token")
    second = page.input_value("#token")
    page.click("text=I have kept it")
    good = [services.authenticate(one) is not None for one in (first, second)]
    page.click("text=Revoke…")
    page.click("text=Revoke this client")
    page.wait_for_selector("text=The client was revoked.")

    assert copies is scripts
    assert good == [True, True]
    assert services.authenticate(second) is None
    client = AgentClient.objects.get()
    assert client.limits == {"open": 20}
    assert client.revoked_at is not None


def test_a_token_is_copied_and_gone_with_the_page(open_as: OpenAs, boss: User) -> None:
    page = open_as(boss, permissions=["clipboard-read", "clipboard-write"])
    token(page)
    shown = page.input_value("#token")
    page.click("[data-desk-copy]")
    expect(page.locator("[data-desk-said]")).to_have_text("Copied")
    copied = page.evaluate("navigator.clipboard.readText()")

    page.reload()  # sends the form once more, and the name is taken
    again = page.content()
    page.click("a:has-text('Agent clients')")
    page.wait_for_selector("text=billing")
    with pytest.raises(Error, match="ERR_CACHE_MISS"):  # the browser kept nothing
        page.go_back()

    assert copied == shown
    assert shown not in again
    assert "There is a client of this name." in again
    assert services.authenticate(shown) is not None


def test_it_is_done_by_keys(open_as: OpenAs, boss: User) -> None:
    client = billing()
    page = open_as(boss, CLIENTS)
    page.keyboard.press("j")
    with page.expect_navigation():
        page.keyboard.press("Enter")
    page.wait_for_url(f"**{url(client, model='agentclient')}")
    with page.expect_navigation():
        page.keyboard.press("e")
    page.focus("#id_waiting")
    page.keyboard.type("3")
    with page.expect_navigation():
        page.keyboard.press("Enter")
    page.wait_for_selector("text=The client was changed.")
    with page.expect_navigation():
        page.keyboard.press("u")

    assert AgentClient.objects.get().limits == {"open": 2, "waiting": 3}
    assert page.url.endswith(CLIENTS)


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no scripts"])
def test_a_delivery_is_given_up_on_a_phone(
    open_as: OpenAs, boss: User, scripts: bool
) -> None:
    row = trouble()
    page = open_as(boss, DELIVERIES, viewport=PHONE, java_script_enabled=scripts)
    page.locator(f"a.desk-tool[href*='{row.pk}']").click()
    page.fill("#reason", "The shop closed.")
    page.click("button:has-text('Give up')")
    page.wait_for_selector("text=It was given up; no attempt follows.")

    row.refresh_from_db()
    assert (row.status, row.last_error) == (
        "given_up",
        "Given up by boss: The shop closed.",
    )


def test_several_are_ticked_by_keys_and_refusals_are_told(
    open_as: OpenAs, boss: User
) -> None:
    delivery("gone")
    page = open_as(boss, DELIVERIES)
    page.keyboard.press("j")
    page.keyboard.press("x")
    page.click("#again button")

    # The site of these tests has no endpoint at all.
    page.wait_for_selector("text=1 delivery is not sent again:")
    assert page.url.endswith(DELIVERIES)


def test_text_does_nothing(open_as: OpenAs, boss: User) -> None:
    texts = [one.replace("\x00", "") for one in TEXTS.values() if one != "\ud800"]
    made = [
        delivery(text[:56], event_type=text[:64], body={text: text}, last_error=text)
        for text in texts
    ]
    named = [services.ensure_client(text[:100]) for text in texts]
    page = open_as(boss, DELIVERIES)
    harmless(page)
    page.goto(CLIENTS)
    harmless(page)
    for places in zip(made, named, strict=True):
        for row, model in zip(places, ("delivery", "agentclient"), strict=True):
            page.goto(url(row, model=model))
            harmless(page)
