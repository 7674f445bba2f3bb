"""Many rows at once: each in full, each decided by itself, each told what became of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Group, User
from django.db import connection
from django.db.models import F
from django.test import Client
from django.test.utils import CaptureQueriesContext

from hitl_approvals import services
from hitl_approvals.admin import bulk
from hitl_approvals.decisions import Approve, Reject
from hitl_approvals.engine import run_turn
from hitl_approvals.models import InterruptEvent, PendingInterrupt, ReviewQueue
from tests.admin import agents_for_admin
from tests.admin.html_forms import as_sent, forms_of
from tests.admin.scenes import (
    LIST,
    REFUND,
    ask,
    call,
    charge_in_doubt,
    expire,
    refund,
    start,
)
from tests.concurrency.meeting import errors, together

pytestmark = pytest.mark.django_db(transaction=True)

BULK = f"{LIST}bulk/"
OUTCOME = f"{LIST}bulk/outcome/"
TICK = re.compile(r'<input type="checkbox" name="row" value="([^"]+)"( checked)?>')


def open_page(client: Client, rows: Sequence[PendingInterrupt], do: str) -> Any:
    return client.get(BULK, {"do": do, "chosen": [str(row.pk) for row in rows]})


def form_of(response: Any) -> dict[str, Any]:
    """Return what the form would send as it stands, every tick included."""
    html = response.content.decode()
    form = next(one for one in forms_of(html) if one.action == BULK)
    fields: dict[str, Any] = as_sent(form.fields)
    fields["chosen"] = re.findall(r'name="chosen" value="([^"]+)"', html)
    fields["row"] = [value for value, ticked in TICK.findall(html) if ticked]
    return fields


def press(client: Client, response: Any, **changes: Any) -> Any:
    return client.post(BULK, {**form_of(response), **changes})


def outcome(client: Client, response: Any) -> str:
    assert response.status_code == 302, response.content.decode()
    assert response.url.startswith(OUTCOME)
    page: str = client.get(response.url).content.decode()
    return page


def statuses(rows: Sequence[PendingInterrupt]) -> list[str]:
    found = PendingInterrupt.objects.in_bulk([row.pk for row in rows])
    return [found[row.pk].status for row in rows]


def ticks(page: str) -> list[str]:
    return [value.partition(":")[0] for value, _ticked in TICK.findall(page)]


def test_the_list_offers_a_tick_for_what_can_be_decided_and_only_there(
    desk: Client,
) -> None:
    waits, doubt, over = refund(), charge_in_doubt(), refund()
    expire(over)

    page = desk.get(LIST).content.decode()

    assert f'name="chosen" value="{waits.pk}"' in page
    assert f'name="chosen" value="{doubt.pk}"' not in page
    assert f'name="chosen" value="{over.pk}"' not in page
    assert "Approve ticked…" in page
    assert "Reject ticked…" in page


def test_a_viewer_has_neither_ticks_nor_the_page(
    viewer: User, login: Callable[..., Client]
) -> None:
    row = refund()
    client = login(viewer)

    page = client.get(LIST).content.decode()
    answers = [
        open_page(client, [row], "approve"),
        client.post(BULK, {"do": "approve", "key": "k", "row": f"{row.pk}:1"}),
    ]

    assert "Approve ticked" not in page
    assert 'name="chosen"' not in page
    for response in answers:
        assert response.status_code == 403
        assert "Can decide interrupts" in response.content.decode()
    assert statuses([row]) == ["pending"]


def test_the_page_shows_each_call_in_full_and_what_is_left_out(
    desk: Client, reviewer: User, other_reviewer: User
) -> None:
    rows = [
        refund(),
        refund(order_id="A-2000", note="x" * 190),
        call("desk_hurry", {"service": "<b>shop</b>"}),
    ]
    taken, own, doubt, gone = refund(), refund(by=reviewer), charge_in_doubt(), refund()
    question, long = ask("Which one?"), call("desk_anything", {"text": "y" * 5000})
    services.decide(taken.pk, Reject("no"), by=other_reviewer, via="api")
    services.cancel(gone.turn_id, by=None, via="python")
    chosen = [taken, rows[0], own, rows[1], doubt, rows[2], gone, question, long]

    page = open_page(desk, chosen, "approve").content.decode()

    assert "Approve 3 calls?" in page
    assert "You chose 9. 6 cannot be decided here now and are left out below." in page
    assert ticks(page) == [str(row.pk) for row in rows]
    assert "x" * 190 in page
    assert "&lt;b&gt;shop&lt;/b&gt;" in page
    assert REFUND["payout_token"] not in page
    assert (
        "Runs each ticked call once with exactly its own arguments: "
        "2 <code>desk_refund</code>, 1 <code>desk_hurry</code>." in page
    )
    for why in (
        "It is decided already: Rejected, by priya.nair.",
        "You started this turn; somebody else has to decide its calls.",
        "It may have run, or not. It is settled on its own page, not decided.",
        "It was withdrawn; there is nothing left to decide.",
        "A question is answered on its own page, not approved.",
        "It does not fit here in full; open it to see and approve all of it.",
    ):
        assert why in page
    assert "makes no rule for later calls" in page


def test_looking_at_the_pages_decides_nothing(desk: Client) -> None:
    rows = [refund(), refund()]
    values = {"row": [f"{row.pk}:1" for row in rows], "key": "k", "reason": "no"}

    for do in ("approve", "reject"):
        assert open_page(desk, rows, do).status_code == 200
        assert desk.get(BULK, {**values, "do": do}).status_code == 200
        assert desk.get(OUTCOME, {**values, "do": do}).status_code == 200

    assert statuses(rows) == ["pending", "pending"]
    assert InterruptEvent.objects.exclude(type="raised").count() == 0


def test_approving_decides_each_row_and_follows_it_to_its_end(desk: Client) -> None:
    rows = [refund(), refund(order_id="A-2000"), call("desk_hurry", {"service": "a"})]

    response = press(desk, open_page(desk, rows, "approve"))

    page = outcome(desk, response)
    assert "3 of 3 calls approved" in page
    assert page.count("the turn is about to go on") == 3
    assert LogEntry.objects.count() == 3
    for row in rows:
        run_turn(row.turn_id)
    again = desk.get(response.url).content.decode()
    assert again.count("ran once, resolved") == 3
    assert len(agents_for_admin.RAN) == 2  # desk_hurry keeps no list
    found = PendingInterrupt.objects.filter(pk__in=[row.pk for row in rows])
    assert {(one.decision, one.decided_via) for one in found} == {("approve", "admin")}
    assert len({one.decision_key for one in found}) == 3


def test_rejecting_needs_one_reason_and_keeps_what_was_typed(desk: Client) -> None:
    rows = [refund(), refund(), ask("Which?")]
    page = open_page(desk, rows, "reject")
    fields = form_of(page)
    kept = fields["row"][:2]

    for reason in ("", " \r\n", "\u200b", "bad \x00 byte"):
        refused = desk.post(BULK, {**fields, "row": kept, "reason": reason})
        html = refused.content.decode()
        assert refused.status_code == 200
        assert "<title>Error:" in html.replace("\n", "")
        assert 'aria-describedby="e_reason"' in html
        assert form_of(refused)["row"] == kept
        assert ticks(html) == [str(row.pk) for row in rows]
    assert statuses(rows) == ["pending"] * 3

    done = desk.post(BULK, {**form_of(refused), "reason": "Not <this> month.\r\nNo."})

    told = outcome(desk, done)
    assert "2 of 2 requests rejected" in told
    assert "Left out before sending:" in told
    assert statuses(rows) == ["decided", "decided", "pending"]
    reasons = PendingInterrupt.objects.filter(decision="reject")
    assert {one.reason for one in reasons} == {"Not <this> month.\nNo."}


def test_a_question_is_rejected_with_the_others(desk: Client) -> None:
    rows = [refund(), ask("Which?")]

    response = press(desk, open_page(desk, rows, "reject"), reason="no time")

    assert "2 of 2 requests rejected" in outcome(desk, response)


def test_nothing_ticked_is_said_and_decides_nothing(desk: Client) -> None:
    rows = [refund()]
    page = open_page(desk, rows, "approve")

    response = press(desk, page, row=[])

    assert "Tick at least one call." in response.content.decode()
    assert (
        "You ticked nothing in the list."
        in desk.get(BULK, {"do": "approve"}).content.decode()
    )
    assert statuses(rows) == ["pending"]


@pytest.mark.parametrize("key", ["", "   "])
def test_a_form_without_its_key_decides_nothing(desk: Client, key: str) -> None:
    rows = [refund()]

    response = press(desk, open_page(desk, rows, "approve"), key=key)

    assert "The form was not complete" in response.content.decode()
    assert form_of(response)["key"].strip()
    assert statuses(rows) == ["pending"]


def test_the_rows_of_a_whole_turn_are_ticked_at_once(desk: Client) -> None:
    turn = start(*(("desk_hurry", {"service": str(one)}) for one in range(3)))
    rows = list(turn.interrupts.order_by("position"))

    listed = desk.get(LIST).content.decode()
    page = desk.get(BULK, {"do": "approve", "turn": str(turn.pk)})

    assert f'name="turn" value="{turn.pk}"' in listed
    assert ticks(page.content.decode()) == [str(row.pk) for row in rows]
    assert "3 of 3" in outcome(desk, press(desk, page))
    turn.refresh_from_db()
    assert turn.status == "ready"


def test_a_second_press_is_recognized_and_writes_nothing(desk: Client) -> None:
    rows = [refund(), refund()]
    fields = form_of(open_page(desk, rows, "approve"))

    first, second = desk.post(BULK, fields), desk.post(BULK, fields)

    assert first.url == second.url
    assert "2 of 2 calls approved" in outcome(desk, second)
    assert InterruptEvent.objects.filter(type="approved").count() == 2
    assert LogEntry.objects.count() == 2


def test_two_presses_at_the_same_moment_decide_each_row_once(
    reviewer: User, login: Callable[..., Client]
) -> None:
    rows = [refund() for _ in range(4)]
    clients = [login(reviewer), login(reviewer)]
    fields = form_of(open_page(clients[0], rows, "approve"))

    answers = together(*((lambda c=c: c.post(BULK, fields)) for c in clients))

    assert errors(answers) == []
    assert [answer.status_code for answer in answers] == [302, 302]
    for client, answer in zip(clients, answers, strict=True):
        assert "4 of 4 calls approved" in outcome(client, answer)
    assert InterruptEvent.objects.filter(type="approved").count() == 4


def test_somebody_else_was_faster_with_one_of_them(
    desk: Client, other_reviewer: User
) -> None:
    rows = [refund(), refund(order_id="A-2"), refund(order_id="A-3")]
    page = open_page(desk, rows, "approve")
    services.decide(
        rows[1].pk, Reject("Not <back> yet"), by=other_reviewer, via="admin"
    )
    run_turn(rows[1].turn_id)

    told = outcome(desk, press(desk, page))

    assert "2 of 3 calls approved, 1 not" in told
    assert "Not approved" in told
    assert "Rejected by priya.nair, in the admin, at" in told
    assert "Not &lt;back&gt; yet" in told
    assert "agent told; it did not run, resolved" in told
    assert statuses(rows) == ["decided", "resolved", "decided"]


def test_two_reviewers_meet_on_the_same_rows(
    reviewer: User, other_reviewer: User, login: Callable[..., Client]
) -> None:
    rows = [refund() for _ in range(6)]
    one, two = login(reviewer), login(other_reviewer)
    yes = form_of(open_page(one, rows, "approve"))
    no = {**form_of(open_page(two, rows[::-1], "reject")), "reason": "no"}

    first, second = together(lambda: one.post(BULK, yes), lambda: two.post(BULK, no))

    told = outcome(one, first), outcome(two, second)
    done = [int(re.search(r"(\d) of 6 (?:calls|requests)", one)[1]) for one in told]  # type: ignore[index]
    events = InterruptEvent.objects.filter(type__in=["approved", "rejected"])
    assert sum(done) == events.count() == 6
    assert set(statuses(rows)) == {"decided"}


def test_what_changed_since_it_was_read_is_not_decided(desk: Client) -> None:
    rows = [refund(), refund()]
    page = open_page(desk, rows, "approve")
    services.decide(rows[0].pk, Approve(), by=None, via="python")
    PendingInterrupt.objects.filter(pk=rows[0].pk).update(
        execute_by=F("decided_at") - timedelta(hours=1)
    )
    services.sweep()
    rows[0].refresh_from_db()
    assert (rows[0].status, rows[0].generation) == ("pending", 2)

    told = outcome(desk, press(desk, page))

    assert "1 of 2 calls approved, 1 not" in told
    assert "It changed while you read it. Look at it again." in told
    assert "still open" in told
    assert statuses(rows) == ["pending", "decided"]


def test_what_somebody_else_holds_is_left_out_and_refused(
    desk: Client, other_reviewer: User
) -> None:
    rows = [refund(), refund()]
    fields = form_of(open_page(desk, rows, "approve"))
    services.claim(rows[0].pk, by=other_reviewer, via="admin")

    page = open_page(desk, rows, "approve").content.decode()
    told = outcome(desk, desk.post(BULK, fields))

    assert "priya.nair holds it until" in page
    assert ticks(page) == [str(rows[1].pk)]
    assert "1 of 2 calls approved, 1 not" in told
    assert "Somebody else held it." in told
    assert statuses(rows) == ["pending", "decided"]


@pytest.mark.breaks_invariants
def test_a_form_that_comes_back_does_not_keep_the_tick_of_what_changed(
    desk: Client,
) -> None:
    rows = [refund(), refund()]
    page = open_page(desk, rows, "reject")
    PendingInterrupt.objects.filter(pk=rows[0].pk).update(revision=F("revision") + 1)

    back = press(desk, page, reason="")

    assert form_of(back)["row"] == [f"{rows[1].pk}:1"]
    assert "These changed after you opened the form" in back.content.decode()


def test_other_queues_rows_stay_unseen_and_undecided(
    desk: Client, other_reviewer: User
) -> None:
    vault = ReviewQueue.objects.create(slug="vault")
    vault.groups.add(Group.objects.create(name="keepers"))
    hidden, mine = call("desk_careful", {"what": "gold"}), refund()
    assert hidden.queue_id == "vault"

    page = open_page(desk, [hidden, mine], "approve")
    html = page.content.decode()
    response = press(desk, page, row=[f"{hidden.pk}:1", f"{mine.pk}:1"])

    assert "1 is not there, or not for you to see." in html
    assert "desk_careful" not in html
    told = outcome(desk, response)
    assert "1 of 2 calls approved, 1 not" in told
    assert "Not there, or not for you to see." in told
    assert "gold" not in told
    assert statuses([hidden, mine]) == ["pending", "decided"]


def test_crafted_rows_are_refused_by_the_service(desk: Client, reviewer: User) -> None:
    doubt, own, asked = charge_in_doubt(), refund(by=reviewer), ask("Which?")
    rows = [doubt, own, asked]

    response = desk.post(
        BULK,
        {
            "do": "approve",
            "key": "k",
            "row": [f"{row.pk}:{row.revision}" for row in rows]
            + ["x", "x:1", f"{own.pk}:-1", f"{own.pk}:9999999999999", ":"],
        },
    )

    told = outcome(desk, response)
    assert "0 of 3 calls approved, 3 not" in told
    assert "Whether it happened is in doubt; it is settled, not decided." in told
    assert "You started this turn; somebody else has to decide its calls." in told
    assert "This decision is not offered for it." in told
    assert statuses(rows) == ["in_doubt", "pending", "pending"]


@pytest.mark.parametrize("do", ["", "edit", "respond", "expire", "approve "])
def test_an_unknown_verb_leads_back_to_the_list(desk: Client, do: str) -> None:
    row = refund()
    sent = {"do": do, "key": "k", "row": f"{row.pk}:1", "reason": "r"}

    for response in (desk.get(BULK, sent), desk.post(BULK, sent)):
        assert (response.status_code, response.url) == (302, LIST)
    assert statuses([row]) == ["pending"]


def test_more_than_fit_are_refused_with_the_limit(desk: Client) -> None:
    rows = [refund(), refund()]
    strangers = [f"00000000-0000-7000-8000-{number:012}" for number in range(60)]
    page = desk.get(BULK, {"do": "approve", "chosen": [rows[0].pk, *strangers]})

    response = press(desk, page, row=[f"{one}:1" for one in strangers])

    html = page.content.decode()
    assert f"61 are too many for one page: at most {bulk.MOST}" in html
    assert ticks(html) == [str(rows[0].pk)]
    assert "60 are too many for one page" in response.content.decode()
    assert statuses(rows) == ["pending", "pending"]


def test_the_outcome_says_only_what_the_audit_trail_knows(
    desk: Client, other_reviewer: User
) -> None:
    row, taken = refund(), refund()
    services.decide(taken.pk, Approve(), by=other_reviewer, via="admin")
    crafted = {
        "do": "approve",
        "row": [f"{row.pk}:ok", f"{taken.pk}:ok", f"{row.pk}:<b>x", "nothing"],
    }

    page = desk.get(OUTCOME, crafted).content.decode()

    assert "0 of 2 calls approved, 2 not" in page
    assert page.count("Not approved") == 2
    assert "<b>x" not in page
    assert desk.get(OUTCOME, {"do": "approve"}).status_code == 302
    assert desk.post(OUTCOME, crafted).status_code in (200, 302, 405)
    assert statuses([row]) == ["pending"]


def test_a_lapsed_approval_is_told_on_reload(desk: Client) -> None:
    row = refund()
    response = press(desk, open_page(desk, [row], "approve"))
    PendingInterrupt.objects.filter(pk=row.pk).update(
        execute_by=F("decided_at") - timedelta(hours=1)
    )
    services.sweep()

    told = outcome(desk, response)

    assert "1 of 1 call approved" in told
    assert "back again: the approval was not used in time" in told


def test_what_was_typed_survives_an_expired_login(reviewer: User) -> None:
    row = refund()

    response = Client().post(
        BULK,
        as_sent(
            {"do": "reject", "key": "k", "row": f"{row.pk}:1", "reason": "Long <b>"}
        ),
    )

    page = response.content.decode()
    assert response.status_code == 403
    assert "Long &lt;b&gt;" in page
    again = f"{BULK}?{urlencode({'do': 'reject', 'chosen': str(row.pk)})}"
    assert urlencode({"next": again}).replace("&", "&amp;") in page
    assert statuses([row]) == ["pending"]


def test_posting_needs_a_token_of_the_site(
    reviewer: User, login: Callable[..., Client]
) -> None:
    row = refund()
    client = login(reviewer, enforce_csrf_checks=True)
    fields = form_of(open_page(client, [row], "approve"))
    token = fields.pop("csrfmiddlewaretoken")

    assert client.post(BULK, fields).status_code == 403
    assert statuses([row]) == ["pending"]
    taken = client.post(BULK, {**fields, "csrfmiddlewaretoken": token})
    assert taken.status_code == 302


def test_forty_mixed_rows(desk: Client, reviewer: User, other_reviewer: User) -> None:
    good = [refund(order_id=f"A-{number}") for number in range(30)]
    taken = [refund() for _ in range(3)]
    own, doubt = [refund(by=reviewer) for _ in range(3)], [charge_in_doubt()]
    over, bad = [refund()], [refund(), refund()]
    rows = [*taken, *good, *own, *doubt, *over, *bad]
    assert len(rows) == 40
    page = open_page(desk, rows, "approve")
    fields = form_of(page)
    assert len(fields["row"]) == 36
    for row in taken:
        services.decide(row.pk, Reject("mine"), by=other_reviewer, via="admin")
    expire(over[0])
    for row in bad:
        text = row.args_text.replace("240.00", "940.00")
        PendingInterrupt.objects.filter(pk=row.pk).update(args_text=text)

    told = outcome(desk, desk.post(BULK, fields))

    assert "30 of 36 calls approved, 6 not" in told
    assert told.count("Rejected by priya.nair") == 3
    assert told.count("The time to decide it had passed.") == 1
    assert told.count("The stored arguments are not the ones") == 2
    for row in good:
        run_turn(row.turn_id)
    ran = [name for name, _args in agents_for_admin.RAN if name == "desk_refund"]
    assert len(ran) == 30
    assert statuses(good) == ["resolved"] * 30
    for row in bad:
        PendingInterrupt.objects.filter(pk=row.pk).update(args_text=row.args_text)


def test_the_pages_ask_a_number_of_queries_that_does_not_grow(desk: Client) -> None:
    def queries(rows: Sequence[PendingInterrupt]) -> tuple[int, int]:
        with CaptureQueriesContext(connection) as page:
            open_page(desk, rows, "approve")
        told = {"do": "approve", "row": [f"{row.pk}:stale_review" for row in rows]}
        with CaptureQueriesContext(connection) as outcomes:
            desk.get(OUTCOME, told)
        return len(page), len(outcomes)

    rows = [refund() for _ in range(8)]

    assert queries(rows[-2:]) == queries(rows)


@pytest.mark.parametrize("do", ["approve", "reject"])
def test_the_pages_are_labelled_for_screen_readers(desk: Client, do: str) -> None:
    rows = [refund(), ask("Which?")]
    page = open_page(desk, rows, do)
    told = press(desk, page, reason="no", row=[f"{row.pk}:1" for row in rows])
    pages = [
        page,
        press(desk, page, row=[]),
        desk.get(told.url),
        desk.get(LIST),
    ]
    for html in (one.content.decode() for one in pages):
        ids = re.findall(r'\sid="([^"]+)"', html)
        assert len(ids) == len(set(ids)), "an id stands twice"
        for attribute in ("aria-labelledby", "aria-describedby", "for", "form"):
            for value in re.findall(rf'\s{attribute}="([^"]+)"', html):
                assert set(value.split()) <= set(ids), (attribute, value)
        assert html.count("<h1") == 1
        assert "style=" not in html.split("<main", 1)[-1]


def test_a_saved_reason_may_stand_for_all_of_them(desk: Client, settings: Any) -> None:
    saved = ["Not covered by the returns policy", "Wrong amount"]
    settings.HITL_APPROVALS = {**settings.HITL_APPROVALS, "REJECT_REASONS": saved}
    rows = [refund(), refund()]
    page = open_page(desk, rows, "reject")

    refused = press(desk, page, canned="Never offered", reason="typed")
    assert "not offered any more" in refused.content.decode()
    assert form_of(refused)["reason"] == "typed"
    assert press(desk, page, canned=saved[1], reason="Ask anew.").status_code == 302

    reasons = PendingInterrupt.objects.values_list("reason", flat=True)
    assert set(reasons) == {"Wrong amount\nAsk anew."}
