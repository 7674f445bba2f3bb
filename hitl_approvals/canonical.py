"""The one text form of a JSON value, and its digests. Knows no database, no settings and no clock.

The form is `json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True,
allow_nan=False)`: pure ASCII, so NUL and unpaired surrogates survive on every database,
and integers are exact. It is not RFC 8785, which refuses integers above 2**53.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from types import MappingProxyType
from typing import TYPE_CHECKING, NoReturn

from hitl_approvals.exceptions import PayloadRejected

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hitl_approvals.types import JSONValue

MAX_BYTES = 262_144
"""How long a canonical text may be unless the caller says otherwise."""

MAX_DEPTH = 32
"""How many containers may stand inside each other unless the caller says otherwise."""

MAX_DIGITS = 4300
"""How many digits an integer may have: CPython's own default limit for reading one."""

# What the narrowest supported JSON column takes, found by trying them: MariaDB calls a
# text with 32 nested containers invalid, MySQL holds numbers as doubles and object keys
# of at most 65,535 bytes, PostgreSQL takes neither NUL nor an unpaired surrogate.
_COLUMN_MAX_DEPTH = 31
_COLUMN_MAX_INT = 10**300
_COLUMN_MAX_KEY_BYTES = 65_535
_NOT_FOR_COLUMNS = re.compile("[\x00\ud800-\udfff]")

_INT_LIMIT = 10**MAX_DIGITS
# Strings are matched only to skip the brackets in them. The closing quote is optional, so
# a match never fails and never backtracks: one pass, however hostile the text.
_BRACKETS = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?|[\[{]|[\]}]', re.DOTALL)

_ENCODER = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False
)

_Path = tuple[str | int, ...]


def dumps(
    value: object,
    *,
    max_bytes: int | None = MAX_BYTES,
    max_depth: int | None = MAX_DEPTH,
) -> str:
    """Return the canonical text of a JSON value; tuples are written as lists.

    None lifts a limit, for what was already accepted once.

    Raises:
        PayloadRejected: With reason `not_json`, `non_string_key`, `duplicate_key`,
            `not_finite`, `too_large` or `too_deep`, and the path of the offending value.
    """
    try:
        plain = _Plain(max_bytes, max_depth).of(value, (), 0)
        text = _ENCODER.encode(plain)
    except RecursionError as error:
        raise _too_deep((), max_depth) from error
    except ValueError as error:
        # The host lowered sys.set_int_max_str_digits() below our own limit.
        raise _too_many_digits(()) from error
    if max_bytes is not None and len(text) > max_bytes:
        raise _too_large(max_bytes)
    return text


def loads(
    text: str | bytes,
    *,
    max_bytes: int | None = MAX_BYTES,
    max_depth: int | None = MAX_DEPTH,
) -> JSONValue:
    """Read JSON strictly; nothing is guessed, dropped or rounded to infinity.

    Raises:
        PayloadRejected: With reason `not_utf8`, `not_json`, `duplicate_key`,
            `not_finite`, `too_large` or `too_deep`.
    """
    if max_bytes is not None and _utf8_length(text) > max_bytes:
        raise _too_large(max_bytes)
    if isinstance(text, bytes):
        try:
            text = text.decode("utf-8")
        except UnicodeDecodeError as error:
            what = f"is not UTF-8 (byte {error.start})"
            raise _refusal("not_utf8", (), what) from error
    if max_depth is not None and text.count("[") + text.count("{") > max_depth:
        # Before parsing: the parser recurses, and its limit is the stack.
        _check_depth(text, max_depth)
    try:
        value: JSONValue = _DECODER.decode(text)
    except RecursionError as error:
        raise _too_deep((), max_depth) from error
    except json.JSONDecodeError as error:
        place = f"at line {error.lineno} column {error.colno}"
        what = f"is not JSON: {error.msg.removesuffix(' at')} {place}"
        raise _refusal("not_json", (), what) from error
    return value


