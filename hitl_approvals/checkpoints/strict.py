"""A serializer that stores and revives known types only, whatever the environment says.

LangGraph's own takes any type when it writes. When it reads it revives any importable
one, or, told to be strict, hands back its bare data in place of the object.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from importlib import import_module
from typing import Any

import ormsgpack
from langgraph.checkpoint.serde._msgpack import SAFE_MSGPACK_METHODS, SAFE_MSGPACK_TYPES
from langgraph.checkpoint.serde.jsonplus import (
    EXT_CONSTRUCTOR_KW_ARGS,
    EXT_CONSTRUCTOR_POS_ARGS,
    EXT_CONSTRUCTOR_SINGLE_ARG,
    EXT_DELTA_SNAPSHOT,
    EXT_METHOD_SINGLE_ARG,
    EXT_NUMPY_ARRAY,
    EXT_PYDANTIC_V1,
    EXT_PYDANTIC_V2,
    JsonPlusSerializer,
)
from langgraph.checkpoint.serde.types import _DeltaSnapshot

from hitl_approvals.checkpoints.errors import TypeChanged, TypeNotAllowed

_OBJECTS = frozenset(
    {
        EXT_CONSTRUCTOR_SINGLE_ARG,
        EXT_CONSTRUCTOR_POS_ARGS,
        EXT_CONSTRUCTOR_KW_ARGS,
        EXT_METHOD_SINGLE_ARG,
        EXT_PYDANTIC_V1,
        EXT_PYDANTIC_V2,
    }
)
"""Extension codes whose data begins with a module and a name."""
_AS_THEY_ARE = frozenset({"null", "bytes", "bytearray"})
"""What is stored beside msgpack."""
_SEND = ("langgraph.types", "Send")


class _NotMadeError(Exception):
    """An object of this class cannot be made from what is stored of it."""

    def __init__(self, module: str, name: str, why: str) -> None:
        self.named, self.why = f"`{module}.{name}`", why
        super().__init__(f"{self.named}, and it cannot be made again ({why})")


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
            TypeNotAllowed: A type in it is not allowed, or could not be made again;
                nothing is stored.
        """
        kind, data = super().dumps_typed(obj)
        if kind == "msgpack":
            types = _types_in(data)
            for module, name in types:
                self._require(module, name, "stored in")
            if any(not _is_safe(*one) for one in types):
                self._require_readable(data)
        return kind, data

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """Return the value again.

        Raises:
            TypeNotAllowed: A type in it is not allowed (any more); it was not imported.
            TypeChanged: A class is gone, or does not take what is stored of it.
        """
        kind, held = data
        if kind == "msgpack":
            try:
                return self._revived(held)
            except _NotMadeError as error:
                raise TypeChanged(
                    f"A checkpoint holds a {error}. Give the class back its name and its "
                    "fields."
                ) from error.__cause__
        if kind not in _AS_THEY_ARE:
            raise TypeNotAllowed(
                f"A value that is stored as {kind!r} may not be read from a checkpoint: "
                "nothing but msgpack is stored here."
            )
        return super().loads_typed(data)

    def _revived(self, data: bytes) -> Any:
        refusals: list[Exception] = []

        def revive(code: int, inner: bytes) -> Any:
            try:
                return self._object(code, inner, revive)
            except Exception as error:
                refusals.append(error)
                raise

        try:
            return _unpacked(data, revive)
        except ValueError:
            # All that msgpack says of an error in here is that there was one.
            if refusals:
                raise refusals[0] from refusals[0].__cause__
            raise

    def _object(self, code: int, inner: bytes, revive: Any) -> Any:
        if code == EXT_NUMPY_ARRAY:
            array = self._unpack_ext_hook(code, inner)
            if array is None:
                raise _NotMadeError("numpy", "ndarray", "no numpy, or no plain dtype")
            return array
        held = _unpacked(inner, revive)
        if code == EXT_DELTA_SNAPSHOT:
            return _DeltaSnapshot(held)
        if code not in _OBJECTS:
            raise TypeNotAllowed(f"No LangGraph that is known here stores code {code}.")
        module, name, *_ = held
        self._require(module, name, "read from")
        try:
            return _made(code, *held)
        except Exception as error:
            raise _NotMadeError(module, name, type(error).__name__) from error

    def _require_readable(self, data: bytes) -> None:
        # Found later, it would stop the turn where a person has decided.
        try:
            self._revived(data)
        except _NotMadeError as error:
            raise TypeNotAllowed(
                f"{error.named} may not be stored in a checkpoint: from what is stored of "
                f"it, it could not be made again ({error.why}). Define the class at the "
                "top of its module and let it take its own fields, or let the state hold "
                "plain data."
            ) from error.__cause__

    def _require(self, module: str, name: str, verb: str) -> None:
        if _is_safe(module, name):
            return
        if (module, name) in (self._allowed_msgpack_modules or ()):
            return
        raise TypeNotAllowed(
            f"`{module}.{name}` may not be {verb} a checkpoint. Let the state hold "
            "plain data, or name the class: "
            f"DjangoCheckpointSaver(allow=[{name.rpartition('.')[2]}])."
        )


