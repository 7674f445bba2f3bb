"""Agent clients in the admin: a token is shown once, and only some people make one."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.admin import AdminSite
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.db import connection
from django.test import Client, override_settings
from django.test.utils import CaptureQueriesContext
from django.urls import path

from hitl_approvals import Approve, services
from hitl_approvals.admin import AgentClientAdmin
from hitl_approvals.models import AgentClient, DbNow, PendingInterrupt, ReviewQueue
from tests.admin.html_forms import as_sent, form_to, forms_of
from tests.admin.scenes import url
from tests.admin.test_hostile import NASTY, assert_harmless
from tests.support import remote

pytestmark = pytest.mark.django_db

CLIENTS = "/admin/hitl_approvals/agentclient/"
TOKEN = re.compile(r'id="token"[^>]*>(hac_[^<]+)<')

own_site = AdminSite(name="backoffice")
own_site.register(AgentClient, AgentClientAdmin)
urlpatterns = [path("backoffice/", own_site.urls)]


@pytest.fixture
def transactional_db(db: None) -> None:
    """Nothing here races: a transaction that is rolled back will do."""


@pytest.fixture
def operator(person: Callable[..., User]) -> User:
    return person("olga", "administer_pendinginterrupt")


@pytest.fixture
def office(operator: User, login: Callable[[User], Client]) -> Client:
    """The browser of somebody who may administer."""
    return login(operator)


def make(office: Client, name: str = "billing", **changes: Any) -> Any:
    form = form_to(office.get(f"{CLIENTS}add/"), "/add/")
    return office.post(form.action, {**form.fields, "name": name, **changes})


def token_of(response: Any) -> str:
    """Return the token that a page shows."""
    assert response.status_code == 200
    found = TOKEN.findall(response.content.decode())
    assert len(found) == 1, "the page shows no token, or more than one"
    return str(found[0])


def address(client: AgentClient, page: str = "change") -> str:
    return url(client, page, "agentclient")


def rotate(office: Client, client: AgentClient, keep: str = "0", **changes: str) -> Any:
    form = form_to(office.get(address(client)), "/rotate/")
    return office.post(form.action, {**form.fields, "keep": keep, **changes})


def authenticates(token: str) -> bool:
    return services.authenticate(token) is not None


def everything_stored() -> str:
    """Return every text of every table, as it is stored."""
    texts = []
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f"SELECT * FROM {connection.ops.quote_name(table)}")
            texts += [str(row) for row in cursor.fetchall()]
    texts += [str(one.get_decoded()) for one in Session.objects.all()]
    return "\n".join(texts)


def test_a_client_is_made_and_its_token_calls_the_api(office: Client) -> None:
    ReviewQueue.objects.create(slug="refunds", title="Refunds")
    ReviewQueue.objects.create(slug="mail")

    response = make(
        office, queue="refunds", queues=["mail", "refunds"], open="5", waiting_none="on"
    )

    token = token_of(response)
    client = AgentClient.objects.get()
    assert (client.name, client.queue_id) == ("billing", "refunds")
    assert client.limits == {"open": 5, "waiting": None, "queues": ["mail"]}
    assert client.token_digest == hashlib.sha256(token.encode()).hexdigest()
    assert services.authenticate(token) == client
    called = Client().get(
        "/api/interrupts/", headers={"authorization": f"Bearer {token}"}
    )
    assert called.status_code == 200


def test_a_token_is_shown_once_and_stored_nowhere(
    office: Client, caplog: pytest.LogCaptureFixture
) -> None:
    made = make(office)
    first = token_of(made)
    client = AgentClient.objects.get()
    renewed = rotate(office, client, "24")
    second = token_of(renewed)

    assert first != second
    for response in (made, renewed):
        assert "no-store" in response["Cache-Control"]
        assert response.cookies.keys() <= {"csrftoken"}
    later = [
        office.get(place)
        for place in (
            CLIENTS,
            f"{CLIENTS}add/",
            address(client),
            address(client, "history"),
            address(client, "rotate"),
            "/admin/",
        )
    ]
    pages = [one.content.decode() for one in later]
    stored = everything_stored()
    for token in (first, second):
        body = token[10:]
        assert body not in stored
        assert body not in caplog.text
        assert not any(body in page for page in pages)
        assert body not in repr(made.context) + repr(renewed.context)
        assert body not in str(office.session.items()) + str(office.cookies)
    assert second[:10] in pages[0]


def test_who_made_and_changed_it_is_on_record(office: Client, operator: User) -> None:
    make(office)
    client = AgentClient.objects.get()
    rotate(office, client)
    form = form_to(office.get(address(client, "limits")), "/limits/")
    office.post(form.action, {**form.fields, "open": "7"})
    office.post(address(client, "revoke"))

    entries = LogEntry.objects.order_by("pk")

    assert {one.user_id for one in entries} == {operator.pk}
    assert {one.object_id for one in entries} == {str(client.pk)}
    assert [one.get_change_message() for one in entries] == [
        "The client was made.",
        "It was given a new token.",
        "Changed: Most open requests",
        "The client was revoked.",
    ]
    history = office.get(address(client, "history")).content.decode()
    assert "It was given a new token." in history


@pytest.mark.parametrize(("keep", "hours"), [("0", 0), ("1", 1), ("24", 24)])
def test_the_old_token_ends_when_the_page_says(
    office: Client, keep: str, hours: int
) -> None:
    old = token_of(make(office))
    client = AgentClient.objects.get()

    response = rotate(office, client, keep)

    new = token_of(response)
    page = response.content.decode()
    client.refresh_from_db()
    assert authenticates(new)
    assert authenticates(old) is bool(hours)
    if not hours:
        assert "The old token is not good any more." in page
        assert client.previous_until is None
        return
    assert "The old token is good until" in page
    assert "old token good until" in office.get(address(client)).content.decode()
    now = AgentClient.objects.annotate(now=DbNow()).get().now
    assert client.previous_until is not None
    left = client.previous_until - now
    assert timedelta(hours=hours, minutes=-2) < left <= timedelta(hours=hours)


def test_how_long_the_old_token_is_good_has_to_be_said(office: Client) -> None:
    old = token_of(make(office))
    client = AgentClient.objects.get()
    form = form_to(office.get(address(client)), "/rotate/")

    answers = [
        office.post(form.action, form.fields),
        office.post(form.action, {**form.fields, "keep": "1000"}),
    ]

    assert "keep" not in form.fields
    for response in answers:
        page = response.content.decode()
        assert "Say for how long the old token is good." in page
        assert "<title>Error: Agent client billing" in page
        assert 'id="token"' not in page
    assert authenticates(old)


def test_a_second_click_makes_no_second_token(office: Client) -> None:
    old = token_of(make(office))
    client = AgentClient.objects.get()
    form = form_to(office.get(address(client)), "/rotate/")
    fields = {**form.fields, "keep": "1"}

    new = token_of(office.post(form.action, fields))
    again = office.post(form.action, fields)

    assert again.status_code == 409
    assert "Nothing was changed." in again.content.decode()
    assert 'id="token"' not in again.content.decode()
    # A second one would have ended the first, which the agent may have by now.
    assert authenticates(old)
    assert authenticates(new)


def test_the_same_name_twice_is_one_client(office: Client) -> None:
    token = token_of(make(office))
    again = make(office)

    page = again.content.decode()
    assert AgentClient.objects.count() == 1
    assert "There is a client of this name." in page
    assert 'value="billing"' in page
    assert 'aria-invalid="true"' in page
    assert 'id="token"' not in page
    assert authenticates(token)


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"name": " "}, "Name: This field is required."),
        ({"name": "n" * 101}, "Name: Ensure this value has at most 100 characters"),
        ({"name": "a\x00b"}, "Name: Null characters are not allowed."),
        ({"queue": "nowhere"}, "Queue: Select a valid choice."),
        ({"queues": ["nowhere"]}, "Other queues that it may name: Select a valid"),
        ({"open": "0"}, "Most open requests: Ensure this value is greater than"),
        ({"per_minute": "many"}, "Most writes a minute: Enter a whole number."),
        ({"waiting": "9999999"}, "Most calls that wait: Ensure this value is less"),
        ({"open": "3", "open_none": "on"}, "Give a number or tick the box, not both."),
    ],
)
def test_what_does_not_fit_is_said_and_what_was_typed_stays(
    office: Client, changes: dict[str, Any], fault: str
) -> None:
    typed = {"per_minute": "77"} | changes
    response = make(office, **typed)

    page = response.content.decode()
    assert fault in page
    assert "<title>Error: New agent client" in page
    assert f'value="{typed["per_minute"]}"' in page
    assert AgentClient.objects.count() == 0
    ids = re.findall(r'\sid="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    for attribute in ("aria-labelledby", "aria-describedby", "for"):
        for value in re.findall(rf'\s{attribute}="([^"]+)"', page):
            assert set(value.split()) <= set(ids), (attribute, value)


def test_queue_and_limits_are_changed(office: Client) -> None:
    ReviewQueue.objects.create(slug="mail")
    make(office, open="5", per_minute_none="on", queues=["mail"])
    client = AgentClient.objects.get()
    page = office.get(address(client, "limits"))
    form = form_to(page, "/limits/")

    untouched = office.post(form.action, {**form.fields, "queues": ["mail"]})
    client.refresh_from_db()
    kept = client.limits
    changed = office.post(form.action, {"queue": "mail", "open": "", "waiting": "2"})

    assert 'name="name"' not in page.content.decode()
    assert untouched.status_code == changed.status_code == 302
    assert kept == {"open": 5, "per_minute": None, "queues": ["mail"]}
    client.refresh_from_db()
    assert (client.queue_id, client.limits) == ("mail", {"waiting": 2})
    shown = office.get(address(client)).content.decode()
    assert "as the site has it" in shown


def test_revoking_says_what_stops_and_what_stays(office: Client) -> None:
    token = token_of(make(office))
    client = AgentClient.objects.get()
    waits, fetched = remote.ask(client), remote.fetched(client)

    page = office.get(address(client, "revoke"))
    before = authenticates(token)
    form = form_to(page, "/revoke/")
    response = office.post(form.action, form.fields)
    again = office.post(form.action, form.fields)

    html = page.content.decode()
    for said in ("What stops", "What stays", "This cannot be taken back."):
        assert said in html
    assert re.findall(r"<dt>(.*?)</dt><dd>(\d+)</dd>", html) == [
        ("Wait for a decision", "1"),
        ("Decided, not fetched yet", "0"),
        ("Fetched, no outcome yet", "1"),
        ("In doubt", "0"),
    ]
    assert before
    assert response.status_code == again.status_code == 302
    assert not authenticates(token)
    assert (remote.fresh(waits).status, remote.fresh(fetched).status) == (
        "pending",
        "decided",
    )
    services.decide(waits.pk, Approve(), by=None, via="test")
    shown = office.get(address(client)).content.decode()
    assert "revoked</span>" in shown
    assert "/rotate/" not in shown
    assert "/limits/" not in shown
    assert LogEntry.objects.filter(change_message__contains="revoked").count() == 1


def test_a_revoked_client_is_given_nothing_more(office: Client) -> None:
    make(office)
    client = AgentClient.objects.get()
    services.revoke_client(client.pk, by=None)

    renewed = office.post(address(client, "rotate"), {"keep": "0"})
    changed = office.post(address(client, "limits"), {"queue": "default", "open": "3"})

    assert renewed.status_code == 409
    assert "revoked" in renewed.content.decode()
    assert "revoked" in changed.content.decode()
    client.refresh_from_db()
    assert client.limits == {}


def test_a_client_without_a_token_is_given_its_first(office: Client) -> None:
    client = services.ensure_client("nightly")

    page = office.get(address(client)).content.decode()
    form = form_to(office.get(address(client)), "/rotate/")
    token = token_of(office.post(form.action, form.fields))

    assert "It has no token" in page
    assert authenticates(token)


def test_a_get_changes_nothing(office: Client) -> None:
    token = token_of(make(office))
    client = AgentClient.objects.get()
    with CaptureQueriesContext(connection) as found:
        for place in (
            CLIENTS,
            f"{CLIENTS}add/?name=x&queue=default",
            f"{CLIENTS}?view=all&q=bill",
            *(address(client, page) for page in ("change", "limits", "history")),
            address(client, "revoke"),
            f"{address(client, 'rotate')}?keep=0",
        ):
            assert office.get(place).status_code in (200, 302)
            assert office.head(place).status_code in (200, 302)
    asked = [one["sql"] for one in found]

    assert not [sql for sql in asked if re.match(r"(INSERT|UPDATE|DELETE)", sql)]
    assert authenticates(token)
    assert AgentClient.objects.count() == 1
    assert office.post(address(client), {}).status_code == 405
    assert office.post(CLIENTS, {"action": "delete_selected"}).status_code == 405
    assert office.post(address(client, "delete"), {"post": "y"}).status_code == 403
    assert AgentClient.objects.count() == 1


def test_every_change_asks_for_the_forms_own_token(
    operator: User, login: Callable[..., Client]
) -> None:
    client = services.ensure_client("billing")
    strict = login(operator, enforce_csrf_checks=True)

    answers = [
        strict.post(f"{CLIENTS}add/", {"name": "x", "queue": "default"}),
        strict.post(address(client, "rotate"), {"keep": "0"}),
        strict.post(address(client, "limits"), {"queue": "default"}),
        strict.post(address(client, "revoke")),
    ]

    assert [one.status_code for one in answers] == [403] * 4
    client.refresh_from_db()
    assert (client.token_hint, client.revoked_at) == ("", None)
    assert AgentClient.objects.count() == 1


@pytest.mark.parametrize("who", ["reviewer", "viewer", "settler", "stranger"])
def test_only_those_who_administer_get_in(
    who: str, request: pytest.FixtureRequest, login: Callable[..., Client]
) -> None:
    client = services.ensure_client("billing")
    browser = login(request.getfixturevalue(who))

    assert browser.get(CLIENTS).status_code == 403
    assert "Can administer turns and queues" in browser.get(CLIENTS).content.decode()
    assert browser.get(f"{CLIENTS}add/").status_code == 403
    added = browser.post(f"{CLIENTS}add/", {"name": "x", "queue": "default"})
    assert added.status_code == 403
    for page in ("change", "limits", "revoke"):
        assert browser.get(address(client, page)).status_code == 404
    for page in ("rotate", "limits", "revoke"):
        posted = browser.post(address(client, page), {"keep": "0", "queue": "default"})
        assert posted.status_code == 404
    assert browser.get(address(client, "history")).status_code in (302, 403)
    assert "agentclient" not in browser.get("/admin/").content.decode()
    client.refresh_from_db()
    assert (client.token_hint, client.revoked_at) == ("", None)
    assert AgentClient.objects.count() == 1


def test_those_who_administer_find_it_on_the_front_page(office: Client) -> None:
    page = office.get("/admin/").content.decode()

    assert f'href="{CLIENTS}"' in page
    assert f'href="{CLIENTS}add/"' in page


def test_what_was_typed_survives_an_expired_login() -> None:
    client = services.ensure_client("billing")

    response = Client().post(
        f"{CLIENTS}add/", as_sent({"name": "<b>new</b>", "queue": "default"})
    )
    renewed = Client().post(address(client, "rotate"), {"keep": "0", "seen": ""})

    page = response.content.decode()
    assert response.status_code == renewed.status_code == 403
    assert "You were logged out" in page
    assert "&lt;b&gt;new&lt;/b&gt;" in page
    client.refresh_from_db()
    assert client.token_hint == ""


def test_names_of_clients_and_queues_are_text(office: Client) -> None:
    name = NASTY.replace("\x00", "").replace("\x1b", "")[:100]
    ReviewQueue.objects.create(slug="bad", title="</label><script>alert(1)</script>")
    token_of(made := make(office, name, queue="bad"))
    client = AgentClient.objects.get()
    remote.ask(client, tool_name="refund</code><script>alert(1)</script>")

    pages = [
        made,
        office.get(CLIENTS),
        office.get(CLIENTS, {"q": NASTY}),
        make(office, name),
        *(office.get(address(client, page)) for page in ("change", "limits", "revoke")),
    ]

    assert client.name == name.strip()
    for response in pages:
        assert response.status_code == 200
        assert_harmless(response.content.decode())


def test_the_list_says_who_is_busy_and_who_is_done(office: Client) -> None:
    make(office, open="2")
    busy = AgentClient.objects.get()
    remote.ask(busy)
    remote.ask(busy)
    gone = services.ensure_client("retired")
    remote.ask(gone)
    services.revoke_client(gone.pk, by=None)
    services.ensure_client("nightly")

    active = office.get(CLIENTS).content.decode()
    revoked = office.get(CLIENTS, {"view": "revoked"}).content.decode()

    assert "2 of at most 2" in active
    assert "no token" in active
    assert "retired" not in active
    assert "retired" in revoked
    assert "billing" not in revoked
    assert re.findall(r'desk-count">(\d+)<', active) == ["2", "1", "3"]
    assert "billing" in office.get(CLIENTS, {"q": "BILL"}).content.decode()
    assert "Nothing matches" in office.get(CLIENTS, {"q": "x\x00"}).content.decode()


def test_the_list_asks_a_fixed_number_of_queries(office: Client) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as found:
            assert office.get(f"{CLIENTS}?view=all").status_code == 200
        return len(found)

    ReviewQueue.objects.create(slug="mail")
    make(office, queues=["mail"])
    few = queries()
    for number in range(60):
        client = services.ensure_client(f"client-{number}")
        AgentClient.objects.filter(pk=client.pk).update(limits={"queues": ["mail"]})

    assert queries() == few
    first = office.get(f"{CLIENTS}?view=all")
    second = office.get(f"{CLIENTS}{first.context['next_query']}")
    assert [len(one.context["rows"]) for one in (first, second)] == [50, 11]


def test_many_open_requests_are_counted_to_a_cap(
    office: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = services.ensure_client("billing")
    for _ in range(3):
        remote.ask(client)
    monkeypatch.setattr("hitl_approvals.admin.paging.CAP", 2)

    assert "2+" in office.get(CLIENTS).content.decode()


def test_the_page_of_a_client_lists_its_last_requests(office: Client) -> None:
    client = services.ensure_client("billing")
    rows = [remote.ask(client) for _ in range(12)]

    page = office.get(address(client)).content.decode()

    shown = [row for row in rows if url(row) in page]
    assert shown == rows[2:]
    assert PendingInterrupt.objects.count() == 12


@override_settings(ROOT_URLCONF=__name__)
def test_a_site_of_ones_own_with_only_the_clients(
    operator: User, login: Callable[..., Client]
) -> None:
    office = login(operator)
    base = "/backoffice/hitl_approvals/agentclient/"
    form = form_to(office.get(f"{base}add/"), "/add/")
    made = office.post(form.action, {**form.fields, "name": "billing"})
    client = AgentClient.objects.get()

    pages = [
        made,
        office.get(base),
        office.get(f"{base}{client.pk}/change/"),
        office.get(f"{base}{client.pk}/limits/"),
        office.get(f"{base}{client.pk}/revoke/"),
    ]

    token_of(made)
    for response in pages:
        assert response.status_code == 200
        html = response.content.decode()
        assert 'href="/admin/' not in html
        assert all(
            one.action.startswith("/backoffice/")
            for one in forms_of(html)
            if one.method == "post"
        )


def test_the_script_that_copies_is_not_needed() -> None:
    template = Path(__file__).parents[2] / (
        "hitl_approvals/templates/admin/hitl_approvals/client_token.html"
    )
    (button,) = re.findall(r"<button[^>]*>", template.read_text())

    assert "hidden" in button
    assert 'type="button"' in button
