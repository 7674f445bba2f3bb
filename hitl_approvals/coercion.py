"""Values through a pydantic type in both directions, with refusals that a model can read.

Knows no tool and no row. The limits of size and depth belong to the door that stores.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter, ValidationError

from hitl_approvals import canonical
from hitl_approvals.exceptions import PayloadRejected

if TYPE_CHECKING:
    from hitl_approvals.types import JSONValue

MAX_ERRORS = 20
"""How many errors one refusal lists; the rest is not for a person or a model to read."""

UNKNOWN_FIELD = "There is no field of this name."

_MESSAGES = {
    "extra_forbidden": UNKNOWN_FIELD,
    "missing": "Is missing.",
}


def load(adapter: TypeAdapter[Any], value: object, subject: str) -> Any:
    """Return a value as the type; JSON and Python values are both taken.

    Raises:
        PayloadRejected: If it does not fit.
    """
    try:
        return adapter.validate_python(value)
    except ValidationError as error:
        refusal = error
    except Exception as error:
        # A validator of the site's own that breaks instead of refusing.
        text = canonical.printable(
            f"A validator raised {type(error).__name__}: {error}"
        )
        raise does_not_fit(subject, [{"loc": "", "message": text}]) from error
    try:
        # A strict model takes a date, a number or an enum from text in JSON only.
        return adapter.validate_json(_text(value))
    except Exception as error:  # noqa: BLE001 - no JSON: the first refusal explains it
        # The second one speaks of JSON, which is what came, if it could be read as such.
        if isinstance(error, ValidationError) and not _is_unreadable(error):
            refusal = error
    raise does_not_fit(subject, _readable(refusal)) from refusal


def dump(adapter: TypeAdapter[Any], value: object, subject: str) -> JSONValue:
    """Return a value of the type as JSON.

    Raises:
        PayloadRejected: If it cannot be written.
    """
    plain: object
    try:
        try:
            plain = adapter.dump_python(
                value, mode="json", by_alias=True, warnings=False
            )
        except UnicodeEncodeError:
            # pydantic writes no unpaired surrogate, our canonical text does.
            plain = adapter.dump_python(value, by_alias=True, warnings=False)
    except Exception as error:
        # Serializers of the site's own may raise anything.
        text = canonical.printable(str(error))
        errors = [{"loc": "", "message": f"Cannot be written as JSON: {text}"}]
        raise refused(subject, "not_json", errors) from error
    return as_json(plain)


def as_json(value: object) -> JSONValue:
    """Return a value that is JSON already as exact dicts, lists and scalars.

    Raises:
        PayloadRejected: If it is not.
    """
    return canonical.loads(_text(value), max_bytes=None, max_depth=None)


def does_not_fit(subject: str, errors: list[dict[str, str]]) -> PayloadRejected:
    """Return the refusal of a value that is not of the type."""
    return refused(subject, "does_not_fit", errors)


def refused(subject: str, reason: str, errors: list[dict[str, str]]) -> PayloadRejected:
    """Return a refusal whose detail repeats the errors, for readers of one line."""
    lines = [": ".join(filter(None, (e["loc"], e["message"]))) for e in errors]
    text = "; ".join(line.rstrip(".") for line in lines)
    return PayloadRejected(
        f"Not accepted as {subject}: {text}.", reason=reason, errors=errors
    )


def _text(value: object) -> str:
    return canonical.dumps(value, max_bytes=None, max_depth=None)


def _is_unreadable(error: ValidationError) -> bool:
    return error.errors(include_input=False)[0]["type"] == "json_invalid"


def _readable(error: ValidationError) -> list[dict[str, str]]:
    details = error.errors(
        include_url=False, include_context=False, include_input=False
    )
    errors = [
        {
            "loc": canonical.dotted(detail["loc"]),
            "message": _MESSAGES.get(
                detail["type"], canonical.printable(detail["msg"])
            ),
        }
        for detail in details[:MAX_ERRORS]
    ]
    if rest := len(details) - len(errors):
        errors.append({"loc": "", "message": f"And {rest} more."})
    return errors
