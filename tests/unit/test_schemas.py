"""Signatures: what a tool takes, as a schema and as values, there and back."""

from __future__ import annotations

import copy
import enum
import functools
import json
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Annotated, Any, Literal
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    PlainSerializer,
    SecretStr,
)

from hitl_approvals import canonical
from hitl_approvals.exceptions import HitlConfigurationError, PayloadRejected
from hitl_approvals.schemas import ToolSignature, check_schema, validate_against


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Item:
    sku: str
    price: Decimal


class Address(BaseModel):
    street: str
    since: date = date(2020, 1, 1)
    origin: str = Field("shop", alias="from")


class StrictTransfer(BaseModel):
    model_config = ConfigDict(strict=True)

    amount: Decimal
    at: datetime


class Tree(BaseModel):
    name: str
    children: list[Tree] = []


class WithSet(BaseModel):
    type: str = "x"
    tags: set[str]


class WithOddNames(BaseModel):
    type: int
    default: set[str]


class WithOddDefault(BaseModel):
    choice: dict[str, str] = {"type": "set"}


class Hiding(BaseModel):
    shown: int
    hidden: int = Field(0, exclude=True)


class Receipt(BaseModel):
    id: UUID
    total: Decimal


def refuse_thirteen(value: int) -> int:
    if value == 13:
        raise KeyError(value)
    return value


def refund(
    order_id: str,
    amount: Annotated[Decimal, Field(description="In euro.", gt=0)],
    *,
    note: str | None = None,
    fee: Decimal = Decimal("1.50"),
    color: Color = Color.RED,
    since: date = date(2024, 2, 29),
    schema: int = 1,
    copy: Literal["yes", "no"] = "no",
    model_x: list[Item] = [],  # noqa: B006
) -> dict:
    """Refund an order.

    It cannot be undone.

    Args:
        order_id (str): The order,
            as the customer wrote it.
            Example: 12-34.
        amount: Is described by its Field.
        note: Shown to the customer.
        nobody: Is no parameter.

    Returns:
        What was paid.
    """
    return {}


REFUND = ToolSignature.of(refund, name="refund")


def signature_of(*annotations, returns=None, **named):
    """Make a signature of a function with these annotations."""
    hints = dict(zip("abcdefgh", annotations, strict=False)) | named
    parameters = ", ".join(hints)
    namespace = {}
    exec(f"def function({parameters}): ...", namespace)
    function = namespace["function"]
    function.__annotations__ = hints | ({} if returns is None else {"return": returns})
    return ToolSignature.of(function, name="tool")


def refusal(function, *args):
    with pytest.raises(PayloadRejected) as caught:
        function(*args)
    return caught.value.reason, caught.value.errors


# The schema


def test_the_schema_lists_the_parameters_and_refuses_others():
    schema = REFUND.args_schema

    assert schema["type"] == "object"
    assert schema["title"] == "refund"
    assert schema["additionalProperties"] is False
    assert schema["required"] == ["order_id", "amount"]
    assert tuple(schema["properties"]) == REFUND.parameters
    assert REFUND.parameters[:2] == ("order_id", "amount")
    Draft202012Validator.check_schema(schema)


def test_the_schema_shows_constraints_and_descriptions():
    properties = REFUND.args_schema["properties"]

    assert properties["amount"]["description"] == "In euro."
    assert properties["amount"]["anyOf"][0]["exclusiveMinimum"] == 0
    assert properties["order_id"]["description"] == (
        "The order, as the customer wrote it. Example: 12-34."
    )
    assert properties["note"]["description"] == "Shown to the customer."
    assert "description" not in properties["fee"]


def test_the_schema_shows_defaults_through_their_types():
    properties = REFUND.args_schema["properties"]

    assert {
        name: schema["default"]
        for name, schema in properties.items()
        if "default" in schema
    } == {
        "note": None,
        "fee": "1.50",
        "color": "red",
        "since": "2024-02-29",
        "schema": 1,
        "copy": "no",
        "model_x": [],
    }


def test_the_description_leaves_the_arguments_out():
    assert REFUND.description == (
        "Refund an order.\n\nIt cannot be undone.\n\nReturns:\n    What was paid."
    )


