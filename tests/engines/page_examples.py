"""Loads the example of a framework's page, and holds it to what the page shows."""

from __future__ import annotations

from importlib.util import module_from_spec, spec_from_file_location
from typing import Any

import pytest

from hitl_approvals.models import PendingInterrupt
from hitl_approvals.registry import registry
from tests.workspace import ROOT

HOW_TO = ROOT / "docs" / "how-to"


def load_example(name: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Load an example; its agent and its tools are forgotten when the test ends."""
    monkeypatch.setattr(registry, "agents", dict(registry.agents))
    monkeypatch.setattr(registry, "tools", dict(registry.tools))
    place = HOW_TO / "examples" / f"{name}.py"
    spec = spec_from_file_location(f"example_of_{name}", place)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def assert_prints_what_the_page_shows(
    example: Any, page_name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Play an example and compare with its page."""
    page = (HOW_TO / page_name).read_text(encoding="utf-8")
    shown = page.split("```text\n")[1].split("```")[0]

    result = example.play()

    assert capsys.readouterr().out == shown
    assert f"returns `{result}`" in page
    row = PendingInterrupt.objects.get()
    assert row.outcome_status == "succeeded"
    assert row.context["agent_reason"] == "The order was paid; I refund all of it."
