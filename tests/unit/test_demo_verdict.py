"""The last line and the verdict of `manage.py demo --check`."""

from __future__ import annotations

from typing import Any

import pytest

from example_project.demo.verdict import Verdict

KEPT: dict[str, Any] = {
    "effects": 1,
    "resolved": 1,
    "kills": 2,
    "seconds": 13.4,
    "completed": True,
}


def test_line_says_what_was_counted() -> None:
    assert str(Verdict(**KEPT)) == "demo check: effects=1 resolved=1 kills=2 seconds=13"


def test_promise_holds_only_with_one_effect_one_resolution_and_two_kills() -> None:
    assert Verdict(**KEPT).holds


@pytest.mark.parametrize(
    "broken",
    [
        {"effects": 0},
        {"effects": 2},
        {"resolved": 0},
        {"resolved": 2},
        {"kills": 0},
        {"kills": 1},
        {"kills": 3},
        {"completed": False},
    ],
)
def test_any_other_count_breaks_it(broken: dict[str, Any]) -> None:
    assert not Verdict(**{**KEPT, **broken}).holds
