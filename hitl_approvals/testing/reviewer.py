"""A reviewer made of rules: decides what waits, through the same door as everybody."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from hitl_approvals import services
from hitl_approvals.decisions import Decision
from hitl_approvals.enums import InterruptStatus
from hitl_approvals.exceptions import TransitionNotAllowed
from hitl_approvals.models import PendingInterrupt
from hitl_approvals.testing.owed import run_owed
from hitl_approvals.types import DecisionReceipt, Person

Answer: TypeAlias = Decision | Mapping[str, Any]
Rule: TypeAlias = Callable[[PendingInterrupt], Answer | None]
"""Returns what to decide, or None to leave it to somebody else."""


class SimulatedReviewer:
    """Decides open interrupts by rules, for tests and demonstrations.

    Args:
        rules: A decision or a rule by the name of a tool (a question's is empty), or one
            rule for everything.
        by: As whom it decides; its rights are checked. None is trusted code.
        via: The door, for the audit trail.
    """

    def __init__(
        self,
        rules: Rule | Mapping[str, Answer | Rule],
        *,
        by: Person | None = None,
        via: str = "simulated",
    ) -> None:
        self._rules = rules
        self._by = by
        self._via = via

    def review(self) -> list[DecisionReceipt]:
        """Decide everything that waits now, the oldest first, and return the receipts.

        What somebody else decides meanwhile is theirs.

        Raises:
            HitlApprovalsError: A decision was refused.
        """
        pending = PendingInterrupt.objects.filter(status=InterruptStatus.PENDING)
        receipts = []
        for row in pending.order_by("requested_at", "pk"):
            answer = self._answer(row)
            if answer is None:
                continue
            try:
                receipt = services.decide(row.pk, answer, by=self._by, via=self._via)
            except TransitionNotAllowed:
                continue
            receipts.append(receipt)
        return receipts

    def work(self, *, limit: int = 100) -> list[DecisionReceipt]:
        """Decide and run what is owed, in turn, until there is nothing left to decide.

        Raises:
            HitlApprovalsError: A decision was refused.
            UnsafeContext: A transaction is open; mark the test as transactional.
        """
        receipts: list[DecisionReceipt] = []
        for _round in range(limit):
            run_owed()
            made = self.review()
            if not made:
                break
            receipts += made
        return receipts

    def _answer(self, row: PendingInterrupt) -> Answer | None:
        if callable(self._rules):
            return self._rules(row)
        answer = self._rules.get(row.tool_name or "")
        return answer(row) if callable(answer) else answer
