"""A schema that an agent wrote: checked like any other, and never for longer."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hitl_approvals.patterns import MOST_STATES, Pattern, UnsupportedPatternError
from hitl_approvals.schemas import check_schema, validate_against

PATTERNS = [
    *("", "a", "^a$", "a|b", "(a|b)*c", "^(a+)+$", "(?:ab){2,3}", "a{0}", "a{2}"),
    *("a?b?c?", "[a-c]+", "[^a]", "[^a-b]$", r"\d+", r"\w\b", r"\Bb", r"[\d\s-]", "."),
    *(
        "a*?b",
        "^$",
        "(|a)b",
        r"\.",
        "a$",
        "^a|b$",
        r"[\]\\^]",
        r"\Aab\Z",
        "(a*)*",
        "(?i)[^A]B",
        "(?s)a.b",
        "(?i)É",
    ),
    *(
        "^[a-z]+(-[a-z]+)*$",
        r"^[^@]+@[^@]+\.[^@]+$",
        "é|\u0130",
        r"[^\W\d]",
        "(a|ab)(c|bc)$",
    ),
]
DOUBLES = {
    "$ref": "#/$defs/d0",
    "$defs": {
        **{f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(40)},
        "d40": {},
    },
}
HARMFUL = {
    "a pattern with a million ways": ({"pattern": "^(a+)+$"}, "a" * 60 + "!"),
    "choices that double": ({"pattern": "^" + "(a|a)" * 60 + "$"}, "a" * 59),
    "repeats that overlap": ({"pattern": "a*" * 20 + "b"}, "a" * 20_000),
    "a pattern of names": ({"patternProperties": {"^(a+)+$": {}}}, {"a" * 60 + "!": 1}),
    "further names": (
        {"patternProperties": {"^(a+)+$": {}}, "additionalProperties": False},
        {"a" * 60 + "!": 1},
    ),
    "names past us": (
        {"patternProperties": {"^(a+)+$": {}}, "unevaluatedProperties": False},
        {"a" * 60 + "!": 1},
    ),
    "references that double": (DOUBLES, 1),
    "another draft inside": (
        {"$schema": "https://json-schema.org/draft/2020-12/schema", "allOf": [DOUBLES]},
        1,
    ),
    "another draft at each step": (
        {
            "items": {
                "$schema": "https://json-schema.org/draft/2020-12/schema",
                "pattern": "^(a+)+$",
            }
        },
        ["a" * 60 + "!"],
    ),
    "items compared each with each": (
        {"uniqueItems": True},
        [{"a": n} for n in range(30_000)],
    ),
    "many names for many items": (
        {"items": {"properties": {f"p{n}": {} for n in range(900)}}},
        [{}] * 50_000,
    ),
    "many values for many items": (
        {"items": {"enum": [f"p{n}" for n in range(5000)]}},
        ["p4999"] * 30_000,
    ),
}


@pytest.mark.parametrize("name", HARMFUL)
def test_what_would_take_for_ever_does_not_fit_soon(name):
    schema, value = HARMFUL[name]
    began = time.process_time()

    errors = validate_against(schema, value)

    # Names that the pattern does not find may be anything.
    assert (errors == []) is (name == "a pattern of names")
    assert time.process_time() - began < 20


def test_only_a_schema_of_the_sites_own_may_have_very_many_parts():
    schema = {"properties": {f"p{n}": {} for n in range(9000)}}

    assert check_schema(schema) == []
    assert "takes too much work" in check_schema(schema, short=True)[0]["message"]


def test_a_long_value_may_take_longer():
    item = {"$ref": "#/$defs/item"}
    named = {name: {"type": "integer"} for name in "abcde"}
    item_schema = {"type": "object", "properties": named, "required": list(named)}
    schema = {"items": item, "$defs": {"item": item_schema}}

    assert validate_against(schema, [dict.fromkeys("abcde", 1)] * 20_000) == []


@pytest.mark.parametrize("pattern", PATTERNS)
@settings(max_examples=20, deadline=None)
@given(text=st.text("abc-1 .@é\n", max_size=8))
def test_a_pattern_finds_what_pythons_own_finds(pattern, text):
    found = Pattern(pattern).found_in(text, lambda _units: None)

    assert found is (re.search(pattern, text) is not None)


@pytest.mark.parametrize(
    "pattern",
    ["(?=a)b", "(?!a)b", "(?<=a)b", r"(a)\1", "(?m)^a", "(?:a{1000}){1000}", "(?i:a)"],
)
def test_a_pattern_that_cannot_be_bounded_is_not_read(pattern):
    with pytest.raises(UnsupportedPatternError):
        Pattern(pattern)
    assert (
        "is not checked" in validate_against({"pattern": pattern}, "ab")[0]["message"]
    )


def test_a_pattern_may_be_large():
    assert Pattern(f"^a{{{MOST_STATES - 10}}}$").found_in(
        "a" * (MOST_STATES - 10), lambda _units: None
    )


@pytest.mark.parametrize(
    ("schema", "value", "fits"),
    [
        ({"pattern": "^[a-z]+(-[a-z]+)*$"}, "a-long-and-proper-slug-" * 20 + "x", True),
        ({"pattern": "^[a-z]+(-[a-z]+)*$"}, "a--b", False),
        (
            {"patternProperties": {"^x-": {"type": "integer"}}},
            {"x-a": 1, "b": ""},
            True,
        ),
        ({"patternProperties": {"^x-": {"type": "integer"}}}, {"x-a": ""}, False),
        (
            {"patternProperties": {"^x": {}}, "additionalProperties": False},
            {"xa": 1},
            True,
        ),
        (
            {"patternProperties": {"^x+$": {}}, "additionalProperties": False},
            {"xx": 1, "y": 1},
            False,
        ),
        ({"additionalProperties": {"type": "string"}}, {"y": 1}, False),
        ({"properties": {"y": {}}, "additionalProperties": False}, {"y": 1}, True),
        ({"uniqueItems": True}, [1, 2, 1], False),
        ({"uniqueItems": True}, [{"a": 1}, {"a": 2}, "x"], True),
        ({"items": {"type": "number"}}, list(range(20_000)), True),
        (
            {"properties": {"a": {}}, "unevaluatedProperties": False},
            {"a": 1, "b": 2},
            False,
        ),
    ],
)
def test_what_is_no_harm_is_checked_as_ever(schema, value, fits):
    assert (validate_against(schema, value) == []) is fits
