"""The example of the page on LangGraph does what the page says."""

from __future__ import annotations

from importlib.util import module_from_spec, spec_from_file_location
from typing import Any

import pytest

from hitl_approvals import Respond, start_turn
from hitl_approvals.models import PendingInterrupt
from hitl_approvals.registry import registry
from tests.support import turns
from tests.workspace import ROOT

pytestmark = [pytest.mark.engines, pytest.mark.django_db(transaction=True)]
HOW_TO = ROOT / "docs" / "how-to"


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Load the example; forget its agent and its tools afterwards."""
    monkeypatch.setattr(registry, "agents", dict(registry.agents))
    monkeypatch.setattr(registry, "tools", dict(registry.tools))
    place = HOW_TO / "examples" / "langgraph.py"
    spec = spec_from_file_location("example_of_langgraph", place)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_example_prints_what_the_page_shows(
    example: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (HOW_TO / "langgraph.md").read_text(encoding="utf-8")
    shown = page.split("```text\n")[1].split("```")[0]

    result = example.play()

    assert capsys.readouterr().out == shown
    assert f"returns `{result}`" in page
    row = PendingInterrupt.objects.get()
    assert row.outcome_status == "succeeded"
    assert row.context["agent_reason"] == "The order was paid; I refund all of it."


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
