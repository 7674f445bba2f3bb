"""Whatever is handed over, a compiled statement does with it what Django does."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from django.db import transaction
from django.db.models import Q
from django.utils.functional import lazystr
from django.utils.safestring import SafeString
from hypothesis import given, settings
from hypothesis import strategies as st

from hitl_approvals.enums import TurnStatus
from hitl_approvals.models import AgentTurn, DbNow
from hitl_approvals.services import rows
from tests.properties.profiles import HISTORIES

pytestmark = [pytest.mark.django_db, pytest.mark.breaks_invariants]

MANY = settings(HISTORIES, max_examples=max(HISTORIES.max_examples, 80))
ONE, TWO = UUID(int=1), UUID(int=2)
THEN = datetime(2030, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)


class Text(str):
    """A text of a site's own."""


class Number(int):
    """A number of a site's own."""


TEXTS = [
    *("", "a", "A", "é", "100%", "%s", "%%", "\\", "a\\%_", "'", "a\x00", "\ud800"),
    *(
        Text("a"),
        SafeString("a"),
        lazystr("a"),
        TurnStatus.READY,
        b"a",
        memoryview(b""),
    ),
    *(None, 1, 1.5, True, Decimal("1.0"), ONE, ["a"], {"a": 1}),
]
NUMBERS = [
    *(None, 0, 1, -1, 2**31 - 1, 2**31, 2**63, 2**70, -(2**70), True, False),
    *("1", " 1", "x", "", Number(1), Decimal(1), TurnStatus.READY),
]
FRACTIONS = [1.5, Decimal("1.5"), float("nan")]
MOMENTS = [
    *(None, THEN, THEN.replace(tzinfo=None), THEN.isoformat(), "2030-01-01", "x", 5),
    *(THEN.astimezone(timezone(timedelta(hours=5, minutes=45))), date(2030, 1, 1)),
    *(THEN.replace(microsecond=5), datetime(1, 1, 1, tzinfo=UTC), DbNow()),
]
FLAGS = [True, False, None, 0, 1, 2, 1.0, "t", "true", "False", "1", "", Number(1)]
KEYS = [None, ONE, TWO, str(ONE), ONE.hex, ONE.int, Text(ONE.hex), 5, True, "", "x"]
JSON = [
    *(None, {"a": 1}, {"a": None}, [], (1, 2), "", "x", "null", "\x00", 0, False, True),
    *(SafeString("x"), TurnStatus.READY, Decimal(1), float("nan"), 2**70, ONE),
]
SET: dict[str, list[Any]] = {
    "agent": TEXTS,
    "last_error": TEXTS,
    "start_key": TEXTS,
    "attempts": NUMBERS + FRACTIONS,
    "fence": NUMBERS + FRACTIONS,
    "next_run_at": MOMENTS,
    "dispatched_at": MOMENTS,
    "blocked": FLAGS,
    "parent_id": KEYS,
    "requested_by_id": [None, "1", 7, "x", 2**70],
    "input": JSON,
}
# Of numbers those that their columns may hold, and no fractions; no columns of JSON.
COMPARED = {**SET, "pk": KEYS, "attempts": NUMBERS[:5], "fence": NUMBERS[:5]}
del COMPARED["input"]
ORDERED = ["exact", "in", "gt", "gte", "lt", "lte"]
LOOKUPS = {
    "agent": [*ORDERED, "startswith", "endswith", "contains", "icontains"],
    "attempts": ORDERED,
    "next_run_at": ORDERED,
    "parent_id": ["exact"],
    "requested_by_id": ["exact"],
}


@st.composite
def changes(draw: st.DrawFn, *, most: int = 2) -> dict[str, Any]:
    chosen = st.lists(st.sampled_from([*SET]), min_size=1, max_size=most, unique=True)
    names = draw(chosen)
    return {name: draw(st.sampled_from(SET[name])) for name in names}


@st.composite
def conditions(draw: st.DrawFn, *, nested: bool = False) -> Q:
    name = draw(st.sampled_from([*COMPARED]))
    lookup = draw(st.sampled_from(LOOKUPS.get(name, ["exact", "in"])))
    values = st.sampled_from(COMPARED[name])
    if lookup == "in":
        plain = values.filter(lambda one: not isinstance(one, (type(None), DbNow)))
        found = Q((f"{name}__in", draw(st.lists(plain, min_size=1, max_size=3))))
    else:
        found = Q((f"{name}__{lookup}", draw(values)))
    if draw(st.booleans()):
        found = ~found
    if nested or draw(st.booleans()):
        return found
    more = draw(conditions(nested=True))
    return found | more if draw(st.booleans()) else found & more


def turn(key: str, **columns: Any) -> AgentTurn:
    given = {"agent": "a", "next_run_at": THEN, **columns}
    return AgentTurn(thread_id=key, thread_key=key, **given)


@pytest.fixture
def turns() -> None:
    """Turns of which each differs from the next."""
    AgentTurn.objects.bulk_create(
        [
            turn("1", pk=ONE, attempts=1, start_key="a", input={"a": 1}),
            turn("2", pk=TWO, agent="100%", blocked=True, last_error="a\\%_"),
            turn("3", agent="", parent_id=ONE, dispatched_at=THEN, fence=2**31),
        ]
    )


def comes_of(work: Callable[[], Any]) -> Any:
    """Return what work returns and leaves, or what error it ends with; undo it."""
    try:
        with warnings.catch_warnings(), transaction.atomic():
            # Of moments without a zone.
            warnings.simplefilter("ignore")
            returned = work()
            found = AgentTurn.objects.order_by("thread_key")
            left = [[*map(told, row)] for row in found.values_list("thread_key", *SET)]
            transaction.set_rollback(True)
    except Exception as error:  # noqa: BLE001  whichever: the other one is to be the same
        return type(error)
    return returned, left


def told(value: Any) -> str:
    if isinstance(value, datetime) and abs(value - datetime.now(UTC)) < HOUR:
        return "now"
    return repr(value)


@MANY
@given(changes=changes())
def test_a_column_is_set_to_what_django_would_set_it_to(turns, changes):
    every = rows.turns()
    expected = comes_of(lambda: every.update(**changes))

    for _time in range(2):
        assert comes_of(lambda: rows.where(AgentTurn).update(**changes)) == expected


@MANY
@given(condition=conditions())
def test_a_column_is_compared_as_django_would(turns, condition):
    expected = comes_of(lambda: rows.turns().filter(condition).update(error="x"))

    for _time in range(2):
        found = comes_of(lambda: rows.where(AgentTurn, condition).update(error="x"))
        assert found == expected


@MANY
@given(given=st.lists(changes(most=3), min_size=1, max_size=4))
def test_a_new_row_holds_what_django_would_store(turns, given):
    def new() -> list[AgentTurn]:
        return [turn(f"new {n}", **one) for n, one in enumerate(given)]

    expected = comes_of(lambda: AgentTurn.objects.bulk_create(new()) and None)

    for _time in range(2):
        found = comes_of(lambda: rows.insert(new()))
        # Which of several wrong values is found first, each Django has its own way.
        assert found == expected or (is_error(found) and is_error(expected))


def is_error(found: Any) -> bool:
    return isinstance(found, type)
