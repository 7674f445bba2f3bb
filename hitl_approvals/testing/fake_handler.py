"""A handler of the gate for any agent that answers from a list. Needs no settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hitl_approvals.decisions import Decision
from hitl_approvals.exceptions import InterruptSuspended
from hitl_approvals.stores.base import ApprovalRequest


class FakeHandler:
    """Answers requests in order, and keeps them.

    Args:
        *answers: One decision a request; None suspends the run there, as does every
            request after the last answer.
    """

    def __init__(self, *answers: Decision | Mapping[str, Any] | None) -> None:
        self.requests: list[ApprovalRequest] = []
        """What was asked, in order."""
        self._answers = list(answers)

    def __call__(self, request: ApprovalRequest) -> Decision | Mapping[str, Any]:
        """Return the next answer.

        Raises:
            InterruptSuspended: There is none for this request.
        """
        self.requests.append(request)
        answer = self._answers.pop(0) if self._answers else None
        if answer is None:
            raise InterruptSuspended(request.interrupt_id)
        return answer
