"""Says in plain words whether anything is stuck or set up wrongly. Changes nothing."""

from __future__ import annotations

from hitl_approvals.health.examination import DEFAULT_MAX_OWED, examine
from hitl_approvals.health.lines import Level, Line, worst

__all__ = ["DEFAULT_MAX_OWED", "Level", "Line", "examine", "worst"]