def stored(text: str | None) -> JSONValue:
    """Return the value of a text that this package wrote; the site's limits are for input.

    Raises:
        PayloadRejected: The text is not canonical JSON.
    """
    return loads(text or "null", max_bytes=None, max_depth=None)


def digest(text: str) -> str:
    """Return the digest of a canonical text, marked with the form's version.

    Raises:
        UnicodeEncodeError: If the text is not ASCII, so not canonical.
    """
    return "c1:" + hashlib.sha256(text.encode("ascii")).hexdigest()


def key_digest(*parts: JSONValue) -> str:
    """Return 64 hex digits that name these parts; no two lists of parts share them.

    Raises:
        PayloadRejected: If a part is not JSON.
    """
    text = dumps(list(parts), max_bytes=None, max_depth=None)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def filterable(value: JSONValue) -> JSONValue | None:
    """Return the value if every supported database's JSON column takes it, else None."""
    try:
        return value if _fits_column(value, 0) else None
    except RecursionError:
        return None


def dotted(path: Iterable[object]) -> str:
    """Return a path as dotted text that any log, page and database can hold."""
    return printable(".".join(str(part) for part in path))


def printable(text: str, limit: int = 200) -> str:
    """Return text with escapes for what cannot be printed or stored, cut to a limit."""
    cut = str.__str__(text[: limit + 1])
    if not cut.isprintable():
        cut = repr(cut)[1:-1]
    return cut if len(cut) <= limit else cut[: limit - 1] + "…"


