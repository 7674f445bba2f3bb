from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from django.test import Client

from hitl_approvals import canonical
from hitl_approvals.engine import run_turn
from hitl_approvals.models import AgentTurn, PendingInterrupt
from tests.admin import agents_for_admin
from tests.admin.html_forms import as_sent, form_to
from tests.admin.scenes import REFUND, call, confirm, edit, key_of, refund, url

pytestmark = pytest.mark.django_db(transaction=True)

AWKWARD: list[dict[str, Any]] = [
    {},
    {"text": ""},
    {"text": "HH", "data": '["HH"]'},
    {"text": " spaces at both ends ", "data": "  "},
    {"text": "\nfirst line empty\n\nlast too\n"},
    {"text": "carriage\rreturns\r\nand\ttabs"},
    {"text": "a\x00b\x1b\x7f"},
    {"text": "\u202egpj.exe\u202c \u200b\ufeff\u00a0\u2028\u2029"},
    {"text": "</textarea><script>alert(1)</script>"},
    {"text": "quotes \" and ' & <entities> &amp; &#10;"},
    {"text": "👩‍🚀 ❤️ 1️⃣ é"},
    {"whole": 9007199254740993, "number": 2512292042121000001},
    {"number": 1, "data": 1.0},
    {"number": 1.0, "data": 1},
    {"number": 1e-07, "whole": -0},
    {"number": 1e300, "data": [1, 1.0, "1", True, None, {}, []]},
    {"whole": "5", "number": "0.5", "flag": "true"},
    {"flag": None, "day": None, "maybe": None, "data": None},
    {"flag": True, "day": "2026-12-31", "maybe": ""},
    {"data": {"a": {"b": [{"c": "\u202e"}]}, "": 0, "</textarea>": "\x00"}},
    {"data": "x" * 5000},
    {"data": list(range(300))},
]


@pytest.mark.parametrize("args", AWKWARD)
def test_an_untouched_form_approves_the_very_same_bytes(
    desk: Client, args: dict[str, Any]
) -> None:
    row = call("desk_anything", args)

    step_two = edit(desk, row)
    response = confirm(desk, step_two)

    assert "You changed nothing" in step_two.content.decode()
    assert response.status_code == 302
    decided = PendingInterrupt.objects.get(pk=row.pk)
    assert decided.decision == "approve"
    assert decided.args_text == row.args_text
    assert decided.decision_digest == row.args_digest


def test_an_untouched_form_is_said_to_be_an_approval(desk: Client) -> None:
    row = refund()

    step_two = edit(desk, row)
    confirm(desk, step_two, reason="Looks right to me.")

    page = step_two.content.decode()
    assert "The agent is told what you changed" not in page
    assert "this is recorded as an approval" in page
    assert "kept with the decision, the agent does not read it" in page
    run_turn(row.turn_id)
    row.refresh_from_db()
    assert (row.decision, row.reason) == ("approve", "Looks right to me.")
    told = AgentTurn.objects.get(pk=row.turn_id).output
    assert "refunded" in str(told)
    assert "Looks right to me." not in str(told)


def test_a_changed_form_is_said_to_be_told_to_the_agent(desk: Client) -> None:
    row = refund()

    step_two = edit(desk, row, amount="7")
    confirm(desk, step_two, reason="The jug stays.")

    page = step_two.content.decode()
    assert "The agent is told what you changed" in page
    assert "if you like; the agent reads it" in page
    run_turn(row.turn_id)
    told = str(AgentTurn.objects.get(pk=row.turn_id).output)
    assert "A reviewer changed this call" in told
    assert "The jug stays." in told


@pytest.mark.parametrize("args", AWKWARD)
def test_changing_one_argument_leaves_the_bytes_of_the_others(
    desk: Client, args: dict[str, Any]
) -> None:
    row = call("desk_anything", args)

    response = confirm(desk, edit(desk, row, maybe="new", maybe__null=""))

    decided = PendingInterrupt.objects.get(pk=row.pk)
    assert response.status_code == 302, response.content.decode()
    proposed: Any = canonical.loads(row.args_text or "")
    assert decided.decision_args_text == canonical.dumps({**proposed, "maybe": "new"})


