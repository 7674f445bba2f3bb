"""The canonical text: exact, the same everywhere, and never a surprise."""

from __future__ import annotations

import enum
import json
import math
import sys
import time
from collections import OrderedDict
from decimal import Decimal
from types import MappingProxyType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hitl_approvals import canonical
from hitl_approvals.exceptions import PayloadRejected

TEXTS = st.text(st.characters(), max_size=12)
"""Any code point, NUL and unpaired surrogates included."""

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4)
    ),
    max_leaves=12,
)


class Color(enum.StrEnum):
    RED = "red"


class Weird(str):
    """A key that lies about equality, so that a dict holds the same text twice."""

    __slots__ = ()

    def __eq__(self, other):
        return self is other

    def __hash__(self):
        return 1


class Shouting(str):
    __slots__ = ()

    def __str__(self):
        return "SHOUTED"

    __repr__ = __str__

    def __lt__(self, other):
        return str.__gt__(self, other)


class Lying(list):
    """A list that shows other items than it stores, were it asked the polite way."""

    def __iter__(self):
        yield "other"


def nested(depth, leaf=None):
    value = leaf
    for _ in range(depth):
        value = [value]
    return value


def refusal(function, *args, **options):
    with pytest.raises(PayloadRejected) as caught:
        function(*args, **options)
    [error] = caught.value.errors
    return caught.value.reason, error["loc"]


def outcome(function, *args, **options):
    try:
        return function(*args, **options)
    except PayloadRejected as error:
        return error


@given(JSON)
@settings(deadline=None)
def test_the_text_is_what_the_standard_library_writes(value):
    expected = json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False
    )

    assert canonical.dumps(value) == expected
    assert expected.isascii()


@given(JSON)
@settings(deadline=None)
def test_reading_a_text_gives_the_value_and_the_same_text_again(value):
    text = canonical.dumps(value)

    assert canonical.loads(text) == value
    assert canonical.dumps(canonical.loads(text)) == text
    assert canonical.dumps(canonical.loads(text.encode())) == text


@given(st.text(st.sampled_from('[]{}",:\\ntrue0-.eE \ud800\x00é'), max_size=40))
@settings(deadline=None, max_examples=500)
def test_any_text_is_either_read_or_refused_with_a_reason(text):
    result = outcome(canonical.loads, text, max_bytes=50, max_depth=5)

    if isinstance(result, PayloadRejected):
        assert result.reason in {
            "not_json",
            "duplicate_key",
            "not_finite",
            "too_large",
            "too_deep",
        }
    else:
        assert result == json.loads(text)


@given(st.binary(max_size=40))
@settings(deadline=None)
def test_any_bytes_are_either_read_or_refused(data):
    result = outcome(canonical.loads, data)

    if isinstance(result, PayloadRejected):
        assert result.reason in {"not_utf8", "not_json"}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"b": 1, "a": (2, [3])}, '{"a":[2,[3]],"b":1}'),
        ({"é": "é"}, '{"\\u00e9":"\\u00e9"}'),
        ("\x00\ud800\U0001f600", '"\\u0000\\ud800\\ud83d\\ude00"'),
        (-0.0, "-0.0"),
        (1, "1"),
        (1.0, "1.0"),
        (True, "true"),
        (2**64 + 1, "18446744073709551617"),
        (OrderedDict(z=1, a=2), '{"a":2,"z":1}'),
        (MappingProxyType({"a": 1}), '{"a":1}'),
        ({Color.RED: Color.RED}, '{"red":"red"}'),
        ([Shouting("a")], '["a"]'),
        ({Shouting("a"): 1, Shouting("b"): 2}, '{"a":1,"b":2}'),
        (Lying([2]), "[2]"),
    ],
)
def test_values_have_one_text(value, text):
    assert canonical.dumps(value) == text


def test_numbers_that_are_equal_in_python_keep_their_own_texts():
    assert len({canonical.dumps(value) for value in (1, 1.0, True)}) == 3


@pytest.mark.parametrize(
    ("value", "reason", "loc"),
    [
        (Decimal(1), "not_json", ""),
        ({"a": [0, {"b": Decimal(1)}]}, "not_json", "a.1.b"),
        ({"a": {1, 2}}, "not_json", "a"),
        ([b"bytes"], "not_json", "0"),
        ([object()], "not_json", "0"),
        ([range(3)], "not_json", "0"),
        ({"a": {1: 2}}, "non_string_key", "a"),
        ({"a": {True: 2}}, "non_string_key", "a"),
        ({None: 2}, "non_string_key", ""),
        ({Weird("k"): 1, Weird("k"): 2}, "duplicate_key", ""),
        ([1, math.nan], "not_finite", "1"),
        ({"a": math.inf}, "not_finite", "a"),
        ({"a": -math.inf}, "not_finite", "a"),
    ],
)
def test_what_json_cannot_hold_is_refused_with_its_path(value, reason, loc):
    assert refusal(canonical.dumps, value) == (reason, loc)


