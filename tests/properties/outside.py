"""The world outside every transaction: what calls did to it, and what the next one meets.

Each call of a drawn turn carries a tag of its own, so that its effects can be counted
without a look at the package's rows.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from django.contrib.auth.models import Group

from hitl_approvals import Turn, current_call, tool
from hitl_approvals.exceptions import (
    ApprovalRejected,
    ToolFailed,
    ToolNotStarted,
    TurnFailed,
)
from hitl_approvals.registry import AgentDefinition, Tool, registry

AGENT = "drawn"
FINE, RAISES_BEFORE, RAISES_AFTER, SAYS_NO, NEVER_STARTED = (
    "fine",
    "raises before the effect",
    "raises after it",
    "says that nothing happened",
    "never started",
)
MOODS = (FINE, RAISES_BEFORE, RAISES_AFTER, SAYS_NO, NEVER_STARTED)
"""How the body of the next call ends."""
WHIMS = ("raises", "fails", "asks for nothing", "asks for something else")
"""What the agent's own code does next, instead of what its script says."""


class Died(BaseException):
    """The process was killed here: no `except Exception` sees it."""


@dataclass(frozen=True)
class Act:
    """One effect: which call had it, under which key, with which arguments."""

    tag: str
    key: str
    amount: int


@dataclass
class Outside:
    """Everything that happened, and everything that is still to happen."""

    acts: list[Act] = field(default_factory=list)
    moods: deque[str] = field(default_factory=deque)
    whim: str = ""
    before: Callable[[], None] | None = None
    after: Callable[[], None] | None = None
    """What else happens before and after the effect of the next call, while it lasts."""
    overslept: bool = False
    """Whether a call was still under way when its hard deadline passed."""

    def act(self, tag: str, amount: int) -> str:
        """Have the effect of one call, in the mood that is drawn for it."""
        mood = self.moods.popleft() if self.moods else FINE
        before, self.before = self.before, None
        after, self.after = self.after, None
        if before is not None:
            before()
        if mood == SAYS_NO and not self._has(self._key()):
            # Asked under the same key again, nobody would say no to what was done.
            raise ToolFailed("No.")
        if mood == NEVER_STARTED:
            raise ToolNotStarted("Not now.")
        if mood == RAISES_BEFORE:
            raise TimeoutError
        self.acts.append(Act(tag, self._key(), amount))
        if after is not None:
            after()
        if mood == RAISES_AFTER:
            raise TimeoutError
        return f"done {tag}"

    def keys_of(self, tag: str) -> Counter[str]:
        """Return how often a call acted, by key."""
        return Counter(act.key for act in self.acts if act.tag == tag)

    def calm_down(self) -> None:
        """Let everything go well from here on."""
        self.moods.clear()
        self.whim, self.before, self.after = "", None, None

    def look_up(self, key: str) -> Any:
        """Say truthfully whether the other side has a call."""
        return ("done", "found") if self._has(key) else "absent"

    def _key(self) -> str:
        underway = current_call()
        assert underway is not None
        return underway.idempotency_key

    def _has(self, key: str) -> bool:
        return any(act.key == key for act in self.acts)


outside = Outside()


def _unsafe(tag: str, amount: int) -> str:
    """Do something that cannot be undone or asked about."""
    return outside.act(tag, amount)


def _free(tag: str, amount: int) -> str:
    """Do something that nobody has to approve."""
    return outside.act(tag, amount)


def _idempotent(tag: str, amount: int) -> str:
    """Do something once under its key."""
    return outside.act(tag, amount)


def _lookup(tag: str, amount: int) -> str:
    """Do something that can be asked about."""
    return outside.act(tag, amount)


def _transactional(tag: str, amount: int) -> str:
    """Write a row, and raise or not."""
    mood = outside.moods.popleft() if outside.moods else FINE
    Group.objects.create(name=f"{tag}#{amount}#{Group.objects.count()}")
    if mood == SAYS_NO:
        raise ToolFailed("No.")
    if mood == NEVER_STARTED:
        raise ToolNotStarted("Not now.")
    if mood in (RAISES_BEFORE, RAISES_AFTER):
        raise TimeoutError
    return f"done {tag}"


def rows_of(tag: str) -> int:
    """Return how many rows a transactional call left."""
    return Group.objects.filter(name__startswith=f"{tag}#").count()


def perform(turn: Turn, script: list[Any]) -> str:
    """Ask for every batch of the script; a string is a question instead."""
    whim, outside.whim = outside.whim, ""
    if whim == "raises":
        raise RuntimeError(whim)
    if whim == "fails":
        raise TurnFailed(whim)
    if whim == "asks for nothing":
        return "nothing"
    for batch in script:
        if isinstance(batch, str):
            try:
                turn.interrupt({"question": batch}, key=batch)
            except ApprovalRejected:
                continue
        else:
            other = 100 if whim == "asks for something else" else 0
            turn.call_tools([_as_asked(call, other) for call in batch])
    return "done"


def _as_asked(call: dict[str, Any], more: int) -> dict[str, Any]:
    args = {**call["args"], "amount": call["args"]["amount"] + more}
    return {**call, "args": args}


@contextmanager
def opened() -> Iterator[Outside]:
    """Register the drawn agent and its tools while the block runs."""
    tools: list[Tool[Any, Any]] = [
        tool(name="drawn_unsafe", effect="unsafe", fixed=["tag"])(_unsafe),
        tool(name="drawn_free", effect="unsafe", requires_approval=False)(_free),
        tool(
            name="drawn_idempotent",
            effect="idempotent",
            retention=3600,
            fixed=["tag"],
        )(_idempotent),
        tool(
            name="drawn_lookup",
            effect="lookup",
            lookup=outside.look_up,
            fixed=["tag"],
        )(_lookup),
        tool(name="drawn_transactional", effect="transactional", fixed=["tag"])(
            _transactional
        ),
    ]
    registry.add_agent(
        AgentDefinition(name=AGENT, target=perform, tools={t.name: t for t in tools})
    )
    try:
        yield outside
    finally:
        del registry.agents[AGENT]
        for one in tools:
            del registry.tools[one.name]


def forget() -> None:
    """Begin with an empty world."""
    vars(outside).update(vars(Outside()))
