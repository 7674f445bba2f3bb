from __future__ import annotations

from typing import Any

import pytest
from django.template.loader import render_to_string
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from hitl_approvals.admin import limits, shapes
from hitl_approvals.admin.fields import Field
from hitl_approvals.admin.shapes import MISSING
from hitl_approvals.admin.widgets import same
from tests.admin.html_forms import as_sent, forms_of

SCHEMAS: list[dict[str, Any]] = [
    {},
    {"type": "string"},
    {"type": "string", "maxLength": 20},
    {"type": "string", "format": "date"},
    {"type": "string", "format": "date-time"},
    {"type": "integer"},
    {"type": "number"},
    {"anyOf": [{"type": "number"}, {"type": "string", "pattern": "^x"}]},
    {"type": "boolean"},
    {"enum": ["a", "b", 1, True, None, "\u202e"]},
    {"anyOf": [{"type": "string"}, {"type": "null"}]},
    {"anyOf": [{"type": "integer"}, {"type": "null"}]},
    {"anyOf": [{"type": "boolean"}, {"type": "null"}]},
    {"anyOf": [{"type": "string", "format": "date-time"}, {"type": "null"}]},
    {"type": "array", "items": {"type": "string"}},
    {"type": "object"},
    {"$ref": "#/nowhere"},
]

texts = st.text(st.characters(codec=None, categories=None), max_size=60)
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**30), 10**30),
    st.floats(allow_nan=False, allow_infinity=False),
    texts,
    st.sampled_from(
        [
            "a",
            "1",
            "true",
            "null",
            "2026-12-31",
            "2026-12-31T18:00:00Z",
            "2026-12-31T18:00:30.5+05:30",
            "2026-03-29T02:30:00",
            "0001-01-01T00:00:00Z",
            "9999-12-31T23:59:00-12:00",
        ]
    ),
)
json_values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3)
    ),
    max_leaves=6,
)


def sent_back(field: Field) -> dict[str, str]:
    """Return what a browser sends for a field that nobody touched."""
    html = render_to_string(
        "admin/hitl_approvals/_field.html", {"field": field, "labelled": True}
    )
    html.encode()  # a lone surrogate on a page is no page at all
    [form] = forms_of(f'<form method="post">{html}</form>')
    return as_sent(form.fields)


@given(
    st.sampled_from(SCHEMAS), st.one_of(st.just(MISSING), json_values), st.booleans()
)
@example({"type": "string"}, "\r", False)
@example({"type": "boolean"}, None, False)
@example({"type": "string"}, None, False)
@example({"type": "string"}, "\n\n", False)
@example({"type": "string", "format": "date"}, "\n", False)
@example({"type": "string", "format": "date-time"}, "\n", True)
@example({"type": "string"}, "\ufdd0\x00\ud800", True)
@settings(max_examples=400, suppress_health_check=[HealthCheck.too_slow], deadline=None)
def test_an_untouched_field_stands_for_the_value_it_was_made_from(
    schema: dict[str, Any], value: Any, required: bool
) -> None:
    required = required and value is not MISSING
    shape = shapes.read(schema, schema)
    field = Field(index=0, name="x", shape=shape, original=value, required=required)

    again = Field(index=0, name="x", shape=shape, original=value, required=required)
    again.read(sent_back(field))

    assert not again.changed
    assert same(again.value(), value)
    assert again.errors == []


@given(st.sampled_from(SCHEMAS), json_values, json_values)
@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow], deadline=None)
def test_a_value_that_was_put_into_a_field_comes_out_or_is_refused_aloud(
    schema: dict[str, Any], original: Any, value: Any
) -> None:
    shape = shapes.read(schema, schema)
    field = Field(index=0, name="x", shape=shape, original=original)
    if field.widget != "json":
        return

    field.load(value)
    again = Field(index=0, name="x", shape=shape, original=original)
    again.read(sent_back(field))

    assert same(again.value(), value)


