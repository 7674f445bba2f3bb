"""What a person may decide, and how it is read. Knows no row, no permission and no clock.

Every malformed decision is a `TypeError` whose one sentence says what was expected and
what came; whether a well-formed one may be applied is for the services to say.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from hitl_approvals.canonical import printable
from hitl_approvals.enums import DecisionType

if TYPE_CHECKING:
    from hitl_approvals.types import JSONValue


@dataclass(frozen=True, slots=True)
class Approve:
    """Run the call exactly as it was proposed."""

    type: ClassVar[str] = DecisionType.APPROVE.value


@dataclass(frozen=True, slots=True)
class Reject:
    """Do not run the call; the reason goes to the agent.

    Raises:
        TypeError: If the reason is missing, blank or not text.
    """

    reason: str

    type: ClassVar[str] = DecisionType.REJECT.value

    def __post_init__(self) -> None:
        expected = 'A rejection needs a "reason", a text that is not blank'
        if not isinstance(self.reason, str):
            raise TypeError(f"{expected}; got {_kind(self.reason)}.")
        if _is_blank(self.reason):
            raise TypeError(f"{expected}; got a blank one.")
        object.__setattr__(self, "reason", _storable(self.reason, "a rejection"))


@dataclass(frozen=True, slots=True)
class Edit:
    """Run the call with these arguments instead; they replace the proposed ones whole.

    Raises:
        TypeError: If the arguments are no object, or the reason is not text.
    """

    args: Mapping[str, Any]
    reason: str | None = None
    """Optional word to the agent; a blank one is none."""

    type: ClassVar[str] = DecisionType.EDIT.value

    def __post_init__(self) -> None:
        expected = 'An edit needs "args", an object of argument names to values'
        if not isinstance(self.args, Mapping):
            raise TypeError(f"{expected}; got {_kind(self.args)}.")
        for name in self.args:
            if not isinstance(name, str):
                raise TypeError(f"{expected}; got a name that is {_kind(name)}.")
        # A copy, so that the caller's later changes do not reach a frozen decision.
        object.__setattr__(self, "args", dict(self.args))
        if self.reason is None:
            return
        if not isinstance(self.reason, str):
            raise TypeError(
                f'The "reason" of an edit must be text; got {_kind(self.reason)}.'
            )
        reason = None if _is_blank(self.reason) else _storable(self.reason, "an edit")
        object.__setattr__(self, "reason", reason)


@dataclass(frozen=True, slots=True)
class Respond:
    """Answer a question with a value."""

    value: JSONValue

    type: ClassVar[str] = DecisionType.RESPOND.value


Decision: TypeAlias = Approve | Reject | Edit | Respond

_TYPES: dict[str, type[Decision]] = {
    Approve.type: Approve,
    Reject.type: Reject,
    Edit.type: Edit,
    Respond.type: Respond,
}
# Per type: what the mapping may hold beside "type", and what it must hold.
_FIELDS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    Approve.type: ((), ()),
    Reject.type: (("reason",), ("reason",)),
    Edit.type: (("args", "reason"), ("args",)),
    Respond.type: (("value",), ("value",)),
}
_EXPECTED = {
    "reason": 'A rejection needs a "reason", a text that is not blank; got none.',
    "args": 'An edit needs "args", an object of argument names to values; got none.',
    "value": 'A response needs a "value"; got none.',
}
_NOUNS = {
    Approve.type: "An approval",
    Reject.type: "A rejection",
    Edit.type: "An edit",
    Respond.type: "A response",
}


def parse_decision(obj: object) -> Decision:
    """Return the decision that an instance or a mapping keyed on `type` stands for.

    Raises:
        TypeError: If it is malformed; the sentence says what was expected and what came.
    """
    if isinstance(obj, (Approve, Reject, Edit, Respond)):
        return obj
    if not isinstance(obj, Mapping):
        raise TypeError(
            "A decision must be Approve, Reject, Edit or Respond, or an object with "
            f'a "type"; got {_kind(obj)}.'
        )
    fields = dict(obj)
    name = _type_name(fields)
    allowed, required = _FIELDS[name]
    for field in fields:
        if not isinstance(field, str):
            raise TypeError(
                f"The fields of a decision must be named by text; got {_kind(field)}."
            )
        if field != "type" and field not in allowed:
            known = ", ".join(f'"{known}"' for known in ("type", *allowed))
            raise TypeError(
                f"{_NOUNS[name]} has no field {_shown(field)}; it knows {known}."
            )
    for field in required:
        if field not in fields:
            raise TypeError(_EXPECTED[field])
    return _TYPES[name](
        **{field: fields[field] for field in allowed if field in fields}
    )


def decision_body(decision: Decision) -> JSONValue:
    """Return what makes two decisions the same one, for comparing under one key."""
    body: dict[str, JSONValue] = {"type": decision.type}
    if isinstance(decision, Reject):
        body["reason"] = decision.reason
    elif isinstance(decision, Edit):
        body["args"] = dict(decision.args)
        body["reason"] = decision.reason
    elif isinstance(decision, Respond):
        body["value"] = decision.value
    return body


def _type_name(fields: Mapping[Any, Any]) -> str:
    expected = f'The "type" of a decision must be one of {", ".join(_TYPES)}'
    if "type" not in fields:
        raise TypeError(f"{expected}; got none.")
    name = fields["type"]
    if not isinstance(name, str):
        raise TypeError(f"{expected}; got {_kind(name)}.")
    plain = str.__str__(name)
    if plain not in _TYPES:
        raise TypeError(f"{expected}; got {_shown(plain)}.")
    return plain


def _is_blank(text: str) -> bool:
    """Whether nothing of the text can be seen; a zero-width space is blank too."""
    return not any(char.isprintable() and not char.isspace() for char in text)


def _storable(text: str, where: str) -> str:
    """Refuse what a text column cannot hold on every database."""
    plain = str.__str__(text)
    if any(char == "\x00" or "\ud800" <= char <= "\udfff" for char in plain):
        raise TypeError(
            f'The "reason" of {where} must be text without NUL and unpaired '
            f"surrogates; got {_shown(plain)}."
        )
    return plain


def _shown(value: object) -> str:
    return f'"{printable(value, 80)}"' if isinstance(value, str) else _kind(value)


def _kind(value: object) -> str:
    """Name what came in the words of JSON, never its content."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, (int, float)):
        return "a number"
    if isinstance(value, str):
        return "a string"
    if isinstance(value, (list, tuple)):
        return "a list"
    if isinstance(value, Mapping):
        return "an object"
    return f"a value of type {printable(type(value).__name__)}"
