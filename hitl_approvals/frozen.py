"""JSON values that cannot be changed: equal to plain ones, and read like them. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn


def _refuse(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
    raise TypeError("This is a record of what happened; copy it before you change it.")


class FrozenDict(dict[str, Any]):
    """A dict that refuses to be changed."""

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __copy__(self) -> dict[str, Any]:
        return dict(self)

    def __deepcopy__(self, memo: Any) -> dict[str, Any]:
        thawed: dict[str, Any] = thaw(self)
        return thawed

    def __reduce__(self) -> tuple[Any, ...]:
        return (freeze, (thaw(self),))


class FrozenList(list[Any]):
    """A list that refuses to be changed."""

    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse
    append = extend = insert = pop = remove = _refuse
    clear = sort = reverse = _refuse

    def __copy__(self) -> list[Any]:
        return list(self)

    def __deepcopy__(self, memo: Any) -> list[Any]:
        thawed: list[Any] = thaw(self)
        return thawed

    def __reduce__(self) -> tuple[Any, ...]:
        return (freeze, (thaw(self),))


def freeze(value: Any) -> Any:
    """Return a copy of a JSON value that cannot be changed at any depth."""
    if isinstance(value, Mapping):
        return FrozenDict({name: freeze(one) for name, one in value.items()})
    if isinstance(value, (list, tuple)):
        return FrozenList([freeze(one) for one in value])
    return value


def thaw(value: Any) -> Any:
    """Return a plain copy of a frozen value, which may be changed."""
    if isinstance(value, dict):
        return {name: thaw(one) for name, one in value.items()}
    if isinstance(value, list):
        return [thaw(one) for one in value]
    return value