@pytest.mark.parametrize(
    ("schema", "original", "typed", "value"),
    [
        ({"type": "string"}, "a", "b ", "b "),
        ({"type": "string"}, "a", "", ""),
        ({"type": "integer"}, 1, " 2 ", 2),
        ({"type": "integer"}, 1, "-9007199254740993", -9007199254740993),
        ({"type": "integer"}, 1.0, "1.0", 1.0),
        ({"type": "integer"}, "5", "5", 5),
        ({"type": "number"}, 1, "1.50", 1.5),
        ({"type": "number"}, 1.5, "2", 2),
        (SCHEMAS[7], "240.00", "240", "240"),
        (SCHEMAS[7], 240, "250", 250),
        (SCHEMAS[7], 240.5, "0.10", "0.10"),
        ({"enum": [1, "1", True]}, 1, "1", "1"),
        ({"enum": [1, "1", True]}, 1, "2", True),
        ({"type": "boolean"}, True, "1", False),
        ({}, 1, "[1.0]", [1.0]),
    ],
)
def test_what_is_typed_keeps_the_kind_of_the_field(
    schema: dict[str, Any], original: Any, typed: str, value: Any
) -> None:
    field = Field(
        index=0, name="x", shape=shapes.read(schema, schema), original=original
    )

    field.read({"f0": typed})

    assert same(field.value(), value)
    assert field.errors == []


@pytest.mark.parametrize(
    ("schema", "original", "typed"),
    [
        ({"type": "integer"}, 1, ""),
        ({"type": "integer"}, 1, "1.5"),
        ({"type": "integer"}, 1, "1e3"),
        ({"type": "integer"}, 1, "١"),
        ({"type": "integer"}, 1, "9" * 5000),
        ({"type": "number"}, 1, "1e999"),
        ({"type": "number"}, 1, "inf"),
        ({"type": "string", "format": "date"}, "2026-12-31", "31.12.2026"),
        ({"enum": ["a"]}, "a", ""),
        ({"enum": ["a"]}, "a", "7"),
        ({"enum": ["a"]}, "a", "null"),
        ({}, 1, ""),
        ({}, 1, "NaN"),
        ({}, 1, '{"a":1,"a":2}'),
        ({}, 1, "[" * 100),
        ({}, 1, '"' + "x" * 300_000 + '"'),
    ],
)
def test_what_cannot_be_read_is_said_and_kept(
    schema: dict[str, Any], original: Any, typed: str
) -> None:
    field = Field(
        index=0, name="x", shape=shapes.read(schema, schema), original=original
    )

    field.read({"f0": typed})

    assert field.value() is MISSING
    assert len(field.errors) == 1
    assert field.raw == typed


def test_an_argument_that_was_left_out_stays_left_out() -> None:
    shape = shapes.read({"type": "integer", "default": 5}, {})
    field = Field(index=0, name="x", shape=shape)

    field.read({"f0": ""})

    assert field.value() is MISSING
    assert field.errors == []
    assert "then uses 5" in field.absent_words


def test_a_post_without_the_field_changes_nothing() -> None:
    field = Field(
        index=0, name="x", shape=shapes.read({"type": "string"}, {}), original="a"
    )

    field.read({})

    assert field.value() == "a"


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "string"}, "text"),
        ({"type": "string", "format": "uuid"}, "UUID"),
        ({"type": "integer"}, "whole number, exact"),
        (SCHEMAS[7], "decimal, exact"),
        (
            {"anyOf": [{"type": "integer"}, {"type": "null"}]},
            "whole number, exact, or none",
        ),
        ({"enum": ["EUR", "GBP"]}, "one of EUR, GBP"),
        ({"const": 1}, "one of 1"),
        ({"type": "array", "items": {"$ref": "#/$defs/I"}}, "list of objects"),
        ({"$ref": "#/$defs/I"}, "object"),
        ({"$ref": "#/$defs/Loop"}, "any value"),
        ({"anyOf": [{"type": "integer"}, {"type": "string"}]}, "one of several types"),
        (True, "any value"),
        ([], "any value"),
        ({"enum": "x", "type": "string"}, "text"),
        ({"anyOf": []}, "any value"),
    ],
)
def test_a_schema_is_said_in_words(schema: Any, words: str) -> None:
    root = {
        "$defs": {"I": {"type": "object"}, "Loop": {"$ref": "#/$defs/Loop"}},
    }

    assert shapes.read(schema, root).words == words


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"exclusiveMinimum": 0.0}, "more than 0"),
        ({"minimum": -3.0, "maximum": 10.0}, "at least -3, at most 10"),
        ({"exclusiveMaximum": 0.5}, "less than 0.5"),
        ({"multipleOf": 100}, "a multiple of 100"),
        ({"maximum": 1e300}, "at most 1e+300"),
    ],
)
def test_a_bound_is_said_as_a_person_writes_it(
    schema: dict[str, Any], words: str
) -> None:
    assert limits.words(schema) == words
