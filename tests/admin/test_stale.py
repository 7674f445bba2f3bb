from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from hitl_approvals import services
from hitl_approvals.decisions import Approve, Reject
from hitl_approvals.engine import run_turn
from hitl_approvals.models import PendingInterrupt
from tests.admin.html_forms import HtmlForm, as_sent, form_to
from tests.admin.scenes import ask, expire, refund, url

pytestmark = pytest.mark.django_db(transaction=True)


def opened(client: Client, row: PendingInterrupt) -> HtmlForm:
    return form_to(client.get(url(row)), "/decide/")


def press(client: Client, form: HtmlForm, decision: str, **changes: str) -> Any:
    return client.post(
        form.action, as_sent({**form.fields, "decision": decision, **changes})
    )


def test_the_loser_is_told_who_decided_what_when_and_why(
    desk: Client, other_reviewer: User
) -> None:
    row, following = refund(), refund(order_id="A-2")
    form = opened(desk, row)
    services.decide(row.pk, Reject("Not <back> yet"), by=other_reviewer, via="api")
    run_turn(row.turn_id)

    response = press(desk, form, "approve")

    page = response.content.decode()
    assert response.status_code == 409
    assert "priya.nair decided this before you" in page
    assert "Your approval was not recorded, and nothing ran because of it." in page
    assert "over the API" in page
    assert "Not &lt;back&gt; yet" in page
    assert "Agent told; it did not run, resolved" in page
    assert "Talk to priya.nair" in page
    assert f'href="{url(following)}"' in page


def test_what_the_loser_had_typed_is_kept(desk: Client, other_reviewer: User) -> None:
    row = refund()
    form = opened(desk, row)
    services.decide(row.pk, Approve(), by=other_reviewer, via="admin")

    response = press(desk, form, "reject", reason="Three careful\nlines <b>")

    page = response.content.decode()
    assert "Your rejection was not recorded." in page
    assert "Three careful\nlines &lt;b&gt;" in page


def test_a_lost_answer_is_kept(desk: Client, other_reviewer: User) -> None:
    row = ask("Which?", {"type": "string"})
    form = opened(desk, row)
    services.decide(
        row.pk, {"type": "respond", "value": "other"}, by=other_reviewer, via="admin"
    )

    response = press(desk, form, "respond", f0="my answer")

    page = response.content.decode()
    assert response.status_code == 409
    assert "the agent did not get it" in page
    assert "my answer" in page


def test_time_that_is_up_is_said(desk: Client) -> None:
    row = refund()
    form = opened(desk, row)
    expire(row)

    response = press(desk, form, "approve")
    page = desk.get(url(row)).content.decode()

    assert response.status_code == 409
    assert "The time to decide this has passed" in response.content.decode()
    assert "The time to decide this has passed" in page
    assert 'id="decide"' not in page


def test_a_withdrawn_row_is_said(desk: Client, boss: User) -> None:
    row = refund()
    form = opened(desk, row)
    services.cancel(row.turn_id, by=boss, via="admin")

    response = press(desk, form, "approve")

    assert response.status_code == 409
    assert "This was withdrawn" in response.content.decode()


@pytest.mark.breaks_invariants
def test_a_row_that_changed_meanwhile_has_to_be_looked_at_again(desk: Client) -> None:
    row = refund()
    form = opened(desk, row)
    PendingInterrupt.objects.filter(pk=row.pk).update(revision=3, generation=2)

    response = press(desk, form, "approve")

    page = response.content.decode()
    assert response.status_code == 409
    assert "This changed after you opened it" in page
    assert "Look at it again as it stands." in page
    row.refresh_from_db()
    assert row.status == "pending"
    assert "Back again" in desk.get(url(row)).content.decode()


def test_a_decided_row_shows_what_became_of_it_and_no_panel(
    desk: Client, other_reviewer: User
) -> None:
    row = refund()
    services.decide(row.pk, Approve(), by=other_reviewer, via="admin")
    run_turn(row.turn_id)

    page = desk.get(url(row)).content.decode()

    assert 'id="decide"' not in page
    assert "Approved" in page
    assert "by priya.nair, in the admin" in page
    assert "ran once, resolved" in page


def test_what_was_edited_is_shown_on_the_decided_row(
    desk: Client, other_reviewer: User
) -> None:
    row = refund()
    edited = {**services_args(row), "amount": "1.00"}
    services.decide(
        row.pk, {"type": "edit", "args": edited}, by=other_reviewer, via="admin"
    )

    page = desk.get(url(row)).content.decode()

    assert "Approved with an edit" in page
    assert "Approved to run with" in page
    assert '<ins><bdi class="desk-val">1.00</bdi></ins>' in page or "1.00</ins>" in page
    assert "tok_8d7e6f5a4b3c" not in page


def services_args(row: PendingInterrupt) -> dict[str, Any]:
    from hitl_approvals import canonical

    found: Any = canonical.loads(row.args_text or "")
    return found