def test_an_edit_runs_with_exactly_what_was_confirmed(desk: Client) -> None:
    row = refund()

    step_two = edit(desk, row, amount="210.50", note="Jug cracked.")
    page = step_two.content.decode()
    response = confirm(desk, step_two, reason="The warranty stays.")

    assert "2 of 8 arguments differ" in page
    assert "<del>240.00</del>" in page
    assert "<ins>210.50</ins>" in page
    assert response.status_code == 302
    decided = PendingInterrupt.objects.get(pk=row.pk)
    assert decided.decision == "edit"
    assert decided.reason == "The warranty stays."
    assert decided.decision_args_text == canonical.dumps(
        {**REFUND, "amount": "210.50", "note": "Jug cracked."}
    )
    run_turn(row.turn_id)
    assert [
        ("desk_refund", {"order_id": "A-1042", "amount": Decimal("210.50")})
    ] == agents_for_admin.RAN


def test_the_first_step_stores_nothing(desk: Client) -> None:
    row = refund()

    edit(desk, row, amount="1")

    row.refresh_from_db()
    assert row.status == "pending"


def test_faults_stand_beside_their_fields_and_nothing_typed_is_lost(
    desk: Client,
) -> None:
    row = refund()
    key = key_of(row, "amount")

    response = edit(
        desk,
        row,
        amount="a lot",
        items="[{]",
        items__mode="json",
        note="typed with care",
    )

    page = response.content.decode()
    assert response.status_code == 200
    assert "Error:" in page.split("<title>")[1].split("</title>")[0]
    assert "2 things need another look" in page
    assert f'href="#id_{key}"' in page
    assert f'aria-describedby="e_{key} h_{key}"' in page
    fields = form_to(response, "/edit/").fields
    assert fields[key] == "a lot"
    assert fields[key_of(row, "items")] == "[{]"
    assert fields[key_of(row, "note")] == "typed with care"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"amount": ""}, "A value is needed here."),
        ({"amount": "1,5"}, "Type a number"),
        ({"amount": "NaN"}, "Type a number"),
        ({"amount": "1_000"}, "Type a number"),
        ({"currency": "7"}, "Choose one."),
        ({"items": '[{"sku":"a","sku":"b"}]', "items__mode": "json"}, "twice"),
        ({"items": '[{"quantity":1}]', "items__mode": "json"}, "sku"),
        ({"items": "[NaN]", "items__mode": "json"}, "not a finite number"),
        ({"book_on": "soon"}, "Type a date and time"),
        ({"book_on": "2026-03-29T02:30"}, "The clocks change"),
        ({"note": "x" * 201}, "too long"),
        ({"book_on": "2027-01-01T10:00", "book_on__null": "on"}, "keep one"),
    ],
)
def test_what_does_not_fit_is_said_at_step_one(
    desk: Client, changes: dict[str, str], message: str
) -> None:
    row = refund()

    response = edit(desk, row, **changes)

    assert message in response.content.decode()
    assert "Step 1 of 2" in response.content.decode()
    row.refresh_from_db()
    assert row.status == "pending"


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"note": "x" * 201}, "note: The value is too long."),
        ({"amount": ""}, "amount: A value is needed here."),
    ],
)
def test_the_summary_of_faults_is_made_of_sentences(
    desk: Client, changes: dict[str, str], sentence: str
) -> None:
    page = edit(desk, refund(), **changes).content.decode()

    assert f"{sentence}</a> All you typed is still here." in page


def test_a_null_tick_replaces_the_value(desk: Client) -> None:
    row = refund()

    confirm(desk, edit(desk, row, book_on__null="on"))

    decided = PendingInterrupt.objects.get(pk=row.pk)
    assert canonical.loads(decided.decision_args_text or "")["book_on"] is None  # type: ignore[index,call-overload]


