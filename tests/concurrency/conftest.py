"""Tells at the end what the writes of the API were told where they met."""

from __future__ import annotations

import os
from typing import Any


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print the table, where `make races` let them all meet."""
    if "HITL_RACE_ROUNDS" not in os.environ:
        return
    from tests.concurrency import summary

    for line in summary.lines():
        terminalreporter.write_line(line)
