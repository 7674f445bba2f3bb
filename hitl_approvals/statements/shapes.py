"""What two statements have in common if one text serves both, and what varies.

A shape is read in one walk over the conditions, which also collects the values. When it
is compiled, the same walk puts slots in their places: both must go the same way.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeAlias, TypeVar
from uuid import UUID

from django.db.models import Exists, Field, Model, Q, QuerySet
from django.db.models.expressions import DatabaseDefault

from hitl_approvals.statements.slots import Slots

M = TypeVar("M", bound=Model)

_MANY = (list, tuple, set, frozenset)
_PLAIN = frozenset({type(None), bool, int, str, UUID, datetime, dict, list})
"""Types of which no value is an expression: most of them, and asked fastest."""
_SLOT = "?"


@dataclass(frozen=True, slots=True)
class There:
    """Holds if a row of `model` fulfills `conditions`."""

    model: type[Model]
    conditions: Sequence[Condition]


Lookup: TypeAlias = tuple[str, Any]
Condition: TypeAlias = Q | There | Lookup


def read(conditions: Iterable[Any], values: list[Any]) -> tuple[Hashable, ...]:
    """Return the shape of conditions, and add what varies to `values`.

    Raises:
        TypeError: A condition is an expression, such as Django's own `Exists`, or lists
            one.
    """
    return tuple(_read(conditions, values))


def _read(conditions: Iterable[Any], values: list[Any]) -> Iterator[Hashable]:
    for one in conditions:
        if isinstance(one, tuple):
            lookup, value = one
            yield lookup
            if isinstance(value, _MANY):
                listed = _listed(value)
                values.extend(listed)
                yield len(listed)
            else:
                yield _form(value, values, fixed=_is_fixed(value))
        elif isinstance(one, Q):
            yield one.connector, one.negated, read(one.children, values)
        elif isinstance(one, There):
            yield one.model, read(one.conditions, values)
        else:
            raise TypeError(f"{one!r} is no condition that is compiled once.")


def _listed(values: Iterable[Any]) -> list[Any]:
    """Return what a column may be one of: never NULL, as with Django's own `in`."""
    found = [one for one in values if one is not None]
    for one in found:
        if type(one) not in _PLAIN and hasattr(one, "resolve_expression"):
            raise TypeError(f"{one!r} is an expression, and stands in a list.")
    return found


def read_changes(changes: Mapping[str, Any], values: list[Any]) -> tuple[Hashable, ...]:
    """Return the shape of what columns are set to, and add what varies to `values`."""
    return tuple(
        (name, _form(value, values, fixed=False)) for name, value in changes.items()
    )


def read_new(
    given: Sequence[Any], usual: Sequence[Any], values: list[Any]
) -> tuple[Hashable, ...]:
    """Return the shape of a new row's columns, and add what varies to `values`.

    Most columns hold what they usually hold. That is told by the very object: 0 and
    False are equal, and so are a text and a word of an enum.
    """
    shape: list[Hashable] = []
    for place, value in enumerate(given):
        if value is usual[place]:
            shape.append(place)
        elif (form := _form(value, values, fixed=False)) is not _SLOT:
            shape.append((place, form))
    return tuple(shape)


def _is_fixed(value: Any) -> bool:
    # Django writes other conditions for these: IS NULL, NOT column.
    return value is None or isinstance(value, bool)


def _form(value: Any, values: list[Any], *, fixed: bool) -> Hashable:
    if type(value) not in _PLAIN and hasattr(value, "resolve_expression"):
        if isinstance(value, DatabaseDefault):
            # A new one for each row, and always what its column says.
            return DatabaseDefault
        if hasattr(value, "varying"):
            values.append(value.varying)
            return (type(value),)
        # Hashed by what it was made of, or by its own word for that.
        word: Hashable = getattr(value, "shape", value)
        return word
    if fixed:
        return ("fixed", value)
    values.append(value)
    return _SLOT


def with_slots(
    model: type[Model], conditions: Iterable[Condition], slots: Slots
) -> list[Q]:
    """Return the same conditions with slots in the places of what varies.

    Raises:
        TypeError: A condition compares with rows or asks another table's columns.
    """
    return [_with_slots(model, one, slots) for one in conditions]


def _with_slots(model: type[Model], one: Any, slots: Slots) -> Q:
    if isinstance(one, tuple):
        lookup, value = one
        if _is_fixed(value):
            return Q((lookup, value))
        field = _field(model, lookup)
        if isinstance(value, _MANY):
            return Q((lookup, [slots.to_compare(field) for _one in _listed(value)]))
        return Q((lookup, _in_place(value, slots.to_compare, field)))
    if isinstance(one, Q):
        children = [_with_slots(model, child, slots) for child in one.children]
        return Q(*children, _connector=one.connector, _negated=one.negated)
    inner = with_slots(one.model, one.conditions, slots)
    return Q(Exists(rows_of(one.model).filter(*inner)))


def rows_of(model: type[M]) -> QuerySet[M]:
    """Return all rows of a table, whatever its default manager hides."""
    return model._base_manager.all()


def changes_with_slots(
    model: type[Model], changes: Mapping[str, Any], slots: Slots
) -> dict[str, Any]:
    """Return the same changes with slots in the places of what varies."""
    return {
        name: _in_place(value, slots.to_save, _field(model, name))
        for name, value in changes.items()
    }


def new_with_slots(
    columns: Sequence[Field[Any, Any]],
    given: Sequence[Any],
    usual: Sequence[Any],
    slots: Slots,
) -> dict[str, Any]:
    """Return a new row's columns by name, with slots in the places of what varies."""
    return {
        field.attname: value
        if value is default
        else _in_place(value, slots.to_save, field)
        for field, value, default in zip(columns, given, usual, strict=True)
    }


def _in_place(value: Any, slot: Any, field: Field[Any, Any]) -> Any:
    if not hasattr(value, "resolve_expression"):
        return slot(field)
    if hasattr(value, "varying"):
        return value.with_varying(slot(field))
    return value


def _field(model: type[Model], lookup: str) -> Field[Any, Any]:
    name, *transforms = lookup.split("__")
    table = model._meta
    field: Any = table.pk if name == "pk" else table.get_field(name)
    if len(transforms) > 1 or (transforms and field.get_lookup(transforms[0]) is None):
        raise TypeError(f"{lookup} asks more than a column of {model.__name__}.")
    column: Field[Any, Any] = field
    return column