def _is_safe(module: str, name: str) -> bool:
    return (module, name) in SAFE_MSGPACK_TYPES


def _made(code: int, module: str, name: str, held: Any, method: str = "") -> Any:
    """Make an object as LangGraph does, but hand back nothing in its place."""
    made = getattr(import_module(module), name)
    if code == EXT_CONSTRUCTOR_SINGLE_ARG:
        return _from_value(made, held)
    if code == EXT_CONSTRUCTOR_POS_ARGS:
        if (module, name) == _SEND:
            return made(*held[:2], **dict(zip(["timeout"], held[2:], strict=False)))
        return made(*held)
    if code == EXT_CONSTRUCTOR_KW_ARGS:
        return _from_fields(made, held)
    if code == EXT_METHOD_SINGLE_ARG:
        if (module, name, method) not in SAFE_MSGPACK_METHODS:
            raise LookupError(f"`{method}` is not called here")
        return getattr(made, method)(held)
    return _model(code, made, held)


def _from_value(made: Any, held: Any) -> Any:
    try:
        return made(held)
    except ValueError:
        # A member of an enum may be a tuple, which msgpack stores as a list.
        if not isinstance(held, list):
            raise
        return made(tuple(held))


def _from_fields(made: Any, held: dict[str, Any]) -> Any:
    fields = dataclasses.fields(made) if dataclasses.is_dataclass(made) else ()
    own = {field.name for field in fields if not field.init} & held.keys()
    one = made(**{name: value for name, value in held.items() if name not in own})
    for name in own:
        # Also where it is frozen.
        object.__setattr__(one, name, held[name])
    return one


def _model(code: int, made: Any, held: Any) -> Any:
    try:
        # One with a root alone is stored as what is in it.
        return made(**held) if isinstance(held, dict) else made(held)
    except Exception:
        # It may not take its own values: for an alias, or a validator of its own.
        if not isinstance(held, dict) or not _stored_fields(code, made) <= held.keys():
            raise
        construct = made.model_construct if code == EXT_PYDANTIC_V2 else made.construct
        return construct(**held)


def _stored_fields(code: int, made: Any) -> set[str]:
    if code == EXT_PYDANTIC_V1:
        return {n for n, one in made.__fields__.items() if not one.field_info.exclude}
    return {name for name, one in made.model_fields.items() if not one.exclude}


def _types_in(data: bytes) -> set[tuple[str, str]]:
    """Return module and name of every type in a value, without importing one."""
    found: set[tuple[str, str]] = set()

    def look(code: int, inner: bytes) -> None:
        if code in _OBJECTS or code == EXT_DELTA_SNAPSHOT:
            value = _unpacked(inner, look)
            if code in _OBJECTS:
                found.add((str(value[0]), str(value[1])))

    _unpacked(data, look)
    return found


def _unpacked(data: bytes, hook: Any) -> Any:
    return ormsgpack.unpackb(data, ext_hook=hook, option=ormsgpack.OPT_NON_STR_KEYS)