@pytest.mark.parametrize(
    ("given", "typed", "stored"),
    [
        ("2026-12-01T17:00:00Z", "2026-12-02T09:30", "2026-12-02T08:30:00Z"),
        ("2026-12-01T17:00:00+05:00", "2026-12-02T09:30", "2026-12-02T09:30:00+01:00"),
        ("2026-12-01T17:00:00", "2026-12-02T09:30", "2026-12-02T09:30:00"),
    ],
)
def test_an_edited_moment_keeps_the_way_its_zone_was_written(
    desk: Client, given: str, typed: str, stored: str
) -> None:
    row = refund(book_on=given)

    confirm(desk, edit(desk, row, book_on=typed))

    decided = PendingInterrupt.objects.get(pk=row.pk)
    edited: Any = canonical.loads(decided.decision_args_text or "")
    assert edited["book_on"] == stored


def test_going_back_from_step_two_keeps_what_was_changed(desk: Client) -> None:
    row = refund()
    step_two = edit(desk, row, amount="7", note="Jug cracked")
    form = form_to(step_two, "/edit/")

    back = desk.post(
        form.action, as_sent({**form.fields, "step": "change", "reason": "why"})
    )

    fields = form_to(back, "/edit/").fields
    assert fields[key_of(row, "amount")] == "7"
    assert fields[key_of(row, "note")] == "Jug cracked"
    assert fields["reason"] == "why"


def test_one_field_can_be_put_back(desk: Client) -> None:
    row = refund()
    form = form_to(desk.get(url(row, "edit")), "/edit/")
    amount, note = key_of(row, "amount"), key_of(row, "note")

    response = desk.post(
        form.action, as_sent({**form.fields, amount: "7", note: "new", "undo": amount})
    )

    fields = form_to(response, "/edit/").fields
    assert (fields[amount], fields[note]) == ("240.00", "new")


def test_fixed_and_secret_arguments_cannot_be_changed_or_seen(desk: Client) -> None:
    row = refund()
    token = REFUND["payout_token"]

    step_one = desk.get(url(row, "edit"))
    step_two = edit(
        desk, row, order_id="A-1", payout_token="mine", amount="5", note="x"
    )
    form = form_to(step_two, "/edit/")
    sent = {**form.fields, "step": "approve"}
    carried: Any = canonical.loads(sent["args"])
    carried |= {"order_id": "A-1", "payout_token": "mine"}
    response = desk.post(form.action, {**sent, "args": canonical.dumps(carried)})

    assert token not in step_one.content.decode() + step_two.content.decode()
    assert "Fixed by the tool" in step_one.content.decode()
    assert response.status_code == 302
    decided = PendingInterrupt.objects.get(pk=row.pk)
    edited: Any = canonical.loads(decided.decision_args_text or "")
    assert (edited["order_id"], edited["payout_token"]) == ("A-1042", token)


def test_a_misfit_that_was_smuggled_into_step_two_comes_back_to_step_one(
    desk: Client,
) -> None:
    row = refund()
    form = form_to(edit(desk, row, amount="5"), "/edit/")

    for args in ('{"amount": []}', '{"amount":"5","new":1}', "[]", "{", ""):
        response = desk.post(
            form.action, {**form.fields, "step": "approve", "args": args}
        )

        assert response.status_code == 200
        assert 'role="alert"' in response.content.decode()
    row.refresh_from_db()
    assert row.status == "pending"


def test_an_edit_of_a_decided_row_keeps_what_was_typed(
    desk: Client, other_reviewer: Any, login: Any
) -> None:
    row = refund()
    form = form_to(desk.get(url(row, "edit")), "/edit/")
    other = login(other_reviewer)
    decide = form_to(other.get(url(row)), "/decide/")
    other.post(decide.action, {**decide.fields, "decision": "reject", "reason": "late"})

    fields = {**form.fields, "step": "review", key_of(row, "amount"): "99.00"}
    response = desk.post(form.action, as_sent(fields))

    page = response.content.decode()
    assert response.status_code == 409
    assert "priya.nair decided this before you" in page
    assert "Your edit was not recorded" in page
    assert "99.00" in page
    assert "not used" in page
