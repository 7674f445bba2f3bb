"""A JSON Schema validator that stops once a check has taken too much work.

A schema of a few hundred bytes can make a plain validator work for years, by patterns or
by references that double at every step. An agent may have written it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from itertools import islice
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend

from hitl_approvals.patterns import UnsupportedPatternError, pattern

MOST = 200_000
"""Units of work in one check, whatever is checked: a second or two of one core."""
MORE = 10
"""Units more for each part of a value: a long one takes longer, and means no harm."""
_PLAIN = re.compile(r"[^\\()|*+?{}\[]*(\\.[^\\()|*+?{}\[]*)*")
"""Patterns without a repeat, a choice or a group: `re` is fast with them."""
MOST_OF_A_SCHEMA = 300_000
"""Units of work to see whether a schema is one: some two thousand parts."""
MORE_OF_A_SCHEMA = 200
"""Units more for each part of a schema that the site's own code wrote."""
MOST_ERRORS = 1000
"""Whoever sent the value is told of some; none is needed after these."""
_left: ContextVar[list[int]] = ContextVar("hitl_schema_effort")


class TooMuchEffortError(ValueError):
    """A check took too much work."""

    def __init__(self) -> None:
        super().__init__("to check this value against it takes too much work")


def errors_of(
    schema: Any, value: Any, *, most: int = MOST, **options: Any
) -> Iterator[ValidationError]:
    """Yield where a value does not fit a schema of draft 2020-12.

    Args:
        schema: The schema.
        value: The value.
        most: Units of work that it may take.
        options: For the validator: its registry and formats.

    Raises:
        TooMuchEffortError: It takes too much work to tell.
        UnsupportedPatternError: A pattern in it cannot be searched for in bounded time.
    """
    if _hides_patterns(schema):
        raise UnsupportedPatternError(
            "patterns of names beside unevaluatedProperties are not checked"
        )
    token = _left.set([most])
    try:
        # All at once: a generator would leave its budget behind in the caller's context.
        found = list(
            islice(_Bounded(schema, **options).iter_errors(value), MOST_ERRORS)
        )
    finally:
        _left.reset(token)
    yield from found


def parts_of(value: Any) -> int:
    """Return how many values a JSON value consists of, itself among them."""
    count, left = 0, [value]
    while left:
        part = left.pop()
        count += 1
        if isinstance(part, list):
            left += part
        elif isinstance(part, Mapping):
            left += part.values()
    return count


def _hides_patterns(schema: Any) -> bool:
    """Tell whether the validator would search names by patterns past us."""
    left, beside, patterned = [schema], False, False
    while left:
        part = left.pop()
        if isinstance(part, list):
            left += part
        elif isinstance(part, dict):
            left += part.values()
            beside = beside or "unevaluatedProperties" in part
            texts = part.get("patternProperties")
            patterned = patterned or (
                isinstance(texts, dict)
                and any(_PLAIN.fullmatch(text) is None for text in texts)
            )
    return beside and patterned


def spend(units: int) -> None:
    """Take units of work from what is left of the check that is under way.

    Raises:
        TooMuchEffortError: Nothing is left.
    """
    left = _left.get()
    left[0] -= units
    if left[0] < 0:
        raise TooMuchEffortError


def _evolve(self: Any, **changes: Any) -> Any:
    """Return the validator of a part of the schema; what every step comes through.

    Unlike the original it never changes to the draft that a part of the schema names.
    """
    schema = changes.get("schema")
    # Where a reference leads is looked up anew each time.
    looks_up = 8 if isinstance(schema, Mapping) and "$ref" in schema else 0
    spend(1 + looks_up + _width(schema))
    fields = {field.alias: field.name for field in self.__attrs_attrs__ if field.init}
    kept = {alias: getattr(self, name) for alias, name in fields.items()}
    return type(self)(**{**kept, **changes})


def _width(schema: Any) -> int:
    """Return how many things a validator walks through for one value."""
    if not isinstance(schema, Mapping):
        return 0
    return sum(len(one) for one in schema.values() if isinstance(one, (list, dict)))


def _matches(text: str, searched: str) -> bool:
    """Tell whether a pattern is found in a text, in bounded time."""
    if _PLAIN.fullmatch(text):
        spend(1 + len(text) * len(searched) // 1000)
        return re.search(text, searched) is not None
    return pattern(text).found_in(searched, spend)


def _pattern(validator: Any, given: Any, instance: Any, schema: Any) -> Iterator[Any]:
    if isinstance(instance, str) and not _matches(given, instance):
        yield ValidationError(f"{instance!r} does not match {given!r}")


def _pattern_properties(
    validator: Any, given: Any, instance: Any, schema: Any
) -> Iterator[Any]:
    if not isinstance(instance, dict):
        return
    for text, part in given.items():
        for name, value in instance.items():
            if _matches(text, name):
                yield from validator.descend(value, part, path=name, schema_path=text)


def _additional_properties(
    validator: Any, given: Any, instance: Any, schema: Any
) -> Iterator[Any]:
    if not isinstance(instance, dict):
        return
    known, texts = schema.get("properties", {}), schema.get("patternProperties", {})
    further = [
        name
        for name in instance
        if name not in known and not any(_matches(text, name) for text in texts)
    ]
    if isinstance(given, dict):
        for name in further:
            yield from validator.descend(instance[name], given, path=name)
    elif given is False and further:
        named = ", ".join(repr(name) for name in sorted(further))
        verb = "was" if len(further) == 1 else "were"
        yield ValidationError(
            f"Additional properties are not allowed ({named} {verb} unexpected)"
        )


def _unique_items(
    validator: Any, given: Any, instance: Any, schema: Any
) -> Iterator[Any]:
    if given and isinstance(instance, list):
        kinds = {type(one) for one in instance}
        alike = kinds == {str} or kinds <= {int, float}
        # What cannot be sorted is compared each with each.
        spend(len(instance) if alike else len(instance) ** 2 // 4)
    yield from Draft202012Validator.VALIDATORS["uniqueItems"](
        validator, given, instance, schema
    )


_Bounded: Any = extend(  # type: ignore[no-untyped-call]
    Draft202012Validator,
    {
        "pattern": _pattern,
        "patternProperties": _pattern_properties,
        "additionalProperties": _additional_properties,
        "uniqueItems": _unique_items,
    },
)
_Bounded.evolve = _evolve
