from __future__ import annotations

from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client

from hitl_approvals.engine import run_turn
from hitl_approvals.models import InterruptEvent, PendingInterrupt
from tests.admin import agents_for_admin
from tests.admin.html_forms import as_sent, form_to
from tests.admin.scenes import LIST, call, refund, send, url

pytestmark = pytest.mark.django_db(transaction=True)


def fresh(row: PendingInterrupt) -> PendingInterrupt:
    return PendingInterrupt.objects.get(pk=row.pk)


def test_approving_records_the_decision_and_the_call_runs_once(
    desk: Client, reviewer: Any
) -> None:
    row = refund()

    response = send(desk, row, "approve")

    assert response.status_code == 302
    decided = fresh(row)
    assert (decided.status, decided.decision) == ("decided", "approve")
    assert (decided.decided_by, decided.decided_via) == (reviewer, "admin")
    run_turn(row.turn_id)
    assert [name for name, _ in agents_for_admin.RAN] == ["desk_refund"]
    assert fresh(row).status == "resolved"


def test_approving_leads_to_the_next_open_row_which_says_what_was_done(
    desk: Client,
) -> None:
    first, second = refund(), refund(order_id="A-2000")

    response = send(desk, first, "approve")

    assert response.url == f"{url(second)}?done={first.pk}"
    page = desk.get(response.url).content.decode()
    assert "You approved" in page
    assert "This is the next one." in page
    assert f'href="{url(first)}"' in page
    assert "the turn is about to go on" in page


def test_the_last_decision_leads_back_to_the_list(desk: Client) -> None:
    row = refund()

    response = send(desk, row, "approve")

    assert response.url == f"{LIST}?done={row.pk}"
    run_turn(row.turn_id)
    page = desk.get(response.url).content.decode()
    assert "ran once, resolved" in page


def test_rejecting_keeps_the_reason_and_nothing_runs(desk: Client) -> None:
    row = refund()

    response = send(desk, row, "reject", reason="Not returned yet.\nAsk again.")

    assert response.status_code == 302
    decided = fresh(row)
    assert decided.decision == "reject"
    assert decided.reason == "Not returned yet.\nAsk again."
    run_turn(row.turn_id)
    assert agents_for_admin.RAN == []


@pytest.mark.parametrize("reason", ["", "   ", "\n\t", "\u200b"])
def test_rejecting_without_a_reason_stores_nothing_and_says_so(
    desk: Client, reason: str
) -> None:
    row = refund()

    response = send(desk, row, "reject", reason=reason)

    page = response.content.decode()
    assert response.status_code == 200
    assert 'role="alert"' in page
    assert "<title>Error:" in page.replace("\n", "")
    assert 'aria-describedby="e_reason"' in page
    assert fresh(row).status == "pending"


def test_a_reason_that_no_column_can_hold_is_refused_and_kept(desk: Client) -> None:
    row = refund()

    response = send(desk, row, "reject", reason="bad \x00 reason")

    assert "without NUL" in response.content.decode()
    assert fresh(row).status == "pending"


def test_a_second_press_gets_the_same_answer_and_writes_nothing(desk: Client) -> None:
    row = refund()
    form = form_to(desk.get(url(row)), "/decide/")
    sent = as_sent({**form.fields, "decision": "approve"})

    first, second = desk.post(form.action, sent), desk.post(form.action, sent)

    assert (first.status_code, second.status_code) == (302, 302)
    assert first.url == second.url
    approved = InterruptEvent.objects.filter(subject_id=row.pk, type="approved")
    assert approved.count() == 1
    assert LogEntry.objects.count() == 1


def test_two_pages_of_one_person_do_not_decide_twice(desk: Client) -> None:
    row = refund()
    one = form_to(desk.get(url(row)), "/decide/")
    two = form_to(desk.get(url(row)), "/decide/")
    desk.post(one.action, as_sent({**one.fields, "decision": "approve"}))

    response = desk.post(two.action, as_sent({**two.fields, "decision": "approve"}))

    assert response.status_code == 409
    assert "You decided this already" in response.content.decode()


def test_one_key_cannot_stand_for_two_decisions(desk: Client) -> None:
    row = refund()
    form = form_to(desk.get(url(row)), "/decide/")
    desk.post(form.action, as_sent({**form.fields, "decision": "approve"}))

    response = desk.post(
        form.action, as_sent({**form.fields, "decision": "reject", "reason": "no"})
    )

    assert response.status_code == 409
    assert fresh(row).decision == "approve"


