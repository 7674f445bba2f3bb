"""How many examples are drawn.

The same ones in every run, so that a run tells of the change and not of its luck, and
as they come: making a failing history short takes minutes. `HITL_PROPERTIES=600` draws
that many other ones, longer ones, and makes what fails as short as it can.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, Phase, settings

_WANTED = os.environ.get("HITL_PROPERTIES")

HISTORIES = settings(
    max_examples=int(_WANTED or 10),
    stateful_step_count=50 if _WANTED else 25,
    derandomize=not _WANTED,
    phases=[Phase.generate, *([Phase.shrink] if _WANTED else [])],
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    print_blob=bool(_WANTED),
)
"""For drawn histories of a site with a database."""

PURE = settings(
    max_examples=int(_WANTED or 60),
    derandomize=not _WANTED,
    database=None,
    deadline=None,
)
"""For properties that need no database."""