def test_a_default_that_json_cannot_hold_is_not_shown():
    def tool(
        a: Any = object(),  # noqa: B008
        b: str = None,  # noqa: RUF013
        c: float = math.inf,
        d: Any = {1: 2},  # noqa: B006
    ) -> None: ...

    properties = ToolSignature.of(tool, name="tool").args_schema["properties"]

    assert "default" not in properties["a"]
    assert properties["b"]["default"] is None
    assert "default" not in properties["c"]
    assert properties["d"]["default"] == {"1": 2}


def test_a_tool_without_parameters_takes_nothing():
    signature = signature_of()

    assert signature.args_schema["properties"] == {}
    assert signature.coerce({}) == {}
    assert refusal(signature.coerce, {"a": 1})[0] == "does_not_fit"
    assert signature.description == ""


def test_the_digest_is_that_of_the_canonical_schema_and_tells_changes():
    text = canonical.dumps({"args": REFUND.args_schema})

    assert REFUND.schema_digest == canonical.digest(text)
    assert ToolSignature.of(refund, name="refund").schema_digest == REFUND.schema_digest
    assert len({signature_of(kind).schema_digest for kind in (int, str, float)}) == 3
    one = signature_of(Annotated[int, Field(gt=1)])
    assert one.schema_digest != signature_of(Annotated[int, Field(gt=2)]).schema_digest


def test_annotations_written_as_text_and_wrapped_functions_are_read():
    @functools.wraps(refund)
    def wrapper(*args, **kwargs):
        return refund(*args, **kwargs)

    assert ToolSignature.of(wrapper, name="refund").args_schema == REFUND.args_schema


def test_async_functions_and_methods_have_signatures_too():
    class Desk:
        async def act(self, a: int) -> Receipt: ...

    signature = ToolSignature.of(Desk().act, name="act")

    assert signature.parameters == ("a",)
    assert refusal(signature.load_result, {})[0] == "does_not_fit"


# What is refused when a tool is declared


def open_ended(*args: int) -> None: ...
def open_named(**kwargs: int) -> None: ...
def positional(a: int, /) -> None: ...
def unannotated(a) -> None: ...
def underscored(_a: int) -> None: ...
def unknown_type(a: Nonsense) -> None: ...  # noqa: F821
def field_default(a: int = Field(gt=1)) -> None: ...


@pytest.mark.parametrize(
    ("function", "match"),
    [
        (open_ended, "args of tool tool is open-ended"),
        (open_named, "kwargs of tool tool is open-ended"),
        (positional, "passable by name"),
        (unannotated, "Parameter a of tool tool needs a type annotation"),
        (underscored, "underscore"),
        (unknown_type, "Nonsense"),
        (field_default, "Annotated"),
        (len, "must be a function"),
        (Receipt, "must be a function"),
        (functools.partial(refund, "1"), "must be a function"),
    ],
)
def test_a_function_that_cannot_be_a_tool_is_refused(function, match):
    with pytest.raises(HitlConfigurationError, match=match):
        ToolSignature.of(function, name="tool")


@pytest.mark.parametrize(
    ("annotation", "match"),
    [
        (type("Opaque", (), {}), "cannot be written as JSON"),
        (Callable[[], int], "cannot be written as JSON"),
        (set[str], "takes a set"),
        (list[frozenset[int]], "takes a frozenset"),
        (dict[str, WithSet | None], "takes a set"),
        (WithOddNames, "takes a set"),
        (Iterable[int], "takes a generator"),
        (Annotated[int, Field(alias="b")], "alias"),
        (Annotated[int, Field(validation_alias="b")], "alias"),
        (Annotated[int, Field(serialization_alias="b")], "alias"),
        (Annotated[int, Field(exclude=True)], "exclude"),
        (Annotated[int, Field(default=3)], "default"),
        (Annotated[int, Field(default_factory=int)], "default"),
        (Annotated[int, Field(json_schema_extra={"a": math.nan})], "JSON"),
    ],
)
def test_a_type_that_cannot_go_there_and_back_is_refused(annotation, match):
    with pytest.raises(HitlConfigurationError, match=match):
        signature_of(annotation)


