"""For workflow code under Restate: have tool calls decided and run outside.

Needs `restate-sdk` and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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


class Approvals:
    """What a workflow waits for. Make one at the beginning of the main handler.

    Use one object a workflow, and one verb at a time.
    """

    def __init__(self, ctx: WorkflowContext) -> None:
        self.rounds = 0
        """How many rounds there were."""
        self._ctx = ctx

    async def call_tools(
        self,
        calls: Sequence[Mapping[str, Any]],
        *,
        messages: Sequence[Any] | None = None,
        reason: str | None = None,
    ) -> dict[str, dict[str, Any]]:
        """Wait until all calls of a model's reply were decided and run, or refused.

        Args:
            calls: `{"id", "name", "args"}` each; ids are unique within the reply.
            messages: The conversation, shown to the reviewer as far as it fits.
            reason: The agent's stated reason, for the reviewer.

        Returns:
            By id of the call: `decision` (None where nobody had to decide), `args` as
            they were allowed, and `message` for the model.

        Raises:
            TerminalError: The calls cannot be asked for. The workflow fails.
        """
        try:
            asked = rounds.calls_of(calls, messages=messages, reason=reason)
        except ValueError as error:
            raise TerminalError(str(error), status_code=REFUSED) from error
        return await self._wait(asked)

    async def ask(
        self, payload: Any, *, response_schema: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Wait until a person has answered a question.

        Returns:
            `decision` (`respond`, or `reject` if nobody would or did answer), `value`,
            and `reason`.
        """
        results = await self._wait(rounds.question_of(payload, response_schema))
        answer: dict[str, Any] = results[rounds.ANSWER]
        return answer

    async def _wait(self, asked: dict[str, Any]) -> dict[str, Any]:
        self.rounds += 1
        self._ctx.set(rounds.PENDING, {"round": self.rounds, **asked})
        results: dict[str, Any] = await self._ctx.promise(_promise(self.rounds)).value()
        self._ctx.set(rounds.PENDING, {"round": self.rounds})
        return results


async def _shown(ctx: WorkflowSharedContext) -> dict[str, Any]:
    shown: dict[str, Any] | None = await ctx.get(rounds.PENDING)
    return shown or {"round": 0}


def _promise(number: int) -> str:
    return f"hitl-round-{number}"
