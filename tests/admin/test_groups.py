"""Lists and objects in the forms of the desk: nothing is lost, nothing changes its type."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.template.loader import render_to_string
from django.test import Client
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from hitl_approvals import canonical
from hitl_approvals.admin.arguments import CallArguments
from hitl_approvals.admin.forms import AnswerForm, edit_form
from hitl_approvals.admin.groups import Group, Node, make
from hitl_approvals.admin.pressing import press
from hitl_approvals.admin.shapes import MISSING
from hitl_approvals.admin.widgets import same
from hitl_approvals.engine import run_turn
from hitl_approvals.models import AgentTurn, PendingInterrupt
from tests.admin.html_forms import as_sent, form_to, forms_of
from tests.admin.scenes import (
    REFUND,
    ask,
    call,
    confirm,
    edit,
    key_of,
    refund,
    send,
    url,
)
from tests.admin.test_fields import SCHEMAS, json_values, texts

DEFS = {
    "$defs": {
        "Item": {
            "type": "object",
            "properties": {"sku": {"type": "string"}, "count": {"type": "integer"}},
            "required": ["sku"],
        },
        "Tree": {
            "type": "object",
            "properties": {
                "leaf": {"type": "number"},
                "inner": {"type": "array", "items": {"$ref": "#/$defs/Tree"}},
            },
        },
    }
}
names = st.sampled_from(["a", "b.c", "", "0", "id", "</textarea>", "\u202e", "x y"])


def objects(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.builds(
        lambda known, needed, extra: {
            "type": "object",
            "properties": known,
            "required": [one for one in known if one in needed],
            **extra,
        },
        st.dictionaries(names, inner, max_size=3),
        st.lists(names, max_size=3),
        st.one_of(
            st.just({}),
            st.just({"additionalProperties": False}),
            inner.map(lambda one: {"additionalProperties": one}),
        ),
    )


schemas = st.recursive(
    st.sampled_from(
        [
            *SCHEMAS,
            {"$ref": "#/$defs/Item"},
            {"$ref": "#/$defs/Tree"},
            {"const": 1.0},
            {"oneOf": [{"const": "a", "title": "b"}, {"const": "b", "title": "a"}]},
        ]
    ),
    lambda inner: st.one_of(
        objects(inner),
        inner.map(lambda one: {"type": "array", "items": one}),
        inner.map(lambda one: {"anyOf": [one, {"type": "null"}]}),
        st.tuples(inner, inner).map(lambda two: {"oneOf": list(two)}),
    ),
    max_leaves=5,
)


def values_for(schema: Any, depth: int = 0) -> st.SearchStrategy[Any]:
    """Return values that mostly have the form that a schema asks for."""
    if depth > 4:
        return json_values
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        target = DEFS["$defs"].get(name)
        return values_for(target, depth + 1) if target else json_values
    if schema.get("type") == "array":
        items = values_for(schema.get("items", {}), depth + 1)
        return st.one_of(st.lists(items, max_size=4), st.lists(items | json_values))
    if schema.get("type") == "object":
        known = {
            name: values_for(one, depth + 1)
            for name, one in schema.get("properties", {}).items()
        }
        more = schema.get("additionalProperties")
        others = values_for(more, depth + 1) if isinstance(more, dict) else json_values
        return st.builds(
            lambda extra, given: {**extra, **given},
            st.dictionaries(texts | names, others, max_size=2),
            st.fixed_dictionaries({}, optional=known),
        )
    for key in ("anyOf", "oneOf"):
        if key in schema:
            return st.one_of(
                st.none(), *(values_for(one, depth + 1) for one in schema[key])
            )
    return json_values


@st.composite
def cases(draw: st.DrawFn) -> tuple[Any, Any]:
    """Draw a schema and a value that fits it, more or less."""
    schema = draw(schemas)
    return schema, draw(st.one_of(values_for(schema), json_values))


def sent_back(node: Node) -> dict[str, str]:
    """Return what a browser sends for what nobody touched."""
    html = render_to_string(
        "admin/hitl_approvals/_node.html",
        {"field": node, "labelled": True, "form_url": "/x/"},
    )
    html.encode()
    [form] = forms_of(f'<form method="post">{html}</form>')
    return as_sent(form.fields)


def node_of(schema: Any, value: Any) -> Node:
    return make("f0", "x", schema, {**schema, **DEFS}, value)


def again(schema: Any, value: Any, node: Node) -> Node:
    """Return a new node that has read what a browser sends for another one."""
    made = node_of(schema, value)
    made.read(sent_back(node))
    return made


slow = settings(
    max_examples=80,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    deadline=None,
)


@given(cases())
@example(({"type": "array", "items": {"type": "string"}}, ["12", "true", "", "a\rb"]))
@example(({"type": "array", "items": {"type": "number"}}, [1, 1.0, 1e3, 2**70, -0.0]))
@example(({"type": "array", "items": {"type": "boolean"}}, [True, 1, "true", None]))
@example(({"$ref": "#/$defs/Item"}, {"sku": "a", "": 1, "count": "12", "\u202e": {}}))
@slow
def test_an_untouched_form_stands_for_the_very_bytes_that_it_was_made_from(
    case: tuple[Any, Any],
) -> None:
    schema, value = case

    found = again(schema, value, node_of(schema, value))

    assert not found.changed
    assert canonical.dumps(found.value()) == canonical.dumps(value)
    assert list(found.faults()) == []


@given(cases(), st.data())
@slow
def test_what_was_put_into_a_form_comes_out_of_it_as_it_is(
    case: tuple[Any, Any], data: st.DataObject
) -> None:
    schema, original = case
    value = data.draw(st.one_of(values_for(schema), json_values))
    node = node_of(schema, original)

    node.load(value)
    found = again(schema, original, node)

    assert same(found.value(), value) or needed(found)


def needed(node: Node) -> bool:
    """Tell whether a form says that it lacks what its schema needs, and only that."""
    said = {error for _key, _label, errors in node.faults() for error in errors}
    return said == {"A value is needed here."}


@given(cases(), st.data())
@slow
def test_removing_an_entry_leaves_the_bytes_of_the_others(
    case: tuple[Any, Any], data: st.DataObject
) -> None:
    schema, value = case
    schema, value = {"type": "array", "items": schema}, [value] * 2 + [1, "1", value]
    node = node_of(schema, value)
    if not isinstance(node, Group) or not node.as_form:
        return
    number = data.draw(st.integers(0, 4))

    node.drop(number)
    found = again(schema, value, node)

    rest = [one for at, one in enumerate(value) if at != number]
    assert canonical.dumps(found.value()) == canonical.dumps(rest)


@given(cases())
@slow
def test_json_and_form_are_two_ways_to_write_the_same(case: tuple[Any, Any]) -> None:
    schema, value = case
    form = AnswerForm(schema)
    form.fields = [node_of(schema, value)]

    press(form, {"as_json": "f0"})
    if value is not None:  # a form would begin with an empty list or object
        press(form, {"as_form": "f0"})
    found = again(schema, value, form.fields[0])

    assert same(found.value(), value) or needed(found)


pages = pytest.mark.django_db(transaction=True)


def pressed(client: Client, response: Any, button: str, value: str, **more: str) -> Any:
    """Press a button inside the edit form of a page."""
    form = form_to(response, "/edit/")
    assert (button, value) in form.buttons
    return client.post(form.action, as_sent({**form.fields, **more, button: value}))


def review(client: Client, response: Any, **changes: str) -> Any:
    form = form_to(response, "/edit/")
    fields = {**form.fields, **changes, "step": "review"}
    return client.post(form.action, as_sent(fields))


def approved(row: PendingInterrupt) -> Any:
    row.refresh_from_db()
    assert row.decision == "edit", row.decision
    return json.loads(row.decision_args_text or "")


@pages
def test_items_are_added_changed_and_removed_without_a_script(desk: Client) -> None:
    row = refund()
    key = key_of(row, "items")

    response = desk.get(url(row, "edit"))
    response = pressed(desk, response, "drop", f"{key}:0")
    response = pressed(desk, response, "add", key)
    response = review(desk, response, **{f"{key}_2_p1": "JUG-1", f"{key}_1_p0": "7"})
    page = response.content.decode()
    confirm(desk, response)

    assert "1 of 8 arguments differ" in page
    assert approved(row)["items"] == [
        {"sku": "WARR-2Y", "quantity": 7},
        {"sku": "JUG-1", "quantity": 1},
    ]


@pages
def test_a_list_can_be_written_as_json_and_filled_in_as_a_form_again(
    desk: Client,
) -> None:
    row = refund()
    key = key_of(row, "items")

    response = desk.get(url(row, "edit"))
    as_json = pressed(desk, response, "as_json", key)
    typed = json.dumps([{"sku": "12", "quantity": 12}, {"sku": "a\rb"}])
    wrong = pressed(desk, as_json, "as_form", key, **{key: "{}"})
    as_form = pressed(desk, wrong, "as_form", key, **{key: typed})
    confirm(desk, review(desk, as_form))

    assert form_to(as_json, "/edit/").fields[f"{key}-mode"] == "json"
    assert "Only a list can be filled in as a form." in wrong.content.decode()
    assert form_to(as_form, "/edit/").fields[f"{key}_0_p0"] == "12"
    assert approved(row)["items"] == [
        {"sku": "12", "quantity": 12},
        {"sku": "a\rb", "quantity": 1},
    ]


@pages
def test_a_fault_inside_a_list_stands_beside_its_field(desk: Client) -> None:
    row = refund()
    key = key_of(row, "items")

    parsed = edit(desk, row, items__x="", note="kept")
    response = review(
        desk,
        desk.get(url(row, "edit")),
        **{f"{key}_1_p0": "two", f"{key}_0_p1": "kept"},
    )
    page = response.content.decode()

    assert parsed.status_code == 200
    assert f'<a href="#id_{key}_1_p0">items, item 2, quantity: Type a whole' in page
    assert f'id="id_{key}_1_p0" name="{key}_1_p0" value="two"' in page
    assert form_to(response, "/edit/").fields[f"{key}_0_p1"] == "kept"


@pages
def test_what_a_tool_refuses_inside_a_list_is_placed_there(desk: Client) -> None:
    row = refund()
    form = form_to(edit(desk, row, amount="5"), "/edit/")
    args = json.loads(form.fields["args"]) | {"items": [{"sku": "a"}, {"sku": 5}]}

    response = desk.post(
        form.action, {**form.fields, "step": "approve", "args": json.dumps(args)}
    )

    assert f'href="#id_{key_of(row, "items")}_1_p1"' in response.content.decode()


@pages
def test_the_difference_is_shown_field_by_field(desk: Client) -> None:
    row = refund()
    key = key_of(row, "items")

    page = review(
        desk, desk.get(url(row, "edit")), **{f"{key}_1_p0": "3"}
    ).content.decode()

    assert "<code>items › 2 › quantity</code>" in page
    assert '<del><bdi class="desk-val">2</bdi></del>' in page
    assert '<ins><bdi class="desk-val">3</bdi></ins>' in page
    assert "1 of 8 arguments differ" in page


@pages
def test_changing_more_brings_back_everything_that_was_typed(desk: Client) -> None:
    row = refund()
    key = key_of(row, "items")
    response = pressed(desk, desk.get(url(row, "edit")), "add", key)
    step_two = review(desk, response, **{f"{key}_2_p1": "two\u200bwords "})
    form = form_to(step_two, "/edit/")

    back = desk.post(form.action, as_sent({**form.fields, "step": "change"}))

    fields = form_to(back, "/edit/").fields
    assert fields[f"{key}-ids"] == "0,1,2"
    assert fields[f"{key}_2_p1"] == "two\u200bwords "


@pages
def test_what_a_form_claims_about_its_entries_cannot_break_it(desk: Client) -> None:
    row = refund()
    key = key_of(row, "items")

    for ids in ("0,0,0", "-1", "x", "٣", "99999999999999999999", "," * 5000, "7"):
        response = review(desk, desk.get(url(row, "edit")), **{f"{key}-ids": ids})
        assert response.status_code == 200
    row.refresh_from_db()
    assert row.status == "pending"


@pages
def test_a_huge_value_goes_along_unchanged_with_an_edit_of_another(
    desk: Client, settings: Any
) -> None:
    settings.HITL_APPROVALS = {
        **settings.HITL_APPROVALS,
        "MAX_PAYLOAD_BYTES": 40_000_000,
        "MAX_DEPTH": 120,
    }
    deep: Any = "bottom"
    for _level in range(100):
        deep = [deep]
    for data in (deep, {f"key {number}": number for number in range(3000)}):
        args = {"text": "\u202ex" * 150_000, "maybe": "old", "data": data}
        row = call("desk_anything", args)

        step_one = desk.get(url(row, "edit"))
        step_two = edit(desk, row, maybe="new")
        response = confirm(desk, step_two)

        assert "Too large to edit here." in step_one.content.decode()
        assert len(step_one.content) < 300_000
        assert len(step_two.content) < 300_000
        assert response.status_code == 302
        assert approved(row) == {**args, "maybe": "new"}


ANSWER = {
    "type": "object",
    "properties": {
        "tags": {"type": "array", "items": {"type": "string"}},
        "limits": {"type": "object", "additionalProperties": {"type": "integer"}},
        "who": {"$ref": "#/$defs/Item"},
    },
    "required": ["tags", "limits", "who"],
    **DEFS,
}


@pages
def test_an_answer_with_lists_and_objects_is_typed_in_the_same_form(
    desk: Client,
) -> None:
    row = ask("Which?", ANSWER)
    response = desk.get(url(row))
    for key in ("f1", "f1", "f0"):
        form = form_to(response, "/decide/")
        assert ("add", key) in form.buttons
        response = desk.post(form.action, as_sent({**form.fields, "add": key}))
        assert response.status_code == 200
    row.refresh_from_db()
    assert row.status == "pending"

    form = form_to(response, "/decide/")
    typed = {
        "f1_0": "12",
        "f1_1": "x",
        "f0_k0": "most",
        "f0_v0": "2512292042121000001",
        "f2_p1": "SKU",
        "decision": "respond",
    }
    response = desk.post(form.action, as_sent({**form.fields, **typed}))

    assert response.status_code == 302, response.content.decode()
    run_turn(row.turn_id)
    assert AgentTurn.objects.get(pk=row.turn_id).output == {
        "tags": ["12", "x"],
        "limits": {"most": 2512292042121000001},
        "who": {"sku": "SKU"},
    }


@pages
def test_a_question_with_thousands_of_fields_is_answered_as_json(
    desk: Client, settings: Any
) -> None:
    settings.HITL_APPROVALS = {
        **settings.HITL_APPROVALS,
        "MAX_PAYLOAD_BYTES": 40_000_000,
    }
    known = {f"field{number}": {"type": "integer"} for number in range(3000)}
    row = ask("Which?", {"type": "object", "properties": known})

    page = desk.get(url(row))
    response = send(desk, row, "respond", f0='{"field7": 7}')

    assert len(page.content) < 100_000
    assert response.status_code == 302


def test_a_name_may_not_be_there_twice() -> None:
    schema = {"type": "object", "additionalProperties": {"type": "integer"}}
    node = make("f0", "x", schema, schema, {"a": 1})
    assert isinstance(node, Group)

    node.read({"f0-mode": "form", "f0-ids": "0,1", "f0_k1": "a", "f0_v1": "2"})
    node.value()

    assert [label for _key, label, _errors in node.faults()] == ["x, name"]


def test_an_optional_group_that_was_left_out_stays_left_out() -> None:
    node = make("f0", "x", DEFS["$defs"]["Item"], DEFS, required=False)

    found = make("f0", "x", DEFS["$defs"]["Item"], DEFS, required=False)
    found.read(sent_back(node))

    assert found.value() is MISSING
    assert REFUND["items"]


def test_a_form_has_no_more_inputs_than_a_site_takes() -> None:
    known = {f"field{number}": {"type": "string"} for number in range(30)}
    item = {"type": "object", "properties": known}
    lists = {f"list{n}": {"type": "array", "items": item} for n in range(5)}
    args: dict[str, Any] = {name: [{}] * 5 for name in lists}
    call = CallArguments(
        given=args,
        order=list(args),
        schema={"type": "object", "properties": lists},
        secret=frozenset(),
        fixed=frozenset(),
        intact=True,
        digest="",
    )

    form = edit_form(call)
    again = edit_form(call)
    again.read(
        {name: text for one in form.fields for name, text in sent_back(one).items()}
    )

    sent = [name for one in form.fields for name in sent_back(one)]
    assert len(sent) < 1000
    assert any(f"{one.key}-mode" in sent for one in form.fields)
    assert same(again.values(), args)
    assert again.fault_count == 0