@pytest.mark.parametrize("annotation", [type("Opaque", (), {}), Iterable[int]])
def test_a_result_that_cannot_be_recorded_is_refused(annotation):
    with pytest.raises(HitlConfigurationError):
        signature_of(returns=annotation)


# Arguments


CASES = [
    (str, "a\x00é", "a\x00é"),
    (str, "\ud800", "\ud800"),
    (int, 2**70, 2**70),
    (int, "5", 5),
    (float, 1, 1.0),
    (bool, True, True),
    (Decimal, "12.50", Decimal("12.50")),
    (Decimal, 0.1, Decimal("0.1")),
    (datetime, "2024-01-01T10:00:00Z", datetime(2024, 1, 1, 10, tzinfo=timezone.utc)),  # noqa: UP017
    (datetime, "2024-01-01T10:00:00", datetime(2024, 1, 1, 10)),  # noqa: DTZ001
    (date, "2024-02-29", date(2024, 2, 29)),
    (timedelta, "PT1H0.5S", timedelta(hours=1, seconds=0.5)),
    (
        UUID,
        "018f3a5e-0000-7000-8000-000000000000",
        UUID("018f3a5e-0000-7000-8000-000000000000"),
    ),
    (Color, "blue", Color.BLUE),
    (Literal["a", 1], 1, 1),
    (int | None, None, None),
    (list[Decimal], ["1", 2], [Decimal(1), Decimal(2)]),
    (dict[int, date], {"1": "2024-01-01"}, {1: date(2024, 1, 1)}),
    (tuple[int, str], [1, "a"], (1, "a")),
    (bytes, "é", "é".encode()),
    (Item, {"sku": "a", "price": "1.0"}, Item("a", Decimal("1.0"))),
    (Address, {"street": "x", "from": "y"}, Address(**{"street": "x", "from": "y"})),
    (
        StrictTransfer,
        {"amount": "1.5", "at": "2024-01-01T00:00:00Z"},
        StrictTransfer(
            amount=Decimal("1.5"),
            at=datetime(2024, 1, 1, tzinfo=timezone.utc),  # noqa: UP017
        ),
    ),
    (Tree, {"name": "a", "children": [{"name": "b"}]}, None),
    (Annotated[Decimal, Field(gt=0, description="d")], "0.01", Decimal("0.01")),
    (Any, {"a": [1, None, "\ud800"]}, {"a": [1, None, "\ud800"]}),
    (Any, "\ud800", "\ud800"),
    (dict, {"\ud800": 1}, {"\ud800": 1}),
    (WithOddDefault, {}, WithOddDefault()),
]


@pytest.mark.parametrize(("annotation", "given_", "expected"), CASES)
def test_arguments_become_python_values_and_json_again(annotation, given_, expected):
    signature = signature_of(annotation)

    values = signature.coerce({"a": given_})
    dumped = signature.dump_args(values)

    if expected is not None:
        assert values == {"a": expected}
        assert type(values["a"]) is type(expected)
    canonical.dumps(dumped)
    assert signature.coerce(dumped) == values
    assert signature.dump_args(signature.coerce(dumped)) == dumped


@pytest.mark.parametrize(("annotation", "given_", "expected"), CASES)
def test_python_values_are_taken_as_well(annotation, given_, expected):
    signature = signature_of(annotation)
    values = signature.coerce({"a": given_})

    assert signature.coerce(values) == values


@given(
    amount=st.decimals(allow_nan=False, allow_infinity=False),
    at=st.datetimes(timezones=st.just(timezone.utc)),  # noqa: UP017
    uid=st.uuids(),
    items=st.lists(
        st.fixed_dictionaries(
            {"sku": st.text(st.characters()), "price": st.decimals("-9e9", "9e9")}
        ),
        max_size=3,
    ),
    color=st.sampled_from(Color),
    free=st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(st.characters()),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=5,
    ),
)
@settings(deadline=None)
def test_whatever_is_dumped_loads_as_the_very_same_values(**values):
    signature = WIDE
    coerced = signature.coerce(values)

    text = canonical.dumps(signature.dump_args(coerced))

    assert signature.coerce(canonical.loads(text)) == coerced


WIDE = signature_of(
    amount=Decimal, at=datetime, uid=UUID, items=list[Item], color=Color, free=Any
)


