"""import-linter sees only whole packages of others; what is finer stands here."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.workspace import ROOT

PACKAGE = ROOT / "hitl_approvals"
PURE = ("canonical", "decisions", "policies", "registry", "schemas", "transitions")
ROWS = ("django.db", "hitl_approvals.models", "hitl_approvals.services")
CLOCKS = ("time", "django.utils.timezone")


def imported_names(path: Path) -> Iterator[str]:
    """Yield the full name of everything that a module imports, wherever it does."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("name", PURE)
def test_a_pure_module_knows_neither_rows_nor_the_clock(name):
    imported = list(imported_names(PACKAGE / f"{name}.py"))

    forbidden = [
        found
        for found in imported
        if any(
            found == banned or found.startswith(f"{banned}.")
            for banned in ROWS + CLOCKS
        )
    ]

    assert forbidden == []
