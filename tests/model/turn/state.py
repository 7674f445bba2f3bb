"""What the turn's model remembers: the rows, two workers, and how much may still go wrong.

Fence numbers are not kept. Of a worker only whether its fence is the turn's matters
(`current`), of a step only whose fence it bears (`owner`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from hitl_approvals.enums import InterruptStatus, StepStatus, TurnStatus

# As plain text: hashing a member of an enumeration runs Python code every time.
READY = TurnStatus.READY.value
RUNNING = TurnStatus.RUNNING.value
SUSPENDED = TurnStatus.SUSPENDED.value
COMPLETED = TurnStatus.COMPLETED.value
NEEDS_ATTENTION = TurnStatus.NEEDS_ATTENTION.value
FAILED = TurnStatus.FAILED.value
CANCELLED = TurnStatus.CANCELLED.value
OPEN_TURN = (READY, RUNNING, SUSPENDED, NEEDS_ATTENTION)
CLOSED = (COMPLETED, FAILED, CANCELLED)

PENDING = InterruptStatus.PENDING.value
DECIDED = InterruptStatus.DECIDED.value
IN_DOUBT = InterruptStatus.IN_DOUBT.value
RESOLVED = InterruptStatus.RESOLVED.value
WITHDRAWN = InterruptStatus.CANCELLED.value
WAITING = (PENDING, IN_DOUBT)

STARTED = StepStatus.STARTED.value
SUCCEEDED = StepStatus.SUCCEEDED.value
STEP_FAILED = StepStatus.FAILED.value
NOT_STARTED = StepStatus.NOT_STARTED.value
UNKNOWN = StepStatus.UNKNOWN.value

NONE = ""
"""No row, no decision, nothing forged: whatever is not there."""
NOBODY = -1

APPROVE, EDIT, REFUSE, ANSWER = "approve", "edit", "refuse", "answer"
SUPERSEDED = "superseded"
"""Stands for the decision of a withdrawn call that the next run asks for anew."""
MAY_RUN = (APPROVE, EDIT)
ASKED, CHOSEN = "asked", "chosen"
"""Which arguments somebody forged: those that were asked for, or a reviewer's own."""

# What a worker is at. It stops between two of these, and may be killed there.
IDLE, AGENT, CALL, BODY, DONE, FOUND_DONE, FOUND_ABSENT, END = range(8)

# What a run has noted of each call, one letter a call.
PLAIN, FOUND, DOUBT, LATER, LAPSED = ".sdlx"


class Step(NamedTuple):
    """The ledger's row of one call in one generation, and what the call did."""

    status: str
    owner: int
    effects: int


class Call(NamedTuple):
    """One call or question of the script: its interrupt and its steps."""

    interrupt: str
    decision: str
    late: bool
    """Whether `execute_by` has passed."""
    forged: str
    steps: tuple[Step, ...]
    """One a generation."""
    authorized: int
    decisions: int
    """In this generation; more than one is a flaw."""
    resolutions: int


class Worker(NamedTuple):
    """One process that runs, or ran, this turn."""

    phase: int
    current: bool
    at: int
    generation: int
    notes: str
    forged: int
    """Bit mask of the calls whose arguments were forged when the run read them."""
    behind: int
    """Bit mask of the calls whose chain of events grew since the run read it."""


class State(NamedTuple):
    """Everything that what happens next may depend on."""

    turn: str
    undecided: int
    attempts: int
    hint: bool
    replies: int
    """How many replies of the language model are on record."""
    restarted: bool
    """Whether the next run begins anew, under new keys."""
    calls: tuple[Call, ...]
    workers: tuple[Worker, Worker]
    crashes: int
    zombies: int
    reopenings: int
    oddities: int
    forgeries: int
    flaw: str


NO_STEP = Step(NONE, NOBODY, 0)
ABSENT = Call(NONE, NONE, False, NONE, (NO_STEP,), 0, 0, 0)
NO_WORKER = Worker(IDLE, False, 0, 0, "", 0, 0)


class Draft:
    """A state that is being changed."""

    __slots__ = State._fields

    turn: str
    undecided: int
    attempts: int
    hint: bool
    replies: int
    restarted: bool
    calls: list[Call]
    workers: list[Worker]
    crashes: int
    zombies: int
    reopenings: int
    oddities: int
    forgeries: int
    flaw: str

    def __init__(self, state: State) -> None:
        (
            self.turn,
            self.undecided,
            self.attempts,
            self.hint,
            self.replies,
            self.restarted,
            calls,
            workers,
            self.crashes,
            self.zombies,
            self.reopenings,
            self.oddities,
            self.forgeries,
            self.flaw,
        ) = state
        self.calls, self.workers = list(calls), list(workers)

    def call(self, index: int, **fields: Any) -> None:
        """Change an interrupt's row."""
        self.calls[index] = self.calls[index]._replace(**fields)

    def step(
        self, index: int, status: str, owner: int = NOBODY, generation: int = -1
    ) -> None:
        """Change a step's row, by default that of the newest generation."""
        steps = list(self.calls[index].steps)
        steps[generation] = Step(status, owner, steps[generation].effects)
        self.calls[index] = self.calls[index]._replace(steps=tuple(steps))

    def act(self, index: int, generation: int, *, keyed: bool = False) -> None:
        """Have the effect of a call; under a key that was used before, nothing."""
        steps = list(self.calls[index].steps)
        status, owner, effects = steps[generation]
        steps[generation] = Step(status, owner, 1 if keyed else effects + 1)
        self.calls[index] = self.calls[index]._replace(steps=tuple(steps))

    def reopen(self, index: int, **fields: Any) -> None:
        """Begin a new generation of a call, with no step yet."""
        call = self.calls[index]
        self.calls[index] = call._replace(
            steps=(*call.steps, NO_STEP), late=False, **fields
        )

    def worker(self, index: int, **fields: Any) -> None:
        self.workers[index] = self.workers[index]._replace(**fields)

    def disown(self, worker: int) -> None:
        """Note that no process executes what this one started."""
        for index, call in enumerate(self.calls):
            if any(step.owner == worker for step in call.steps):
                steps = tuple(
                    step._replace(owner=NOBODY) if step.owner == worker else step
                    for step in call.steps
                )
                self.calls[index] = call._replace(steps=steps)

    def stop(self, worker: int) -> None:
        """End a process, or the run that it was in."""
        self.workers[worker] = NO_WORKER
        self.disown(worker)

    def outdate(self) -> None:
        """Raise the turn's fence."""
        self.workers = [
            worker._replace(current=False) if worker.current else worker
            for worker in self.workers
        ]

    def frozen(self) -> State:
        """Return the state, with two workers that differ in name only in one order."""
        first, second = self.workers
        calls = tuple(self.calls)
        if first < second:
            first, second = second, first
            calls = tuple(_swapped(call) for call in calls)
        return State(
            self.turn,
            self.undecided,
            self.attempts,
            self.hint,
            self.replies,
            self.restarted,
            calls,
            (first, second),
            self.crashes,
            self.zombies,
            self.reopenings,
            self.oddities,
            self.forgeries,
            self.flaw,
        )


def _swapped(call: Call) -> Call:
    if all(step.owner < 0 for step in call.steps):
        return call
    return call._replace(
        steps=tuple(
            step._replace(owner=1 - step.owner) if step.owner >= 0 else step
            for step in call.steps
        )
    )