@pytest.mark.parametrize("missing", ["revision", "key"])
def test_a_form_that_came_without_its_guards_decides_nothing(
    desk: Client, missing: str
) -> None:
    row = refund()
    form = form_to(desk.get(url(row)), "/decide/")
    fields = {**form.fields, "decision": "approve"}
    del fields[missing]

    response = desk.post(form.action, fields)

    assert response.status_code == 409
    assert fresh(row).status == "pending"


@pytest.mark.parametrize("decision", ["", "maybe", "edit", "expire"])
def test_an_unknown_decision_is_no_decision(desk: Client, decision: str) -> None:
    row = refund()

    response = send(desk, row, decision)

    assert response.status_code == 200
    assert 'role="alert"' in response.content.decode()
    assert fresh(row).status == "pending"


def test_posting_needs_a_token_of_the_site(reviewer: Any, login: Any) -> None:
    row = refund()
    client = login(reviewer, enforce_csrf_checks=True)
    form = form_to(client.get(url(row)), "/decide/")
    sent = as_sent({**form.fields, "decision": "approve"})
    token = sent.pop("csrfmiddlewaretoken")

    refused = client.post(form.action, sent)

    assert refused.status_code == 403
    assert fresh(row).status == "pending"
    taken = client.post(form.action, {**sent, "csrfmiddlewaretoken": token})
    assert taken.status_code == 302


@pytest.mark.parametrize("method", ["get", "head"])
@pytest.mark.parametrize("page", ["change", "decide", "edit", "settle"])
def test_looking_changes_nothing(desk: Client, method: str, page: str) -> None:
    row = refund()
    before = PendingInterrupt.objects.values().get(pk=row.pk)

    query = "?decision=approve&revision=1&key=x&step=approve&answer=give_up"
    response = getattr(desk, method)(url(row, page) + query)

    assert response.status_code in (200, 302)
    assert PendingInterrupt.objects.values().get(pk=row.pk) == before
    assert InterruptEvent.objects.filter(subject_id=row.pk).count() == 1


def test_the_page_itself_takes_no_post(desk: Client) -> None:
    row = refund()

    assert desk.post(url(row), {"decision": "approve"}).status_code == 405
    assert desk.post(LIST, {"action": "delete_selected"}).status_code == 405


def test_a_decision_is_written_to_djangos_log(desk: Client, reviewer: Any) -> None:
    row = refund()

    send(desk, row, "reject", reason="no")

    entry = LogEntry.objects.get()
    assert (entry.user, entry.object_id) == (reviewer, str(row.pk))
    assert entry.change_message == "Rejected: desk_refund"


def test_only_the_offered_decisions_have_a_button(boss: Any, login: Any) -> None:
    row = call("desk_careful", {"what": "vault"})
    client = login(boss)

    page = client.get(url(row)).content.decode()

    assert "Approve and run" in page
    assert url(row, "edit") not in page
    assert "queue “vault”, which does not exist" in page
    assert client.get(url(row, "edit")).status_code == 302


def test_arguments_that_were_tampered_with_cannot_be_approved(desk: Client) -> None:
    row = refund()
    form = form_to(desk.get(url(row)), "/decide/")
    PendingInterrupt.objects.filter(pk=row.pk).update(
        args_text=row.args_text.replace("240.00", "999.00")
    )

    page = desk.get(url(row)).content.decode()
    response = desk.post(form.action, as_sent({**form.fields, "decision": "approve"}))

    assert "not the ones that the agent asked for" in page
    assert "Approve and run" not in page
    assert "were changed after the agent asked" in response.content.decode()
    assert fresh(row).status == "pending"
    assert send(desk, row, "reject", reason="tampered").status_code == 302


@pytest.mark.breaks_invariants
def test_a_refusal_that_is_nobodys_decision_is_said_on_the_page(desk: Client) -> None:
    row = refund()
    changed = row.args_text.replace("240.00", "940.00")
    assert changed != row.args_text
    PendingInterrupt.objects.filter(pk=row.pk).update(args_text=changed)

    response = send(desk, row, "approve", reason="typed with care")

    page = response.content.decode()
    assert response.status_code == 200
    assert "not the ones" in page
    assert "typed with care" in page
    assert fresh(row).status == "pending"
