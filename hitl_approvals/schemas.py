"""A tool's signature as JSON Schema, and values through it in both directions.

Builds on pydantic; runs no tool, reads no row. What `dump_args` returns can be frozen and
digested: it is checked to load as the very same values again.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any, NotRequired, Required, cast

from jsonschema import Draft202012Validator, FormatChecker
from jsonschema.exceptions import ValidationError
from pydantic import ConfigDict, PydanticUserError, TypeAdapter
from pydantic.fields import FieldInfo
from referencing.jsonschema import EMPTY_REGISTRY
from typing_extensions import TypedDict

from hitl_approvals import canonical
from hitl_approvals.coercion import (
    MAX_ERRORS,
    UNKNOWN_FIELD,
    as_json,
    does_not_fit,
    dump,
    load,
    refused,
)
from hitl_approvals.docstrings import read_docstring
from hitl_approvals.effort import (
    MORE,
    MORE_OF_A_SCHEMA,
    MOST,
    MOST_OF_A_SCHEMA,
    errors_of,
    parts_of,
)
from hitl_approvals.exceptions import HitlConfigurationError, PayloadRejected

if typing.TYPE_CHECKING:
    from hitl_approvals.types import JSONValue

# The same call would not have the same digest in every process, or be empty when it runs.
_UNSTABLE = {"set", "frozenset", "generator"}


@dataclass(frozen=True, slots=True, eq=False)
class ToolSignature:
    """What a tool takes and returns."""

    name: str
    description: str
    """The docstring without its section on arguments."""
    parameters: tuple[str, ...]
    """The argument names in the order of the signature."""
    args_schema: dict[str, Any]
    """JSON Schema (draft 2020-12) of the arguments."""
    schema_digest: str
    _args: TypeAdapter[dict[str, Any]]
    _result: TypeAdapter[Any] | None

    @classmethod
    def of(cls, function: Callable[..., Any], *, name: str) -> ToolSignature:
        """Read the signature of a function.

        Raises:
            HitlConfigurationError: If a parameter has no type, cannot be passed by name,
                or has a type that JSON cannot carry there and back.
        """
        hints = _hints(function, name)
        parameters = inspect.signature(function).parameters
        for parameter in parameters.values():
            _check_parameter(parameter, hints, name)
        description, notes = read_docstring(function)
        try:
            args = _args_adapter(hints, parameters)
            result = _result_adapter(hints["return"]) if "return" in hints else None
            schema = args.json_schema(mode="validation") | {"title": name}
            for key, parameter in parameters.items():
                note = notes.get(key)
                _complete(schema["properties"][key], parameter, hints[key], note)
            text = canonical.dumps({"args": schema}, max_bytes=None, max_depth=None)
        except Exception as error:
            # pydantic raises a dozen kinds here, built-in ones among them.
            raise HitlConfigurationError(
                f"The types of tool {name} cannot be written as JSON: {error}"
            ) from error
        _check_stable(args, result, name)
        return cls(
            name=name,
            description=description,
            parameters=tuple(parameters),
            args_schema=schema,
            schema_digest=canonical.digest(text),
            _args=args,
            _result=result,
        )

    def coerce(self, args: object) -> dict[str, Any]:
        """Return the arguments as Python values; left out ones stay left out.

        Raises:
            PayloadRejected: If they do not fit, or hold a name that the tool has not.
        """
        if not isinstance(args, Mapping):
            errors = [{"loc": "", "message": "The arguments must be an object."}]
            raise does_not_fit(f"the arguments of {self.name}", errors)
        if unknown := [key for key in args if key not in self.parameters]:
            errors = [
                {"loc": canonical.dotted([key]), "message": UNKNOWN_FIELD}
                for key in unknown[:MAX_ERRORS]
            ]
            raise does_not_fit(f"the arguments of {self.name}", errors)
        return cast(
            "dict[str, Any]",
            load(self._args, dict(args), f"the arguments of {self.name}"),
        )

    def dump_args(self, values: Mapping[str, Any]) -> JSONValue:
        """Return coerced arguments as JSON that `coerce` turns into equal values.

        Raises:
            PayloadRejected: If it does not: a secret that prints as stars, a field that
                is left out of its dump, a value that is not finite.
        """
        subject = f"the arguments of {self.name}"
        plain = dump(self._args, dict(values), subject)
        loaded = self.coerce(cast("Mapping[str, Any]", plain))
        lost = [
            {"loc": key, "message": "Is another value once it was written as JSON."}
            for key in dict.fromkeys([*values, *loaded])
            if key not in values
            or key not in loaded
            or not _same(values[key], loaded[key])
        ]
        if lost:
            raise refused(subject, "not_reversible", lost)
        return plain

    def dump_result(self, value: object) -> JSONValue:
        """Return a result as JSON; without a return annotation it must be JSON already.

        Raises:
            PayloadRejected: If it cannot be written as JSON.
        """
        if self._result is None:
            return as_json(value)
        return dump(self._result, value, f"the result of {self.name}")

    def load_result(self, value: JSONValue) -> Any:
        """Return a recorded result as the type that the tool declares.

        Raises:
            PayloadRejected: If it does not fit that type.
        """
        if self._result is None:
            return value
        return load(self._result, value, f"the result of {self.name}")


def validate_against(schema: Any, value: JSONValue) -> list[dict[str, str]]:
    """Return where a value does not fit a JSON Schema; an unusable schema fits nothing.

    References to other documents are never fetched. What takes too much work to tell does
    not fit: whoever wrote the schema may mean harm. Too much is what grows faster than
    the value does.
    """
    if errors := check_schema(schema):
        return errors
    found = errors_of(
        schema,
        value,
        most=MOST + MORE * parts_of(value),
        format_checker=_FORMATS,
        registry=EMPTY_REGISTRY,
    )
    try:
        return [
            {
                "loc": canonical.dotted(error.absolute_path),
                "message": canonical.printable(_message(error)),
            }
            for error in islice(found, MAX_ERRORS)
        ]
    except Exception as error:  # noqa: BLE001 - unknown reference, endless recursion, overflow
        return _unusable(error)


def check_schema(schema: Any, *, short: bool = False) -> list[dict[str, str]]:
    """Return what is wrong with a JSON Schema of draft 2020-12; nothing if it is one.

    Args:
        schema: The schema.
        short: Refuse one of more than some two thousand parts. To check so many takes
            seconds, and strangers may send one after the other.
    """
    more = 0 if short else MORE_OF_A_SCHEMA * parts_of(schema)
    try:
        found = errors_of(
            Draft202012Validator.META_SCHEMA,
            schema,
            most=MOST_OF_A_SCHEMA + more,
            format_checker=Draft202012Validator.FORMAT_CHECKER,
        )
        error = next(found, None)
    except Exception as broken:  # noqa: BLE001 - a pattern or number the checker chokes on
        return _unusable(broken)
    if error is None:
        return []
    loc = canonical.dotted(error.absolute_path)
    return [{"loc": loc, "message": _unusable(error.message)[0]["message"]}]


def _message(error: ValidationError) -> str:
    """Return what is wrong; a long value in front would push it out of sight."""
    value = repr(error.instance)
    if len(value) > 60 and error.message.startswith(value):
        return f"The value{error.message[len(value) :]}"
    return error.message


_FORMATS = FormatChecker()
_FORMATS.checkers = dict(Draft202012Validator.FORMAT_CHECKER.checkers)


@_FORMATS.checks("date-time", raises=ValueError)
def _is_date_time(value: object) -> bool:
    # Without an optional library jsonschema would let any text pass as a date-time.
    if not isinstance(value, str):
        return True
    datetime.fromisoformat(value)
    return value[10:11] in ("T", "t", " ")


def _unusable(error: object) -> list[dict[str, str]]:
    text = canonical.printable(str(error))
    return [{"loc": "", "message": f"The schema itself cannot be used: {text}"}]


def _hints(function: Callable[..., Any], name: str) -> dict[str, Any]:
    if not (inspect.isfunction(function) or inspect.ismethod(function)):
        raise HitlConfigurationError(f"Tool {name} must be a function.")
    try:
        return typing.get_type_hints(function, include_extras=True)
    except Exception as error:
        # Whatever an annotation's text raises when it is evaluated.
        raise HitlConfigurationError(
            f"An annotation of tool {name} cannot be read: {error}. Its types must be "
            "importable when the module is, not only while type checking."
        ) from error


def _check_parameter(
    parameter: inspect.Parameter, hints: Mapping[str, Any], tool: str
) -> None:
    where = f"Parameter {parameter.name} of tool {tool}"
    if parameter.kind in (
        inspect.Parameter.VAR_POSITIONAL,
        inspect.Parameter.VAR_KEYWORD,
    ):
        raise HitlConfigurationError(f"{where} is open-ended; name each argument.")
    if parameter.kind is inspect.Parameter.POSITIONAL_ONLY:
        raise HitlConfigurationError(f"{where} must be passable by name.")
    if parameter.name.startswith("_"):
        raise HitlConfigurationError(f"{where} must not start with an underscore.")
    if parameter.name not in hints:
        raise HitlConfigurationError(f"{where} needs a type annotation.")
    if isinstance(parameter.default, FieldInfo):
        raise HitlConfigurationError(
            f"{where} has Field() for its default; put it into Annotated[...]."
        )
    for field in getattr(hints[parameter.name], "__metadata__", ()):
        # Each would make what is shown, stored and run differ from each other.
        if isinstance(field, FieldInfo) and (
            not field.is_required()
            or field.exclude
            or field.alias
            or field.validation_alias
            or field.serialization_alias
        ):
            raise HitlConfigurationError(
                f"{where} may not have an alias, a default or exclude in its Field()."
            )


def _args_adapter(
    hints: Mapping[str, Any], parameters: Mapping[str, inspect.Parameter]
) -> TypeAdapter[dict[str, Any]]:
    # A TypedDict takes any field name; a model would stumble over `copy` or `schema`.
    # The defaults stay out of it: the function applies its own.
    fields = {
        key: Required[hints[key]]
        if parameter.default is inspect.Parameter.empty
        else NotRequired[hints[key]]
        for key, parameter in parameters.items()
    }
    arguments = cast("Any", TypedDict)("Arguments", fields)
    arguments.__pydantic_config__ = ConfigDict(extra="forbid", allow_inf_nan=False)
    return TypeAdapter(arguments)


def _result_adapter(annotation: Any) -> TypeAdapter[Any]:
    try:
        # So that NaN is refused by us, not written as null.
        config = ConfigDict(ser_json_inf_nan="constants")
        return TypeAdapter(annotation, config=config)
    except PydanticUserError:
        return TypeAdapter(annotation)  # a model has its own configuration


def _complete(
    schema: dict[str, Any],
    parameter: inspect.Parameter,
    annotation: Any,
    note: str | None,
) -> None:
    """Add to a property what only the function knows: its default and its docstring."""
    if note:
        schema.setdefault("description", note)
    default = parameter.default
    if default is inspect.Parameter.empty:
        return
    adapter = TypeAdapter[Any](annotation)
    try:
        plain = adapter.dump_python(
            default, mode="json", by_alias=True, warnings="error"
        )
    except Exception:  # noqa: BLE001 - a default outside its type, such as None for text
        plain = default
    try:
        schema["default"] = as_json(plain)
    except PayloadRejected:
        return  # it cannot be shown; the function applies it all the same


def _check_stable(
    args: TypeAdapter[Any], result: TypeAdapter[Any] | None, tool: str
) -> None:
    if kinds := _UNSTABLE & set(_kinds(args.core_schema)):
        raise HitlConfigurationError(
            f"Tool {tool} takes a {min(kinds)}, which has no fixed order or can be read "
            "only once; use a list."
        )
    if result is not None and "generator" in _kinds(result.core_schema):
        raise HitlConfigurationError(
            f"Tool {tool} returns a generator, which can be read only once; use a list."
        )


def _kinds(node: object) -> Iterator[str]:
    """Yield the kinds of validator in a pydantic core schema, nested models included."""
    if isinstance(node, (list, tuple)):
        for inner in node:
            yield from _kinds(inner)
    elif isinstance(node, dict):
        if isinstance(node.get("type"), str):
            yield node["type"]
        for key, inner in node.items():
            if key in ("fields", "choices") and isinstance(inner, dict):
                yield from _kinds(list(inner.values()))
            elif key not in ("metadata", "default"):
                yield from _kinds(inner)


def _same(value: object, other: object) -> bool:
    try:
        return bool(value == other)
    except Exception:  # noqa: BLE001 - an __eq__ that cannot answer does not say yes
        return False
