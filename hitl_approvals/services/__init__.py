"""The only code that writes rows. Every transition is a conditional update."""

from __future__ import annotations

from hitl_approvals.services.claims import assign, claim, release
from hitl_approvals.services.client_limits import limit_of
from hitl_approvals.services.client_tokens import authenticate
from hitl_approvals.services.clients import (
    change_client,
    create_client,
    ensure_client,
    revoke_client,
    rotate_token,
)
from hitl_approvals.services.consuming import consume
from hitl_approvals.services.control import cancel, re_review, restart, retry
from hitl_approvals.services.decisions import decide
from hitl_approvals.services.forking import fork
from hitl_approvals.services.giving_back import give_back
from hitl_approvals.services.outcomes import report_outcome
from hitl_approvals.services.raising import raise_remote
from hitl_approvals.services.resending import give_up_delivery, resend_delivery
from hitl_approvals.services.revealing import reveal
from hitl_approvals.services.settlements import settle
from hitl_approvals.services.sweeper import SweepReport, sweep
from hitl_approvals.services.withdrawing import withdraw
from hitl_approvals.types import (
    ConsumedDecision,
    DecisionReceipt,
    OutcomeReceipt,
    RaiseReceipt,
)

__all__ = [
    "ConsumedDecision",
    "DecisionReceipt",
    "OutcomeReceipt",
    "RaiseReceipt",
    "SweepReport",
    "assign",
    "authenticate",
    "cancel",
    "change_client",
    "claim",
    "consume",
    "create_client",
    "decide",
    "ensure_client",
    "fork",
    "give_back",
    "give_up_delivery",
    "limit_of",
    "raise_remote",
    "re_review",
    "release",
    "report_outcome",
    "resend_delivery",
    "restart",
    "retry",
    "reveal",
    "revoke_client",
    "rotate_token",
    "settle",
    "sweep",
    "withdraw",
]
