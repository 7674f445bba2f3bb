"""The only code that writes rows. Every transition is a conditional update."""

from __future__ import annotations

from hitl_approvals.services.control import cancel, re_review, restart, retry
from hitl_approvals.services.decisions import decide
from hitl_approvals.services.settlements import settle
from hitl_approvals.services.sweeper import SweepReport, sweep
from hitl_approvals.types import DecisionReceipt

__all__ = [
    "DecisionReceipt",
    "SweepReport",
    "cancel",
    "decide",
    "re_review",
    "restart",
    "retry",
    "settle",
    "sweep",
]
