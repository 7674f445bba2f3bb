"""A serializer that stores and revives known types only, whatever the environment says.

LangGraph's own takes any type when it writes. When it reads it revives any importable
one, or, told to be strict, hands back its bare data in place of the object.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import ormsgpack
from langgraph.checkpoint.serde._msgpack import SAFE_MSGPACK_TYPES
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from hitl_approvals.checkpoints.errors import TypeNotAllowed

_OBJECTS = range(6)
"""Extension codes whose data begins with a module and a name."""
_NESTED = 7
"""A snapshot of a `DeltaChannel`; another value is inside."""


class StrictSerializer(JsonPlusSerializer):
    """LangGraph's msgpack, for its own types, the standard library's and those named.

    Args:
        allow: Classes of yours that the state may hold: models, dataclasses, enums. Or
            their (module, name) where the class is not at hand.
    """

    def __init__(self, *, allow: Iterable[type | tuple[str, str]] = ()) -> None:
        # An empty list and None are the same there: nothing but the safe types.
        super().__init__(allowed_msgpack_modules=tuple(allow) or None)

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        """Return a value's type and bytes.

        Raises:
            TypeNotAllowed: A type in it is not allowed; nothing is stored.
        """
        kind, data = super().dumps_typed(obj)
        if kind == "msgpack":
            self._check(data, "stored in")
        return kind, data

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """Return the value again.

        Raises:
            TypeNotAllowed: A type in it is not allowed (any more); none was imported.
        """
        if data[0] == "msgpack":
            self._check(data[1], "read from")
        return super().loads_typed(data)

    def _check(self, data: bytes, verb: str) -> None:
        for module, name in _types_in(data):
            if (module, name) in SAFE_MSGPACK_TYPES:
                continue
            if (module, name) in (self._allowed_msgpack_modules or ()):
                continue
            raise TypeNotAllowed(
                f"`{module}.{name}` may not be {verb} a checkpoint. Let the state hold "
                "plain data, or name the class: "
                f"DjangoCheckpointSaver(allow=[{name.rpartition('.')[2]}])."
            )


def _types_in(data: bytes) -> set[tuple[str, str]]:
    """Return module and name of every type in a value, without importing one."""
    found: set[tuple[str, str]] = set()

    def look(code: int, inner: bytes) -> None:
        if code in _OBJECTS or code == _NESTED:
            value = _unpacked(inner, look)
            if code in _OBJECTS:
                found.add((str(value[0]), str(value[1])))

    _unpacked(data, look)
    return found


def _unpacked(data: bytes, look: Any) -> Any:
    return ormsgpack.unpackb(data, ext_hook=look, option=ormsgpack.OPT_NON_STR_KEYS)