def test_defaults_are_left_to_the_function():
    args = {"order_id": "1", "amount": "2"}

    values = REFUND.coerce(args)

    assert values == {"order_id": "1", "amount": Decimal(2)}
    assert REFUND.dump_args(values) == {"order_id": "1", "amount": "2"}
    assert REFUND.coerce(args | {"fee": 3})["fee"] == Decimal(3)


def test_the_arguments_given_are_not_changed():
    args = {"order_id": "1", "amount": "2", "model_x": [{"sku": "a", "price": 1}]}
    before = copy.deepcopy(args)

    REFUND.coerce(args)

    assert args == before


@pytest.mark.parametrize(
    ("args", "errors"),
    [
        (
            {"order_id": "1"},
            [{"loc": "amount", "message": "Is missing."}],
        ),
        (
            {"order_id": "1", "amount": 1, "amont": 2, "x\x00\ud800": 3},
            [
                {"loc": "amont", "message": "There is no field of this name."},
                {"loc": "x\\x00\\ud800", "message": "There is no field of this name."},
            ],
        ),
        (
            {"order_id": "1", "amount": 0},
            [{"loc": "amount", "message": "Input should be greater than 0"}],
        ),
        (
            {"order_id": 1, "amount": 1},
            [{"loc": "order_id", "message": "Input should be a valid string"}],
        ),
        (
            {"order_id": "1", "amount": 1, "model_x": [{"sku": "a"}]},
            [{"loc": "model_x.0.price", "message": "Is missing."}],
        ),
        (
            {"order_id": "1", "amount": 1, "fee": None},
            [
                {
                    "loc": "fee",
                    "message": "Decimal input should be an integer, float, string "
                    "or Decimal object",
                }
            ],
        ),
        ([1], [{"loc": "", "message": "The arguments must be an object."}]),
        (None, [{"loc": "", "message": "The arguments must be an object."}]),
    ],
)
def test_arguments_that_do_not_fit_are_refused_with_their_places(args, errors):
    assert refusal(REFUND.coerce, args) == ("does_not_fit", errors)


def test_the_detail_of_a_refusal_repeats_the_errors_for_the_model():
    with pytest.raises(PayloadRejected) as caught:
        REFUND.coerce({"amount": "much"})

    assert caught.value.detail == (
        "Not accepted as the arguments of refund: order_id: Is missing; "
        "amount: Input should be a valid decimal."
    )


def test_a_strict_model_is_told_what_is_wrong_in_words_of_json():
    args = {"a": {"amount": "much", "at": "2024-01-01T00:00:00Z"}}

    assert refusal(signature_of(StrictTransfer).coerce, args) == (
        "does_not_fit",
        [{"loc": "a.amount", "message": "Input should be a valid decimal"}],
    )


def test_a_thousand_errors_are_counted_not_listed():
    items = [{}] * 1000

    _, errors = refusal(REFUND.coerce, {"order_id": "1", "amount": 1, "model_x": items})

    assert len(errors) == 21
    assert errors[-1] == {"loc": "", "message": "And 1980 more."}


@pytest.mark.parametrize("value", ["inf", "NaN", math.inf, math.nan])
def test_numbers_that_are_not_finite_do_not_fit(value):
    assert refusal(signature_of(float).coerce, {"a": value})[0] == "does_not_fit"
    assert refusal(signature_of(Decimal).coerce, {"a": value})[0] == "does_not_fit"


def test_a_validator_that_breaks_refuses():
    signature = signature_of(Annotated[int, AfterValidator(refuse_thirteen)])

    reason, [error] = refusal(signature.coerce, {"a": 13})

    assert reason == "does_not_fit"
    assert "KeyError" in error["message"]
    assert signature.coerce({"a": 12}) == {"a": 12}


