"""The example of the page on Pydantic AI does what the page says."""

from __future__ import annotations

from importlib.util import module_from_spec, spec_from_file_location
from typing import Any

import pytest

from hitl_approvals.models import PendingInterrupt
from hitl_approvals.registry import registry
from tests.workspace import ROOT

pytestmark = [pytest.mark.engines, pytest.mark.django_db(transaction=True)]
HOW_TO = ROOT / "docs" / "how-to"


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Load the example; forget its agent and its tools afterwards."""
    monkeypatch.setattr(registry, "agents", dict(registry.agents))
    monkeypatch.setattr(registry, "tools", dict(registry.tools))
    place = HOW_TO / "examples" / "pydantic_ai.py"
    spec = spec_from_file_location("example_of_pydantic_ai", place)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_example_prints_what_the_page_shows(
    example: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (HOW_TO / "pydantic-ai.md").read_text(encoding="utf-8")
    shown = page.split("```text\n")[1].split("```")[0]

    result = example.play()

    assert capsys.readouterr().out == shown
    assert f"returns `{result}`" in page
    row = PendingInterrupt.objects.get()
    assert row.outcome_status == "succeeded"
    assert row.context["agent_reason"] == "The order was paid; I refund all of it."