def test_the_path_in_a_refusal_can_be_printed_and_is_bounded():
    value = {"\x00\ud800": {"k" * 100_000: Decimal(1)}}

    reason, loc = refusal(canonical.dumps, value)

    assert reason == "not_json"
    assert loc.startswith("\\x00\\ud800.kkk")
    assert loc.isprintable()
    assert len(loc) <= 200


def test_the_largest_integer_is_exact_and_the_next_one_refused():
    largest = 10**4300 - 1

    assert canonical.loads(canonical.dumps(largest)) == largest
    assert canonical.loads(canonical.dumps(-largest)) == -largest
    assert refusal(canonical.dumps, [largest + 1]) == ("too_large", "0")
    assert refusal(canonical.dumps, [-largest - 1]) == ("too_large", "0")
    assert refusal(canonical.loads, "1" + "0" * 4300) == ("too_large", "")
    assert refusal(canonical.loads, "-1" + "0" * 4300) == ("too_large", "")


def test_a_host_that_lowered_the_digit_limit_gets_the_same_refusal():
    before = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(640)
    try:
        assert refusal(canonical.dumps, 10**1000) == ("too_large", "")
        assert refusal(canonical.loads, "1" + "0" * 1000) == ("too_large", "")
    finally:
        sys.set_int_max_str_digits(before)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("1e400", "not_finite"),
        ('{"a":[-1e400]}', "not_finite"),
        ("9" * 400 + ".0", "not_finite"),
        ("NaN", "not_finite"),
        ("[Infinity]", "not_finite"),
        ('{"a":-Infinity}', "not_finite"),
        ('{"a":1,"a":1}', "duplicate_key"),
        ('[{"a":{"b":1,"c":2,"b":3}}]', "duplicate_key"),
        ('{"a":1,"\\u0061":2}', "duplicate_key"),
        ("", "not_json"),
        ("[1,]", "not_json"),
        ('{"a":1} x', "not_json"),
        ("{'a':1}", "not_json"),
        ('"\n"', "not_json"),
        ("01", "not_json"),
        ("\u0661", "not_json"),
        ("\ufeff1", "not_json"),
        ("1".encode("utf-16"), "not_utf8"),
        ('"é"'.encode("latin-1"), "not_utf8"),
        (b'"\xed\xa0\x80"', "not_utf8"),
    ],
)
def test_reading_is_strict(text, reason):
    assert refusal(canonical.loads, text) == (reason, "")


def test_escaped_surrogates_and_nul_are_read():
    assert canonical.loads('"\\ud800\\u0000"') == "\ud800\x00"
    assert canonical.loads('"\ud800"') == "\ud800"


def test_the_depth_limit_counts_containers_the_same_way_in_both_directions():
    text = "[" * 32 + "]" * 32

    assert canonical.dumps(nested(31, leaf=[])) == text
    assert canonical.loads(text) == nested(31, leaf=[])
    assert refusal(canonical.dumps, nested(32, leaf={}))[0] == "too_deep"
    assert refusal(canonical.loads, f"[{text}]") == ("too_deep", "")
    assert canonical.dumps(nested(40), max_depth=40) == "[" * 40 + "null" + "]" * 40


@pytest.mark.parametrize(
    "text",
    [
        '"' + "[" * 100 + '"',
        '["' + "{" * 100 + '\\"[[["]',
        '{"' + "[" * 100 + '":"\\\\"}',
        json.dumps([[]] * 100),
    ],
)
def test_brackets_in_strings_and_beside_each_other_are_no_depth(text):
    assert canonical.loads(text, max_depth=2) == json.loads(text)


@pytest.mark.parametrize(
    "text",
    ["[" * 100_000, "[" * 100_000 + "]" * 100_000, '{"a":' * 40_000, "[{" * 50_000],
)
@pytest.mark.parametrize("max_depth", [32, None])
def test_a_text_deeper_than_the_stack_is_refused(text, max_depth):
    with pytest.raises(PayloadRejected) as caught:
        canonical.loads(text, max_depth=max_depth)

    # Without a limit the parser may find the text unfinished before the stack ends.
    assert caught.value.reason in {"too_deep", *(["not_json"] if not max_depth else [])}