@pytest.mark.parametrize(
    ("annotation", "value", "reason"),
    [
        (SecretStr, "hunter2", "not_reversible"),
        (Hiding, {"shown": 1, "hidden": 2}, "not_reversible"),
        (Any, Decimal(1), "not_reversible"),
        (
            Annotated[int, PlainSerializer(lambda value: value // 2)],
            3,
            "not_reversible",
        ),
        (Annotated[int, PlainSerializer(lambda value: 1 / 0)], 3, "not_json"),
        (Annotated[int, PlainSerializer(str)], 3, None),
        (Any, math.nan, "not_reversible"),
        (Any, [math.inf], "not_reversible"),
        (Any, object(), "not_json"),
        (bytes, b"\xff", "not_json"),
    ],
)
def test_what_would_run_as_something_else_is_never_dumped(annotation, value, reason):
    signature = signature_of(annotation)
    values = signature.coerce({"a": value})

    if reason is None:
        assert signature.coerce(signature.dump_args(values)) == values
        return
    found, errors = refusal(signature.dump_args, values)
    assert found == reason
    assert all("hunter2" not in error["message"] for error in errors)


def test_values_that_were_not_coerced_are_not_dumped():
    reason, errors = refusal(REFUND.dump_args, {"order_id": "1", "amount": "2"})

    assert reason == "not_reversible"
    assert [error["loc"] for error in errors] == ["amount"]
    assert refusal(REFUND.dump_args, {"order_id": "1"})[0] == "does_not_fit"
    coerced = REFUND.coerce({"order_id": "1", "amount": "2"})
    with pytest.raises(PayloadRejected):
        REFUND.dump_args(coerced | {"extra": 1})


# Results


@pytest.mark.parametrize(
    ("returns", "value", "dumped", "loaded"),
    [
        (dict, {"a": Decimal("1.50")}, {"a": "1.50"}, {"a": "1.50"}),
        (dict, {1: "a"}, {"1": "a"}, {"1": "a"}),
        (
            dict[str, Decimal],
            {"a": Decimal("1.50")},
            {"a": "1.50"},
            {"a": Decimal("1.50")},
        ),
        (type(None), None, None, None),
        (Any, (1, date(2024, 1, 1)), [1, "2024-01-01"], [1, "2024-01-01"]),
        (str, "\ud800\x00", "\ud800\x00", "\ud800\x00"),
        (Any, "\ud800\x00", "\ud800\x00", "\ud800\x00"),
        (Color, Color.RED, "red", Color.RED),
        (set[int], {1}, [1], {1}),
        (
            Receipt,
            Receipt(id=UUID(int=1), total=Decimal("2.0")),
            {"id": str(UUID(int=1)), "total": "2.0"},
            Receipt(id=UUID(int=1), total=Decimal("2.0")),
        ),
        (
            Address,
            Address(street="x"),
            {"street": "x", "since": "2020-01-01", "from": "shop"},
            Address(street="x"),
        ),
        (Receipt | None, None, None, None),
    ],
)
def test_results_go_through_the_return_annotation(returns, value, dumped, loaded):
    signature = signature_of(returns=returns)

    assert signature.dump_result(value) == dumped
    assert signature.load_result(json.loads(json.dumps(dumped))) == loaded


def test_a_return_annotation_of_none_is_one():
    def tool() -> None: ...

    signature = ToolSignature.of(tool, name="tool")

    assert signature.dump_result(None) is None
    assert refusal(signature.load_result, 1)[0] == "does_not_fit"


def test_without_a_return_annotation_a_result_is_json_as_it_is():
    signature = signature_of()

    assert signature.dump_result({"a": (1, "\ud800")}) == {"a": [1, "\ud800"]}
    assert signature.load_result({"a": [1]}) == {"a": [1]}
    assert refusal(signature.dump_result, {"a": Decimal(1)})[0] == "not_json"
    assert refusal(signature.dump_result, {1: 1})[0] == "non_string_key"


@pytest.mark.parametrize("returns", [dict, Any, list, None])
@pytest.mark.parametrize("number", [math.nan, math.inf])
def test_a_result_that_is_not_finite_is_refused_not_written_as_null(returns, number):
    value = {"a": [number]} if returns is not list else [number]

    assert refusal(signature_of(returns=returns).dump_result, value)[0] == "not_finite"


def test_a_result_that_json_cannot_hold_is_refused():
    ring = []
    ring.append(ring)

    for returns in (dict, Any, Receipt, None):
        signature = signature_of(returns=returns)
        assert refusal(signature.dump_result, object())[0] == "not_json"
        assert refusal(signature.dump_result, ring)[0] in {"not_json", "too_deep"}


def test_a_result_outside_its_annotation_is_written_for_what_it_is():
    signature = signature_of(returns=Receipt)

    assert signature.dump_result({"id": 1}) == {"id": 1}
    assert refusal(signature.load_result, {"id": 1}) == (
        "does_not_fit",
        [
            {
                "loc": "id",
                "message": "UUID input should be a string, bytes or UUID object",
            },
            {"loc": "total", "message": "Is missing."},
        ],
    )


# JSON Schema


@pytest.mark.parametrize(
    ("schema", "value", "errors"),
    [
        (True, 1, []),
        ({}, {"a": [1]}, []),
        ({"type": "integer"}, 1, []),
        ({"type": "integer"}, True, [("", "True is not of type 'integer'")]),
        ({"type": "string"}, 1, [("", "1 is not of type 'string'")]),
        (
            {"properties": {"a": {"items": {"type": "integer"}}}},
            {"a": [1, "x"]},
            [("a.1", "'x' is not of type 'integer'")],
        ),
        ({"maxLength": 2}, "abc", [("", "'abc' is too long")]),
        ({"maxLength": 2}, "x" * 500, [("", "The value is too long")]),
        ({"format": "date-time"}, "2024-01-01T00:00:00Z", []),
        ({"format": "date-time"}, "2024-01-01T00:00:00", []),
        ({"format": "date-time"}, 5, []),
        ({"format": "date"}, "2024-02-29", []),
        ({"format": "uuid"}, "018f3a5e-0000-7000-8000-000000000000", []),
        ({"$defs": {"x": {"type": "null"}}, "$ref": "#/$defs/x"}, None, []),
    ],
)
def test_a_value_is_told_where_it_does_not_fit_a_schema(schema, value, errors):
    found = validate_against(schema, value)

    assert [(error["loc"], error["message"]) for error in found] == errors


@pytest.mark.parametrize(
    ("format_", "value"),
    [
        ("date-time", "yesterday"),
        ("date-time", "2024-01-01"),
        ("date-time", "2024-13-01T00:00:00Z"),
        ("date-time", ""),
        ("date", "2023-02-29"),
        ("uuid", "x"),
        ("email", "x"),
        ("ipv4", "1.2.3.400"),
    ],
)
def test_formats_are_checked(format_, value):
    assert len(validate_against({"format": format_}, value)) == 1


@pytest.mark.parametrize(
    "schema",
    [
        None,
        3,
        "x",
        [],
        {"type": "strng"},
        {"type": 5},
        {"pattern": "("},
        {"properties": []},
    ],
)
def test_what_is_no_schema_fits_nothing_and_is_told_so(schema):
    errors = check_schema(schema)

    assert len(errors) == 1
    assert errors[0]["message"].startswith("The schema itself cannot be used: ")
    assert validate_against(schema, "x") == errors


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"$ref": "#/nowhere"},
        {"$ref": "https://example.com/schema.json"},
        {"$ref": "file:///etc/hostname"},
        {"$dynamicRef": "https://example.com/schema.json#x"},
        {"multipleOf": 0.1},
    ],
)
def test_a_schema_that_fails_in_use_fits_nothing(schema, monkeypatch):
    fetched = []
    monkeypatch.setattr("urllib.request.urlopen", fetched.append)

    [error] = validate_against(schema, 10**400)

    assert fetched == []
    assert error["message"].startswith("The schema itself cannot be used: ")


def test_a_proper_schema_has_no_errors():
    assert check_schema(REFUND.args_schema) == []


def test_errors_are_bounded_in_number_and_length_and_can_be_shown():
    schema = {"items": {"type": "integer"}}

    errors = validate_against(schema, ["\x00\ud800" + "x" * 10_000] * 1000)

    assert len(errors) == 20
    assert all(len(error["message"]) <= 200 for error in errors)
    assert all(error["message"].isprintable() for error in errors)


def test_dumped_arguments_fit_their_own_schema():
    values = REFUND.coerce(
        {
            "order_id": "1",
            "amount": "2.50",
            "color": "blue",
            "model_x": [{"sku": "a", "price": 1}],
        }
    )

    assert validate_against(REFUND.args_schema, REFUND.dump_args(values)) == []
