"""Plays the examples of the pages on engines: the workflow's side as its own process."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import util

from hitl_approvals import start_turn
from hitl_approvals.registry import registry
from tests.engines.forwarding import pursue
from tests.servers.bound import bound
from tests.support import turns
from tests.workspace import ROOT

FOLDER = ROOT / "docs" / "how-to" / "examples"


@contextmanager
def played(engine: str, *arguments: str) -> Iterator[None]:
    """Run an example's workflows in a process, and register its agent and tool here."""
    process = subprocess.Popen(
        bound([sys.executable, FOLDER / f"{engine}_workflow.py", *arguments]),
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT)},
    )
    before = dict(registry.agents), dict(registry.tools)
    try:
        _import(f"{engine}_agents")
        yield
    finally:
        for kept, now in zip(before, (registry.agents, registry.tools), strict=True):
            now.clear()
            now.update(kept)
        process.kill()
        process.wait()


def _import(name: str) -> None:
    found = util.spec_from_file_location(name, FOLDER / f"{name}.py")
    assert found is not None
    assert found.loader is not None
    found.loader.exec_module(util.module_from_spec(found))


def assert_does_what_the_page_says() -> None:
    """Start the example's agent, approve what it asks for, and see it end."""
    turn = start_turn("refunds", "Refund A1, please.", run=True)
    pursue(turn)

    row = turns.only(turn)
    assert (row.tool_name, row.args) == ("issue_refund", {"order": "A1", "amount": 120})
    assert row.context["agent_reason"] == "I will refund."
    turns.decide(row)
    pursue(turn)

    assert (turn.status, turn.output) == ("completed", "refunded 120")