@pytest.mark.parametrize("max_depth", [32, None, 10**9])
@pytest.mark.parametrize("max_bytes", [None, canonical.MAX_BYTES])
def test_a_value_that_holds_itself_is_refused(max_depth, max_bytes):
    ring = {}
    ring["a"] = [ring]

    reason, _ = refusal(canonical.dumps, ring, max_depth=max_depth, max_bytes=max_bytes)

    assert reason in {"too_deep", "too_large"}


def test_a_small_graph_that_stands_for_an_endless_text_is_refused_at_once():
    value = ["x"]
    for _ in range(30):
        value = [value] * 2
    began = time.monotonic()

    assert refusal(canonical.dumps, value) == ("too_large", "")
    assert time.monotonic() - began < 10


def test_hostile_quotes_and_backslashes_cost_one_pass():
    began = time.monotonic()

    for text in ('"' + '\\"' * 130_000, '"\\' * 130_000, '"' * 260_001):
        refusal(canonical.loads, text)

    assert time.monotonic() - began < 10


@pytest.mark.parametrize("text", ["x" * 100, "é" * 100, "\ud800" * 100])
def test_the_size_limit_is_exact(text):
    size = len(canonical.dumps(text))

    assert canonical.dumps(text, max_bytes=size)
    assert refusal(canonical.dumps, text, max_bytes=size - 1) == ("too_large", "")


@pytest.mark.parametrize(
    ("text", "size"),
    [('"xx"', 4), ('"éé"', 6), (b'"xx"', 4), ("[1, 2]", 6), ('"\ud800"', 5)],
)
def test_the_size_limit_of_reading_counts_bytes(text, size):
    canonical.loads(text, max_bytes=size)

    assert refusal(canonical.loads, text, max_bytes=size - 1) == ("too_large", "")


@given(JSON)
@settings(deadline=None)
def test_the_running_estimate_of_the_size_is_never_too_high(value):
    size = len(canonical.dumps(value))

    canonical.dumps(value, max_bytes=size)


def test_the_value_given_is_not_changed():
    value = {"a": [1, (2,)]}

    canonical.dumps(value)

    assert value == {"a": [1, (2,)]}


def test_a_digest_names_its_form_and_stays_what_it_is():
    text = canonical.dumps({"b": [1, "é"], "a": None})

    assert canonical.digest(text) == (
        "c1:a44633ba036df25280e4fd9ef09da6f54dfe6d3611c755e31f993ab16f108f34"
    )


def test_a_text_that_is_not_canonical_has_no_digest():
    with pytest.raises(UnicodeEncodeError):
        canonical.digest('"é"')


def test_key_digests_tell_parts_apart_however_they_are_cut():
    keys = [
        canonical.key_digest("ab", "c"),
        canonical.key_digest("a", "bc"),
        canonical.key_digest("abc"),
        canonical.key_digest(["ab", "c"]),
        canonical.key_digest("1"),
        canonical.key_digest(1),
        canonical.key_digest(None),
        canonical.key_digest(),
    ]

    assert len(set(keys)) == len(keys)
    assert all(len(key) == 64 and int(key, 16) for key in keys)
    assert canonical.key_digest("ab", "c") == keys[0]


def test_a_key_may_be_made_of_more_than_a_payload_may_hold():
    long = "x" * (canonical.MAX_BYTES + 1)

    assert canonical.key_digest(long) != canonical.key_digest(long + "x")


@pytest.mark.parametrize(
    "value",
    [
        {"a": [1, 1.5, None, True, "é\U0001f600"]},
        10**300 - 1,
        -(10**300) + 1,
        nested(30, leaf=[1]),
        {"k" * 65_535: 1},
    ],
)
def test_what_every_column_can_hold_can_be_filtered(value):
    assert canonical.filterable(value) is value


@pytest.mark.parametrize(
    "value",
    [
        "\x00",
        {"a": ["\ud800"]},
        {"\udfff": 1},
        {"a\x00": 1},
        [math.nan],
        math.inf,
        10**300,
        [-(10**300)],
        nested(31, leaf=[]),
        {"k" * 65_536: 1},
        {"é" * 40_000: 1},
        {1: 2},
        [Decimal(1)],
    ],
)
def test_what_some_column_cannot_hold_is_not_filtered(value):
    assert canonical.filterable(value) is None


def test_a_value_that_holds_itself_is_not_filtered():
    ring = []
    ring.append(ring)

    assert canonical.filterable(ring) is None


@given(st.text(st.characters()))
@settings(deadline=None)
def test_printable_text_can_be_stored_and_shown_anywhere(text):
    shown = canonical.printable(text)

    assert shown.isprintable()
    assert len(shown) <= 200
    assert "\x00" not in shown
    shown.encode("utf-8")
