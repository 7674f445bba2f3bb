"""The example of the page on LangGraph does what the page says."""

from __future__ import annotations

from typing import Any

import pytest

from hitl_approvals import Respond, start_turn
from tests.engines.page_examples import (
    assert_prints_what_the_page_shows,
    load_example,
)
from tests.support import turns

pytestmark = [pytest.mark.engines, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> Any:
    return load_example("langgraph", monkeypatch)


def test_the_example_prints_what_the_page_shows(
    example: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert_prints_what_the_page_shows(example, "langgraph.md", capsys)


def test_the_graph_of_the_page_asks_and_pays(
    example: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    turn = start_turn("colors", {"order_id": "A1"}, run=True)
    turns.decide_and_resume(turn, Respond("red"))
    assert capsys.readouterr().out == ""
    turns.decide_and_resume(turn)

    assert turn.status == "completed", turn.last_error
    assert turn.output == {"order_id": "A1", "color": "red", "told": "paid 5"}
    assert capsys.readouterr().out == "paying 5 back for A1\n"
