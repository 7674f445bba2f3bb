"""The example of the page on LangGraph's checkpoints does what the page says."""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from typing import Any

import pytest

from hitl_approvals.checkpoints import close_idle_connections
from hitl_approvals.checkpoints.models import Checkpoint, PendingWrite
from tests.workspace import ROOT

pytestmark = [pytest.mark.engines, pytest.mark.django_db(transaction=True)]
HOW_TO = ROOT / "docs" / "how-to"


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> Any:
    place = HOW_TO / "examples" / "langgraph_checkpoints.py"
    spec = spec_from_file_location("example_of_checkpoints", place)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    # The types of its state are looked up by the module's name.
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    yield module
    close_idle_connections()


def test_the_example_prints_what_the_page_shows(
    example: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (HOW_TO / "langgraph-checkpoints.md").read_text(encoding="utf-8")
    shown = page.split("```text\n")[1].split("```")[0]

    example.play()

    assert capsys.readouterr().out == shown
    # The page tells how much that was.
    assert Checkpoint.objects.count() == 4
    assert PendingWrite.objects.count() > 0
