"""What a workflow and its adapter tell each other, a round at a time.

Pure: engines run workflow code in places of their own, where nothing else may be
imported.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, Generic, TypeVar

Result = dict[str, Any]
Results = dict[str, Result]
"""What came of each call of a round, by its id."""
Told = TypeVar("Told")
Answered = TypeVar("Answered")

PENDING = "hitl_pending"
"""Under this name a workflow shows what it waits for."""
DECIDE = "hitl_decide"
"""Under this name it takes the answer."""
ANSWER = "answer"
"""Stands for the id of a call in the answer to a question."""
PARTS = {"decision", "args", "message"}
"""What an answer holds of each call."""


class AlreadyAnswered(Exception):
    """The workflow has had its answer of this round, or does not wait for it any more."""


class AnswerRefused(Exception):
    """The answer does not fit what the workflow waits for."""


class Rounds(ABC, Generic[Told, Answered]):
    """What workflow code asks with; how to wait and to refuse is its engine's.

    In an async workflow both verbs return what is to be awaited.
    """

    def __init__(self, *, after: int = 0) -> None:
        self.rounds = after
        """How many rounds there were."""

    def call_tools(
        self,
        calls: Sequence[Mapping[str, Any]],
        *,
        messages: Sequence[Any] | None = None,
        reason: str | None = None,
    ) -> Told:
        """Wait until all calls of a model's reply were decided and run, or refused.

        Args:
            calls: `{"id", "name", "args"}` each; ids are unique within the reply.
            messages: The conversation, shown to the reviewer as far as it fits.
            reason: The agent's stated reason, for the reviewer.

        Returns:
            By id of the call: `decision` (None where nobody had to decide), `args` as
            they were allowed, and `message` for the model.

        Raises:
            Exception: The calls cannot be asked for. It is the engine's own error that
                is not tried again: the workflow fails.
        """
        try:
            asked = calls_of(calls, messages=messages, reason=reason)
        except ValueError as error:
            raise self._refusal(error) from error
        return self._told(asked)

    def ask(
        self, payload: Any, *, response_schema: Mapping[str, Any] | None = None
    ) -> Answered:
        """Wait until a person has answered a question.

        Returns:
            `decision` (`respond`, or `reject` if nobody would or did answer), `value`,
            and `reason`.
        """
        return self._answered(question_of(payload, response_schema))

    @abstractmethod
    def _told(self, asked: dict[str, Any]) -> Told:
        """Ask as the next round, and return the results of it."""

    @abstractmethod
    def _answered(self, asked: dict[str, Any]) -> Answered:
        """Ask as the next round, and return the one result of it."""

    def _refusal(self, error: ValueError) -> Exception:
        """Return the engine's error for calls that cannot be asked for."""
        return error

    def _next(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Count a round, and return what the workflow shows while it waits for it."""
        self.rounds += 1
        return {"round": self.rounds, **asked}

    def _over(self) -> dict[str, Any]:
        """Return what the workflow shows while it waits for nothing."""
        return {"round": self.rounds}


class AsyncRounds(Rounds[Coroutine[Any, Any, Results], Coroutine[Any, Any, Result]]):
    """What async workflow code asks with."""

    @abstractmethod
    async def _told(self, asked: dict[str, Any]) -> Results: ...

    async def _answered(self, asked: dict[str, Any]) -> Result:
        return (await self._told(asked))[ANSWER]


def calls_of(
    calls: Sequence[Mapping[str, Any]],
    *,
    messages: Sequence[Any] | None = None,
    reason: str | None = None,
) -> dict[str, Any]:
    """Return what a workflow shows while it waits for calls.

    Raises:
        ValueError: There are none, or one has no id, or two have the same.
    """
    listed = [dict(one) for one in calls]
    ids = [one.get("id") for one in listed]
    if not listed:
        raise ValueError("There is no call to wait for.")
    if not all(isinstance(one, str) and one for one in ids):
        raise ValueError("Every call needs an id: a text that is not empty.")
    if len(set(ids)) != len(ids):
        raise ValueError(f"Calls of one round need ids of their own; got {ids}.")
    return {
        "calls": listed,
        "messages": None if messages is None else list(messages),
        "reason": reason,
    }


def question_of(
    payload: Any, response_schema: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return what a workflow shows while it waits for the answer to a question."""
    schema = None if response_schema is None else dict(response_schema)
    return {"question": payload, "response_schema": schema}


def check(pending: Mapping[str, Any] | None, rounds: int, answer: Any) -> None:
    """Refuse an answer that is not the one that is waited for.

    Args:
        pending: What the workflow shows; None while it waits for nothing.
        rounds: How many rounds there were, the one that waits included.
        answer: What arrived.

    Raises:
        AlreadyAnswered: Its round is over.
        AnswerRefused: It is nonsense, of no known round, or for other calls.
    """
    if not isinstance(answer, Mapping) or not isinstance(
        answer.get("results"), Mapping
    ):
        raise AnswerRefused("An answer holds a round and its results.")
    number = answer.get("round")
    if isinstance(number, bool) or not isinstance(number, int):
        raise AnswerRefused("An answer names its round by a number.")
    if not 0 < number <= rounds:
        raise AnswerRefused(f"There is no round {number}; there were {rounds}.")
    if pending is None or number < rounds:
        raise AlreadyAnswered(f"Round {number} is over.")
    expected = ids_of(pending)
    given = set(answer["results"])
    if given != expected:
        raise AnswerRefused(
            f"Round {number} waits for {sorted(expected)}; got {sorted(map(str, given))}."
        )
    for name, result in answer["results"].items():
        if name != ANSWER and not (
            isinstance(result, Mapping) and set(result) >= PARTS
        ):
            raise AnswerRefused(f"The result of {name!r} lacks {sorted(PARTS)}.")


def ids_of(pending: Mapping[str, Any]) -> set[str]:
    """Return the names that the results of a round have."""
    if "question" in pending:
        return {ANSWER}
    return {one["id"] for one in pending["calls"]}
