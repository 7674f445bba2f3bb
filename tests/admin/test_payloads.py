"""Values that broke other desks, from the agent through the pages to the tool."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth.models import User
from django.test import Client

from hitl_approvals.engine import run_turn
from hitl_approvals.models import AgentTurn, PendingInterrupt
from tests.admin import agents_for_admin
from tests.admin.html_forms import as_sent, form_to
from tests.admin.scenes import LIST, call, confirm, edit, send, start, url

pytestmark = pytest.mark.django_db(transaction=True)

TYPED: dict[str, Any] = {
    "price": "0.10",
    "at": "2026-12-01T17:00:00Z",
    "key": "0b2f6f1e-3a3a-4d0c-9a53-0f9b1f0c2d11",
    "colour": "blue",
    "item": {"sku": "12", "quantity": 2},
}
VALUES = {
    "price": Decimal("0.10"),
    "at": datetime(2026, 12, 1, 17, tzinfo=UTC),
    "key": UUID("0b2f6f1e-3a3a-4d0c-9a53-0f9b1f0c2d11"),
    "colour": agents_for_admin.Colour.BLUE,
    "item": agents_for_admin.Item(sku="12", quantity=2),
}


def ran() -> dict[str, Any]:
    [(name, given)] = agents_for_admin.RAN
    assert name == "desk_typed"
    return given


def test_an_approved_call_gets_values_of_the_declared_types(desk: Client) -> None:
    row = call("desk_typed", TYPED)

    send(desk, row, "approve")
    run_turn(row.turn_id)

    assert ran() == {**VALUES, "whole": 1}
    assert str(ran()["price"]) == "0.10"


def test_an_edit_of_one_argument_leaves_the_types_of_the_others(desk: Client) -> None:
    row = call("desk_typed", TYPED)

    confirm(desk, edit(desk, row, whole="2512292042121000001"))
    run_turn(row.turn_id)

    assert ran() == {**VALUES, "whole": 2512292042121000001}
    assert str(ran()["price"]) == "0.10"


def test_an_edited_decimal_is_the_number_that_was_typed(desk: Client) -> None:
    row = call("desk_typed", TYPED)

    confirm(desk, edit(desk, row, price="0.30"))
    run_turn(row.turn_id)

    assert str(ran()["price"]) == "0.30"


def test_a_result_with_characters_that_no_text_column_holds_is_shown(
    boss: User, login: Any
) -> None:
    row = call("desk_typed", TYPED)
    client = login(boss)

    send(client, row, "approve")
    run_turn(row.turn_id)
    page = client.get(url(row.turn, "change", "agentturn")).content.decode()

    assert "\x00" not in page
    assert "U+0000" in page or "\\u0000" in page


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity"])
def test_a_number_that_is_none_never_becomes_a_row(desk: Client, number: str) -> None:
    broken: Any = f'{{"number": {number}}}'
    turn = start(("desk_anything", broken), ("desk_anything", {"text": "fine"}))

    [row] = PendingInterrupt.objects.filter(turn=turn)
    assert "fine" in desk.get(url(row)).content.decode()
    assert desk.get(LIST).status_code == 200


def test_saving_a_form_three_times_adds_no_layer_of_quotes(desk: Client) -> None:
    row = call("desk_anything", {"text": '["HH"]', "flag": True, "data": {"a": True}})
    response = desk.get(url(row, "edit"))

    for _time in range(3):
        form = form_to(response, "/edit/")
        step_two = desk.post(form.action, as_sent({**form.fields, "step": "review"}))
        form = form_to(step_two, "/edit/")
        response = desk.post(form.action, as_sent({**form.fields, "step": "change"}))
    confirm(desk, step_two)

    row.refresh_from_db()
    assert row.decision == "approve"
    assert row.decision_digest == row.args_digest


def test_the_order_in_which_keys_came_changes_neither_page_nor_digest(
    desk: Client,
) -> None:
    one = call("desk_anything", {"data": {"b": 1, "a": {"d": 1, "c": 2}}, "text": "x"})
    two = call("desk_anything", {"text": "x", "data": {"a": {"c": 2, "d": 1}, "b": 1}})

    texts = [desk.get(f"{url(row, 'full')}").content for row in (one, two)]

    assert texts[0] == texts[1]
    assert one.args_digest == two.args_digest
    for row in (one, two):
        assert one.args_digest in desk.get(url(row)).content.decode()


def test_a_reply_that_names_a_key_twice_is_refused_before_anybody_decides(
    desk: Client,
) -> None:
    broken: Any = '{"number":1,"number":1000}'
    turn = start(("desk_anything", broken))

    assert not PendingInterrupt.objects.filter(turn=turn).exists()
    assert "twice" in json.dumps(AgentTurn.objects.get(pk=turn.pk).output)
