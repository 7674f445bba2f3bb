"""Durations and counts as people say them."""

from __future__ import annotations

from datetime import timedelta

import pytest

from hitl_approvals.health.lines import Level, Line, counted, spoken, worst


@pytest.mark.parametrize(
    ("span", "text"),
    [
        (timedelta(), "0 s"),
        (timedelta(milliseconds=400), "0 s"),
        (timedelta(seconds=-3), "0 s"),
        (timedelta(seconds=59), "59 s"),
        (timedelta(seconds=60), "1 min"),
        (timedelta(seconds=61), "1 min 1 s"),
        (timedelta(hours=1, seconds=5), "1 h 5 s"),
        (timedelta(hours=25, minutes=3, seconds=9), "1 d 1 h"),
    ],
)
def test_a_duration_is_said_in_its_largest_units(span: timedelta, text: str) -> None:
    assert spoken(span) == text


def test_a_number_is_said_with_its_noun() -> None:
    said = [counted(number, "call is", "calls are") for number in (0, 1, 2)]

    assert said == ["No calls are", "1 call is", "2 calls are"]


def test_the_worst_line_counts() -> None:
    lines = [
        Line("a", Level.OK, ""),
        Line("b", Level.FAIL, ""),
        Line("c", Level.WARN, ""),
    ]

    assert worst(lines) is Level.FAIL
    assert worst([]) is Level.OK
