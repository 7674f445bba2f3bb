from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from hitl_approvals.engine import run_turn
from hitl_approvals.models import AgentTurn, PendingInterrupt
from tests.admin.scenes import ask, send, url

pytestmark = pytest.mark.django_db(transaction=True)

ADDRESS = {
    "type": "object",
    "properties": {
        "address": {"enum": ["Lagos", "Leeds"]},
        "message": {"type": "string", "maxLength": 10},
        "copies": {"type": "integer", "minimum": 1},
        "urgent": {"type": "boolean"},
    },
    "required": ["address"],
    "additionalProperties": False,
}
FIELDS = {"address": "f0", "copies": "f1", "message": "f2", "urgent": "f3"}


def answered(row: PendingInterrupt) -> Any:
    row.refresh_from_db()
    assert row.decision == "respond", row.decision
    run_turn(row.turn_id)
    return AgentTurn.objects.get(pk=row.turn_id).output


def test_an_answer_goes_to_the_agent_as_it_was_chosen(desk: Client) -> None:
    row = ask("Which <address>?", ADDRESS)

    page = desk.get(url(row)).content.decode()
    response = send(desk, row, "respond", f0="1", f1="2")

    assert "Which &lt;address&gt;?" in page
    assert "No tool runs because of it." in page
    assert response.status_code == 302
    assert answered(row) == {"address": "Leeds", "copies": 2}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({}, "A value is needed here."),
        ({"address": "9"}, "Choose one."),
        ({"address": "0", "message": "far too long a message"}, "too long"),
        ({"address": "0", "copies": "0"}, "minimum"),
        ({"address": "0", "copies": "two"}, "Type a whole number"),
    ],
)
def test_an_answer_that_does_not_fit_is_not_sent_and_not_lost(
    desk: Client, changes: dict[str, str], message: str
) -> None:
    row = ask("Which?", ADDRESS)
    typed = {FIELDS[name]: value for name, value in changes.items()}

    response = send(desk, row, "respond", reason="kept too", **typed)

    page = response.content.decode()
    assert response.status_code == 200
    assert message in page
    assert "kept too" in page
    assert all(value in page for value in changes.values())
    row.refresh_from_db()
    assert row.status == "pending"


@pytest.mark.parametrize(
    ("schema", "changes", "value"),
    [
        ({"type": "string"}, {"f0": "two\nlines"}, "two\nlines"),
        ({"type": "integer"}, {"f0": "2512292042121000001"}, 2512292042121000001),
        ({"type": "number"}, {"f0": "1.5"}, 1.5),
        ({"type": "boolean"}, {"f0": "1"}, False),
        ({"enum": [1, "1", True, None]}, {"f0": "1"}, "1"),
        ({"enum": [1, "1", True, None]}, {"f0": "null"}, None),
        ({"type": "array"}, {"f0": '[1, "x"]'}, [1, "x"]),
        ({"type": ["string", "null"]}, {"f0-null": "on"}, None),
        (None, {"f0": "42", "as": "text"}, "42"),
        (None, {"f0": "42", "as": "json"}, 42),
    ],
)
def test_answers_of_every_kind_keep_their_type(
    desk: Client, schema: Any, changes: dict[str, str], value: Any
) -> None:
    row = ask({"topic": "anything"}, schema)

    response = send(desk, row, "respond", **changes)

    assert response.status_code == 302, response.content.decode()
    found = answered(row)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    "changes", [{"f0": " "}, {"f0": "{", "as": "json"}, {"f0": "NaN", "as": "json"}]
)
def test_an_unreadable_free_answer_is_not_sent(
    desk: Client, changes: dict[str, str]
) -> None:
    row = ask("How is it?")

    response = send(desk, row, "respond", **changes)

    assert response.status_code == 200
    assert 'role="alert"' in response.content.decode()
    row.refresh_from_db()
    assert row.status == "pending"


def test_a_question_can_be_refused(desk: Client) -> None:
    row = ask("How is it?")

    response = send(desk, row, "reject", reason="Not mine to say")

    assert response.status_code == 302
    row.refresh_from_db()
    assert (row.decision, row.reason) == ("reject", "Not mine to say")


def test_a_question_offers_no_approval_and_no_edit(desk: Client) -> None:
    row = ask("How is it?")

    page = desk.get(url(row)).content.decode()
    response = send(desk, row, "approve")

    assert "Approve and run" not in page
    assert desk.get(url(row, "edit")).status_code == 302
    assert "`approve` is not offered here" in response.content.decode()


def test_field_names_of_a_schema_cannot_stand_in_for_the_forms_own(
    desk: Client,
) -> None:
    names = ["csrfmiddlewaretoken", "revision", "key", "decision", "a.b", "<script>"]
    schema = {
        "type": "object",
        "properties": {name: {"type": "string"} for name in names},
    }
    row = ask("?", schema)
    fields = {f"f{number}": name for number, name in enumerate(sorted(names))}

    response = send(desk, row, "respond", **fields)

    assert response.status_code == 302
    assert answered(row) == {name: name for name in names}
    assert "<script>" not in desk.get(url(row)).content.decode().replace(
        '<script src="', ""
    )


def test_a_schema_that_is_nonsense_still_leaves_a_way_to_answer(desk: Client) -> None:
    row = ask("?", {"$ref": "#/nowhere"})

    page = desk.get(url(row)).content.decode()

    assert '<textarea id="id_f0"' in page
    assert send(desk, row, "reject", reason="broken schema").status_code == 302
