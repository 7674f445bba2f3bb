"""Requests of agents that run elsewhere, at every door of the desk."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from hitl_approvals import services
from hitl_approvals.services import failover
from tests.admin.html_forms import as_sent, forms_of
from tests.admin.scenes import LIST, confirm, edit, send, url
from tests.support import remote
from tests.support.remote import ARGS, SCHEMA, fresh

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def settling(settler: User, login: Any) -> Client:
    found: Client = login(settler)
    return found


def settle(client: Client, row: Any, name: str, **changes: str) -> Any:
    html = client.get(url(row)).content.decode()
    [form] = [one for one in forms_of(html) if one.fields.get("answer") == name]
    return client.post(form.action, as_sent({**form.fields, **changes}))


def test_it_is_listed_and_shown_with_what_the_agent_sent(desk: Client) -> None:
    row = remote.ask(
        context={"asked": "Refund order 7", "agent_reason": "It came broken."},
        tool_description="Pays money back.",
        why="above the limit",
        queue="nowhere",
        redact=["order"],
    )

    listed = desk.get(LIST).content.decode()
    page = desk.get(url(row)).content.decode()

    assert "refund" in listed
    for shown in (
        "billing",
        "Refund order 7",
        "It came broken.",
        "Pays money back",
        "above the limit",
        "Another program runs it",
        "nowhere",
        "120",
    ):
        assert shown in page, shown
    assert "See the whole turn" not in page


def test_it_is_approved(desk: Client) -> None:
    row = remote.ask()

    response = send(desk, row, "approve")

    assert response.status_code == 302
    assert (fresh(row).status, fresh(row).decided_by_label) == ("decided", "tom.weber")
    note = desk.get(response["Location"]).content.decode()
    assert "the agent has not fetched it yet" in note
    remote.fetch(row)
    page = desk.get(url(row)).content.decode()
    assert "Fetched by" in page
    assert "client billing" in page
    assert "did not say yet what came of it" in page
    remote.report(row, result={"id": 9})
    assert "ran once, resolved" in desk.get(url(row)).content.decode()


def test_its_agent_reads_why_an_untouched_edit_was_approved(desk: Client) -> None:
    row = remote.ask()

    step_two = edit(desk, row)
    confirm(desk, step_two, reason="Looks right to me.")

    page = step_two.content.decode()
    assert "this is recorded as an approval" in page
    assert "if you like; the agent reads it" in page
    found = remote.fetch(row)
    assert (found.decision, found.reason) == ("approve", "Looks right to me.")


def test_it_is_rejected(desk: Client) -> None:
    row = remote.ask()

    send(desk, row, "reject", reason="not this one")

    assert (fresh(row).decision, fresh(row).reason) == ("reject", "not this one")
    assert remote.fetch(row).reason == "not this one"


def test_it_is_edited_in_fields_that_its_own_schema_gives(desk: Client) -> None:
    row = remote.ask(args_schema=SCHEMA)

    confirm(desk, edit(desk, row, amount="5"))

    assert fresh(row).decision == "edit"
    assert remote.fetch(row).args == {**ARGS, "amount": 5}


def test_without_a_schema_its_edit_page_opens_too(desk: Client) -> None:
    row = remote.ask()

    assert desk.get(url(row, "edit")).status_code == 200


def test_a_question_is_answered(desk: Client) -> None:
    row = remote.ask_question(
        payload="Which account?", response_schema={"type": "string"}
    )
    page = desk.get(url(row)).content.decode()
    assert "Which account?" in page
    assert "Another program runs it" not in page

    [form] = [one for one in forms_of(page) if "/decide/" in one.action]
    [field] = [name for name in form.fields if name.startswith("f")]
    desk.post(
        form.action, as_sent({**form.fields, field: "savings", "decision": "respond"})
    )

    assert remote.fetch(row).value == "savings"


def test_a_doubt_says_who_has_it_and_offers_what_can_be_done(settling: Client) -> None:
    row = remote.in_doubt(check_hint="Look into the ledger.")
    remote.report(row, "succeeded", result={"id": "re_9"})

    page = settling.get(url(row)).content.decode()

    assert "Another program fetched the approval at" in page
    assert "nothing here can run it again" in page
    assert "Look into the ledger." in page
    assert "timed out" in page
    assert "re_9" in page
    [again] = [one for one in forms_of(page) if one.fields.get("answer") == "run_again"]
    sent = {**again.fields, "note": "looked", "looked": "on"}
    refused = settling.post(again.action, as_sent(sent)).content.decode()
    assert "A remote agent made this call by itself" in refused
    assert fresh(row).status == "in_doubt"


@pytest.mark.parametrize(
    ("answer", "status"), [("happened", "resolved"), ("give_up", "cancelled")]
)
def test_a_doubt_is_settled(settling: Client, answer: str, status: str) -> None:
    row = remote.in_doubt()

    settle(settling, row, answer, result="done", note="found it")

    assert fresh(row).status == status


@pytest.mark.parametrize(
    ("situation", "words"),
    [
        ("withdrawn", "withdrawn; it did not run"),
        ("lapsed", "the agent did not fetch it in time; it did not run"),
        ("refused", "agent told; it did not run"),
    ],
)
def test_its_end_is_told(desk: Client, situation: str, words: str) -> None:
    row = remote.approved() if situation != "refused" else remote.ask()
    if situation == "withdrawn":
        remote.withdraw(row, reason="changed my mind")
    elif situation == "lapsed":
        remote.pass_time(row, "execute_by")
        services.sweep()
    else:
        send(desk, row, "reject", reason="no")
        remote.fetch(row)

    page = desk.get(url(row)).content.decode()

    assert words in page
    assert desk.get(url(row, "history")).status_code == 200
    assert desk.get(LIST + "?view=recent").status_code == 200


def test_a_doubt_after_a_failover_says_that_nobody_knows_who_has_it(
    settling: Client,
) -> None:
    row = remote.approved()
    failover.doubt_all()

    page = settling.get(url(row)).content.decode()

    assert "who fetched this is not on record" in page
    assert "Another program fetched the approval at" not in page
    settle(settling, row, "give_up", note="no trace")
    assert fresh(row).status == "cancelled"