class _Plain:
    """Rebuilds a value from exact dicts, lists and scalars, and keeps the limits.

    Subclasses may override anything, so only what the base type stores is read. The size
    is bounded on the way down: a small object graph can stand for an endless text.
    """

    def __init__(self, max_bytes: int | None, max_depth: int | None) -> None:
        self.max_bytes = max_bytes
        self.max_depth = max_depth
        self.size = 0

    def of(self, value: object, path: _Path, depth: int) -> object:
        # The most common one first: this very type, of which nothing is overridden.
        if type(value) is str:
            self._spend(len(value) + 2)
            return value
        if value is None or isinstance(value, bool):
            self._spend(4)
            return value
        if isinstance(value, str):
            self._spend(str.__len__(value) + 2)
            return str.__str__(value)
        if isinstance(value, int):
            return self._integer(int.__int__(value), path)
        if isinstance(value, float):
            return self._float(float.__float__(value), path)
        if isinstance(value, list):
            return self._sequence(list.__iter__(value), path, depth)
        if isinstance(value, tuple):
            return self._sequence(tuple.__iter__(value), path, depth)
        if isinstance(value, dict):
            return self._mapping(dict.items(value), path, depth)
        if isinstance(value, MappingProxyType):
            return self._mapping(value.items(), path, depth)
        kind = printable(type(value).__name__)
        raise _refusal("not_json", path, f"is of type {kind}, which JSON cannot hold")

    def _integer(self, value: int, path: _Path) -> int:
        if abs(value) >= _INT_LIMIT:
            raise _too_many_digits(path)
        self._spend(value.bit_length() * 3 // 10)
        return value

    def _float(self, value: float, path: _Path) -> float:
        if not math.isfinite(value):
            raise _refusal("not_finite", path, f"is {value}, which JSON cannot hold")
        self._spend(3)
        return value

    def _sequence(
        self, items: Iterable[object], path: _Path, depth: int
    ) -> list[object]:
        self._descend(path, depth)
        return [
            self.of(item, (*path, index), depth + 1) for index, item in enumerate(items)
        ]

    def _mapping(
        self, items: Iterable[tuple[object, object]], path: _Path, depth: int
    ) -> dict[str, object]:
        self._descend(path, depth)
        plain: dict[str, object] = {}
        for key, item in items:
            if not isinstance(key, str):
                kind = printable(type(key).__name__)
                raise _refusal("non_string_key", path, f"has a key of type {kind}")
            name = str.__str__(key)
            if name in plain:
                raise _twice(name, path)
            self._spend(len(name) + 3)
            plain[name] = self.of(item, (*path, name), depth + 1)
        return plain

    def _descend(self, path: _Path, depth: int) -> None:
        if self.max_depth is not None and depth >= self.max_depth:
            raise _too_deep(path, self.max_depth)
        self._spend(2)

    def _spend(self, length: int) -> None:
        self.size += length
        if self.max_bytes is not None and self.size > self.max_bytes:
            raise _too_large(self.max_bytes)


def _utf8_length(text: str | bytes) -> int:
    if isinstance(text, bytes) or text.isascii():
        return len(text)
    return len(text.encode("utf-8", "surrogatepass"))


def _check_depth(text: str, max_depth: int) -> None:
    depth = 0
    for match in _BRACKETS.finditer(text):
        bracket = match.group()
        if bracket in ("[", "{"):
            depth += 1
            if depth > max_depth:
                raise _too_deep((), max_depth)
        elif bracket in ("]", "}"):
            depth -= 1


def _parse_int(text: str) -> int:
    if len(text.removeprefix("-")) > MAX_DIGITS:
        raise _too_many_digits(())
    try:
        return int(text)
    except ValueError as error:  # the host lowered sys.set_int_max_str_digits()
        raise _too_many_digits(()) from error


def _parse_float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise _not_finite(text)
    return value


def _refuse_constant(text: str) -> NoReturn:
    raise _not_finite(text)


def _object(pairs: list[tuple[str, JSONValue]]) -> dict[str, JSONValue]:
    value = dict(pairs)
    if len(value) < len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise _twice(name, ())
            seen.add(name)
    return value


# Made once: `json.loads()` makes one for each text.
_DECODER = json.JSONDecoder(
    parse_int=_parse_int,
    parse_float=_parse_float,
    parse_constant=_refuse_constant,
    object_pairs_hook=_object,
)


def _fits_column(value: JSONValue, depth: int) -> bool:
    if value is None or isinstance(value, bool):
        return True
    if isinstance(value, str):
        return not _NOT_FOR_COLUMNS.search(value)
    if isinstance(value, int):
        return abs(value) < _COLUMN_MAX_INT
    if isinstance(value, float):
        return math.isfinite(value)
    if depth >= _COLUMN_MAX_DEPTH:
        return False
    if isinstance(value, dict):
        return all(
            isinstance(name, str)
            and _fits_column(name, depth)
            and len(name.encode()) <= _COLUMN_MAX_KEY_BYTES
            and _fits_column(item, depth + 1)
            for name, item in value.items()
        )
    if isinstance(value, (list, tuple)):
        return all(_fits_column(item, depth + 1) for item in value)
    return False


def _not_finite(text: str) -> PayloadRejected:
    what = f"holds {printable(text, 40)}, which is not a finite number"
    return _refusal("not_finite", (), what)


def _twice(name: str, path: _Path) -> PayloadRejected:
    return _refusal("duplicate_key", path, f'holds the key "{printable(name)}" twice')


def _too_many_digits(path: _Path) -> PayloadRejected:
    return _refusal(
        "too_large", path, f"holds an integer of more than {MAX_DIGITS} digits"
    )


def _too_large(max_bytes: int) -> PayloadRejected:
    return _refusal("too_large", (), f"is larger than {max_bytes} bytes")


def _too_deep(path: _Path, max_depth: int | None) -> PayloadRejected:
    limit = "the stack allows" if max_depth is None else f"{max_depth} levels"
    return _refusal("too_deep", path, f"is nested deeper than {limit}")


def _refusal(reason: str, path: _Path, what: str) -> PayloadRejected:
    loc = dotted(path)
    return PayloadRejected(
        f'The value at "{loc}" {what}.' if loc else f"The value {what}.",
        reason=reason,
        errors=[{"loc": loc, "message": f"{what[0].upper()}{what[1:]}."}],
    )
