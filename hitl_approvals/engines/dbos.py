"""For workflow code under DBOS: have tool calls decided and run outside.

Needs `dbos` and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dbos import DBOS

from hitl_approvals.engines import rounds

A_DAY = 24 * 60 * 60
"""Seconds after which a workflow that waits begins to wait anew."""


def topic(number: int) -> str:
    """Return where the answer of a round is sent: a late one for another is not read."""
    return f"{rounds.DECIDE}-{number}"


class Approvals:
    """What a workflow waits for. Make one at the beginning of the workflow's function.

    Every verb is a number of recorded steps, so a recovered workflow goes through the
    same rounds. Use one object a workflow, and one verb at a time.
    """

    def __init__(self) -> None:
        self.rounds = 0
        """How many rounds there were."""

    def call_tools(
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
            ValueError: The calls cannot be asked for.
        """
        return self._wait(rounds.calls_of(calls, messages=messages, reason=reason))

    def ask(
        self, payload: Any, *, response_schema: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Wait until a person has answered a question.

        Returns:
            `decision` (`respond`, or `reject` if nobody would or did answer), `value`,
            and `reason`.
        """
        results = self._wait(rounds.question_of(payload, response_schema))
        answer: dict[str, Any] = results[rounds.ANSWER]
        return answer

    async def call_tools_async(
        self,
        calls: Sequence[Mapping[str, Any]],
        *,
        messages: Sequence[Any] | None = None,
        reason: str | None = None,
    ) -> dict[str, dict[str, Any]]:
        """Do what `call_tools` does, in an async workflow."""
        pending = rounds.calls_of(calls, messages=messages, reason=reason)
        return await self._wait_async(pending)

    async def ask_async(
        self, payload: Any, *, response_schema: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Do what `ask` does, in an async workflow."""
        results = await self._wait_async(rounds.question_of(payload, response_schema))
        answer: dict[str, Any] = results[rounds.ANSWER]
        return answer

    def _wait(self, asked: dict[str, Any]) -> dict[str, Any]:
        pending = self._next(asked)
        DBOS.set_event(rounds.PENDING, pending)
        answer = None
        while not self._fits(pending, answer):
            answer = DBOS.recv(topic(self.rounds), timeout_seconds=A_DAY)
        DBOS.set_event(rounds.PENDING, {"round": self.rounds})
        results: dict[str, Any] = answer["results"]  # type: ignore[index]
        return results

    async def _wait_async(self, asked: dict[str, Any]) -> dict[str, Any]:
        pending = self._next(asked)
        await DBOS.set_event_async(rounds.PENDING, pending)
        answer = None
        while not self._fits(pending, answer):
            answer = await DBOS.recv_async(topic(self.rounds), timeout_seconds=A_DAY)
        await DBOS.set_event_async(rounds.PENDING, {"round": self.rounds})
        results: dict[str, Any] = answer["results"]  # type: ignore[index]
        return results

    def _next(self, asked: dict[str, Any]) -> dict[str, Any]:
        self.rounds += 1
        return {"round": self.rounds, **asked}

    def _fits(self, pending: dict[str, Any], answer: Any) -> bool:
        """Tell whether this is the answer; what is not has no effect."""
        if answer is None:
            return False
        try:
            rounds.check(pending, self.rounds, answer)
        except (rounds.AlreadyAnswered, rounds.AnswerRefused) as refused:
            DBOS.logger.warning(f"An answer was not taken: {refused}")
            return False
        return True
