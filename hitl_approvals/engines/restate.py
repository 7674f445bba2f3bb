"""For workflow code under Restate: have tool calls decided and run outside.

Needs `restate-sdk` and nothing else.
"""

from __future__ import annotations

from typing import Any

import restate
from restate import WorkflowContext, WorkflowSharedContext
from restate.exceptions import TerminalError

from hitl_approvals.engines import rounds

OVER, REFUSED = 409, 422
"""HTTP statuses: the round has its answer, or this is none."""


def with_approvals(workflow: restate.Workflow) -> restate.Workflow:
    """Give a workflow the handlers by which it is asked and answered."""

    @workflow.handler(rounds.PENDING)
    async def hitl_pending(ctx: WorkflowSharedContext) -> dict[str, Any]:
        return await _shown(ctx)

    @workflow.handler(rounds.DECIDE)
    async def hitl_decide(ctx: WorkflowSharedContext, answer: dict[str, Any]) -> str:
        shown = await _shown(ctx)
        waits = shown if len(shown) > 1 else None
        try:
            rounds.check(waits, shown.get("round", 0), answer)
        except rounds.AlreadyAnswered as error:
            raise TerminalError(str(error), status_code=OVER) from error
        except rounds.AnswerRefused as error:
            raise TerminalError(str(error), status_code=REFUSED) from error
        # The engine itself refuses a second answer, with the same status.
        await ctx.promise(_promise(answer["round"])).resolve(answer["results"])
        return "recorded"

    return workflow


class Approvals(rounds.AsyncRounds):
    """What a workflow waits for. Make one at the beginning of the main handler.

    Use one object a workflow, and one verb at a time.
    """

    def __init__(self, ctx: WorkflowContext) -> None:
        super().__init__()
        self._ctx = ctx

    async def _told(self, asked: dict[str, Any]) -> rounds.Results:
        self._ctx.set(rounds.PENDING, self._next(asked))
        results: rounds.Results = await self._ctx.promise(_promise(self.rounds)).value()
        self._ctx.set(rounds.PENDING, self._over())
        return results

    def _refusal(self, error: ValueError) -> Exception:
        refused: Exception = TerminalError(str(error), status_code=REFUSED)
        return refused


async def _shown(ctx: WorkflowSharedContext) -> dict[str, Any]:
    shown: dict[str, Any] | None = await ctx.get(rounds.PENDING)
    return shown or {"round": 0}


def _promise(number: int) -> str:
    return f"hitl-round-{number}"
