"""For workflow code under DBOS: have tool calls decided and run outside.

Needs `dbos` and nothing else.
"""

from __future__ import annotations

from typing import Any

from dbos import DBOS

from hitl_approvals.engines import rounds

A_DAY = 24 * 60 * 60
"""Seconds after which a workflow that waits begins to wait anew."""


def topic(number: int) -> str:
    """Return where the answer of a round is sent: a late one for another is not read."""
    return f"{rounds.DECIDE}-{number}"


class Approvals(rounds.Rounds[rounds.Results, rounds.Result]):
    """What a workflow waits for. Make one at the beginning of the workflow's function.

    Every verb is a number of recorded steps, so a recovered workflow goes through the
    same rounds. Use one object a workflow, and one verb at a time.
    """

    def _told(self, asked: dict[str, Any]) -> rounds.Results:
        pending = self._next(asked)
        DBOS.set_event(rounds.PENDING, pending)
        answer = None
        while not _fits(pending, answer):
            answer = DBOS.recv(topic(self.rounds), timeout_seconds=A_DAY)
        DBOS.set_event(rounds.PENDING, self._over())
        results: rounds.Results = answer["results"]  # type: ignore[index]
        return results

    def _answered(self, asked: dict[str, Any]) -> rounds.Result:
        return self._told(asked)[rounds.ANSWER]


class AsyncApprovals(rounds.AsyncRounds):
    """What an async workflow waits for, in the same way: its verbs are awaited."""

    async def _told(self, asked: dict[str, Any]) -> rounds.Results:
        pending = self._next(asked)
        await DBOS.set_event_async(rounds.PENDING, pending)
        answer = None
        while not _fits(pending, answer):
            answer = await DBOS.recv_async(topic(self.rounds), timeout_seconds=A_DAY)
        await DBOS.set_event_async(rounds.PENDING, self._over())
        results: rounds.Results = answer["results"]  # type: ignore[index]
        return results


def _fits(pending: dict[str, Any], answer: Any) -> bool:
    """Tell whether this is the answer; what is not has no effect."""
    if answer is None:
        return False
    try:
        rounds.check(pending, pending["round"], answer)
    except (rounds.AlreadyAnswered, rounds.AnswerRefused) as refused:
        DBOS.logger.warning(f"An answer was not taken: {refused}")
        return False
    return True
