"""For workflow code under Temporal: have tool calls decided and run outside.

Needs `temporalio` and nothing else, so the workflow sandbox can import it.
"""

from __future__ import annotations

import asyncio
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ApplicationError

from hitl_approvals.engines import rounds

ALREADY_DECIDED = "HitlAlreadyDecided"
REFUSED = "HitlRefused"


class Approvals(rounds.AsyncRounds):
    """What a workflow waits for, and the handlers by which it is asked and answered.

    Make one in the workflow's `__init__`. Calls of a round wait together; rounds that
    are asked for at the same time wait one after the other.
    """

    def __init__(self, *, after: int = 0) -> None:
        """Register the handlers.

        Args:
            after: `rounds` of the run that this one continues, after continue-as-new.
        """
        super().__init__(after=after)
        self._pending: dict[str, Any] | None = None
        self._results: rounds.Results | None = None
        self._one_by_one = asyncio.Lock()
        workflow.set_query_handler(rounds.PENDING, self._tell)
        workflow.set_update_handler(
            rounds.DECIDE, self._decide, validator=self._validate
        )
        workflow.set_signal_handler(rounds.DECIDE, self._hear)

    async def _told(self, asked: dict[str, Any]) -> rounds.Results:
        async with self._one_by_one:
            self._results = None
            self._pending = self._next(asked)
            try:
                await workflow.wait_condition(lambda: self._results is not None)
            finally:
                # Also when the workflow stops waiting: nobody has to decide it then.
                self._pending = None
            return self._taken()

    def _refusal(self, error: ValueError) -> Exception:
        refused: Exception = ApplicationError(str(error), non_retryable=True)
        return refused

    def _taken(self) -> rounds.Results:
        return self._results or {}

    def _tell(self) -> dict[str, Any]:
        return self._pending or self._over()

    def _validate(self, answer: dict[str, Any]) -> None:
        """Refuse an answer before it enters the workflow's history."""
        try:
            rounds.check(self._open(), self.rounds, answer)
        except rounds.AlreadyAnswered as error:
            raise ApplicationError(str(error), type=ALREADY_DECIDED) from error
        except rounds.AnswerRefused as error:
            raise ApplicationError(str(error), type=REFUSED) from error

    def _decide(self, answer: dict[str, Any]) -> str:
        # Again: a second answer may have been let in while the first was on its way.
        self._validate(answer)
        self._results = answer["results"]
        return "recorded"

    def _hear(self, answer: dict[str, Any]) -> None:
        """Take an answer that came as a signal; what does not fit has no effect."""
        try:
            self._decide(answer)
        except ApplicationError as refused:
            workflow.logger.warning("An answer was not taken: %s", refused)

    def _open(self) -> dict[str, Any] | None:
        return self._pending if self._results is None else None
