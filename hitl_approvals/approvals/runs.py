"""One run of an agent: what it was asked, what was decided for it, what ran already.

A run is found through a context variable, so two runs at once never see each other, and
it ends with the run: what outlives it (a background task, say) finds nothing.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from threading import Lock, RLock
from typing import Any
from uuid import uuid4

from hitl_approvals import canonical
from hitl_approvals.decisions import Decision
from hitl_approvals.exceptions import PayloadRejected
from hitl_approvals.stores.base import ApprovalRequest


@dataclass(frozen=True, slots=True)
class CallKey:
    """Which call of a run this is: the same in a re-run that asks for the same."""

    gate: str
    tool: str
    digest: str
    """Of the arguments that the model gave."""
    occurrence: int


@dataclass(slots=True)
class Seed:
    """A decision for exactly one call of one run."""

    request: ApprovalRequest
    decision: Decision
    used: bool = False

    @property
    def key(self) -> CallKey:
        """Which call it answers."""
        return key_of(self.request)

    def answers(
        self, key: CallKey, args: Mapping[str, Any], schema: Mapping[str, Any] | None
    ) -> bool:
        """Whether this is the call that was decided, and would run what was shown.

        The tool may have changed since: other defaults or types make the same call of
        the model another one.
        """
        return (
            not self.used
            and key == self.key
            and _same(args, self.request.args)
            and _same(schema, self.request.args_schema)
        )


@dataclass(slots=True)
class Run:
    """The state of one run; threads and tasks of the agent share it."""

    agent: str = ""
    thread_id: str = ""
    input: Any = None
    has_input: bool = False
    """False for a call outside of any run, and for input that is not JSON."""
    seed: Seed | None = None
    journal: dict[CallKey, dict[str, Any]] = field(default_factory=dict)
    """Every gated call that was decided, also in runs before this one."""
    id: str = field(default_factory=lambda: uuid4().hex)
    interrupt_id: str | None = None
    """What the run waits for; from then on it starts nothing more."""
    broken: Exception | None = None
    """Why nothing more may start: a request could not be kept."""
    bug: Exception | None = None
    """What a handler raised or answered that it must not."""
    closed: bool = False
    gated: RLock = field(default_factory=RLock)
    """Held by the one thread that asks for or runs a gated call."""
    _occurrences: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    _calls: int = 0
    _lock: Lock = field(default_factory=Lock)
    _agated: dict[Any, asyncio.Lock] = field(default_factory=dict)

    def number(self, gate: str, tool: str, digest: str) -> tuple[CallKey, int]:
        """Return the key of the next call of its kind, and how many calls came before."""
        with self._lock:
            trip, self._calls = self._calls, self._calls + 1
            self._occurrences[gate, tool, digest] += 1
            occurrence = self._occurrences[gate, tool, digest]
        return CallKey(gate, tool, digest, occurrence), trip

    def suspend(self, interrupt_id: str) -> str:
        """Stop at an interrupt, unless another one was first; return what it waits for."""
        with self._lock:
            self.interrupt_id = self.interrupt_id or interrupt_id
            return self.interrupt_id

    def agated(self) -> asyncio.Lock:
        """Return the lock that tasks of this event loop hold for a gated call."""
        with self._lock:
            return self._agated.setdefault(asyncio.get_running_loop(), asyncio.Lock())

    def decided_before(
        self, key: CallKey, args: Mapping[str, Any], schema: Mapping[str, Any] | None
    ) -> bool:
        """Whether the call was decided: a policy that changed does not undo that."""
        return key in self.journal or (
            self.seed is not None and self.seed.answers(key, args, schema)
        )

    def take_seed(
        self, key: CallKey, args: Mapping[str, Any], schema: Mapping[str, Any] | None
    ) -> Seed | None:
        """Return the decision for this very call, once."""
        if self.seed is None or not self.seed.answers(key, args, schema):
            return None
        self.seed.used = True
        return self.seed


_current: ContextVar[Run | None] = ContextVar("hitl_approvals_run", default=None)
_inside: ContextVar[bool] = ContextVar("hitl_approvals_inside", default=False)


def current_run() -> Run | None:
    """Return the run that this code belongs to, or None."""
    run = _current.get()
    return None if run is None or run.closed else run


@contextmanager
def running(run: Run) -> Iterator[Run]:
    """Make `run` the run of this context while the block lasts, and end it there."""
    token = _current.set(run)
    try:
        yield run
    finally:
        run.closed = True
        _current.reset(token)


def is_inside_gated_call() -> bool:
    """Whether this code is part of a call that a person approved."""
    return _inside.get()


@contextmanager
def inside_gated_call() -> Iterator[None]:
    """Mark what the block calls as part of an approved call."""
    token = _inside.set(True)
    try:
        yield
    finally:
        _inside.reset(token)


def key_of(request: ApprovalRequest) -> CallKey:
    """Return the key of the call that a request is about."""
    return CallKey(request.gate, request.tool_name, request.digest, request.occurrence)


def _same(one: Any, other: Any) -> bool:
    return canonical.dumps(one, max_bytes=None, max_depth=None) == canonical.dumps(
        other, max_bytes=None, max_depth=None
    )


def journal_of(entries: tuple[Mapping[str, Any], ...]) -> dict[CallKey, dict[str, Any]]:
    """Return a request's journal by the keys of its calls."""
    return {
        CallKey(
            entry["gate"], entry["tool"], entry["digest"], entry["occurrence"]
        ): dict(entry)
        for entry in entries
    }


def input_as_json(value: Any) -> tuple[Any, bool]:
    """Return an agent's input as it can be kept, and whether it can."""
    try:
        return canonical.loads(canonical.dumps(value)), True
    except PayloadRejected:
        return None, False
