"""Questions and pieces of transactions that the moves of the turn's model share."""

from __future__ import annotations

from collections.abc import Iterator

from tests.model.turn.script import (
    IDEMPOTENT,
    MAX_ATTEMPTS,
    QUESTION,
    UNSAFE,
    Script,
    World,
)
from tests.model.turn.state import (
    ABSENT,
    AGENT,
    ANSWER,
    APPROVE,
    ASKED,
    BODY,
    CALL,
    CANCELLED,
    CHOSEN,
    COMPLETED,
    DECIDED,
    DONE,
    DOUBT,
    EDIT,
    END,
    FOUND,
    FOUND_ABSENT,
    FOUND_DONE,
    IDLE,
    IN_DOUBT,
    MAY_RUN,
    NEEDS_ATTENTION,
    NOBODY,
    NONE,
    NOT_STARTED,
    PLAIN,
    READY,
    REFUSE,
    RESOLVED,
    RUNNING,
    STARTED,
    SUPERSEDED,
    UNKNOWN,
    WITHDRAWN,
    Call,
    Draft,
    State,
    Worker,
)

IN_A_CALL = (BODY, DONE, FOUND_DONE, FOUND_ABSENT)
SLEEPERS_MATTER = frozenset(
    {
        "fence",
        "turn_status",
        "claim",
        "record_asks_started",
        "record_asks_fence",
        "record_asks_decided",
        "record_asks_generation",
        "record_reads_chain",
        "close_reads_chain",
        "never_started_asks_fence",
    }
)
"""Mutants in which a process may do harm that has lost its turn."""


class Rules:
    """One world: its script, and the guard that it does without."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.strict = world.strict
        self.missing = frozenset(world.without.split())
        self.sleepers_matter = world.sleepers or bool(self.missing & SLEEPERS_MATTER)
        self.script = Script(world.script)
        self.modes = self.script.modes
        self.free = self.script.free
        self.count = self.script.count

    def lacks(self, guard: str) -> bool:
        """Tell whether this world's code is without a guard."""
        return guard in self.missing

    def asks(self, index: int) -> bool:
        """Tell whether a person is asked about this call before it runs."""
        return not self.free[index]

    def may_begin(self, call: Call, index: int) -> bool:
        """Tell whether a call is allowed to run and has no start that counts."""
        allowed = (call.interrupt == DECIDED and call.decision in MAY_RUN) or (
            call.interrupt == NONE and self.free[index]
        )
        return allowed and call.steps[-1].status in (NONE, NOT_STARTED)

    def owns_turn(self, state: State, worker: Worker) -> bool:
        """Tell whether a fenced write of this worker finds its row."""
        if self.lacks("fence"):
            return state.turn == RUNNING
        if self.lacks("turn_status"):
            return worker.current
        return state.turn == RUNNING and worker.current

    def deadline_passed(self, state: State, index: int, generation: int) -> bool:
        """Tell whether the clock may say that nobody is in the call any more."""
        return not self.strict or not any(
            (worker.phase, worker.at, worker.generation) == (BODY, index, generation)
            for worker in state.workers
        )

    def is_forged(self, call: Call) -> bool:
        """Tell whether the arguments that would run are not the decided ones."""
        return (call.decision, call.forged) in ((APPROVE, ASKED), (EDIT, CHOSEN))

    # The end of every move.

    def sealed(self, draft: Draft) -> State:
        """Return the draft as a state; what makes no difference is made equal.

        A process whose turn is not its own any more and that can write nothing but a
        `late_result` only stops; it does so at once.
        """
        if not self.sleepers_matter:
            for number, worker in enumerate(draft.workers):
                if worker.phase != IDLE and self._is_harmless(draft, number, worker):
                    draft.stop(number)
        if draft.turn in (COMPLETED, CANCELLED):
            draft.zombies = draft.reopenings = draft.attempts = draft.forgeries = 0
            if all(worker.phase == IDLE for worker in draft.workers):
                draft.crashes = draft.oddities = 0
        return draft.frozen()

    def _is_harmless(self, draft: Draft, number: int, worker: Worker) -> bool:
        if worker.current and draft.turn == RUNNING:
            return False
        if worker.phase in (AGENT, CALL, END):
            return True
        call = draft.calls[worker.at]
        status, owner, effects = call.steps[worker.generation]
        if status == STARTED and owner == number:
            return False
        # Under a key that was used before, acting again changes nothing.
        idle_call = self.modes[worker.at] == IDEMPOTENT and effects == 1
        return worker.phase != BODY or idle_call

    # Pieces of transactions.

    def resolve(self, draft: Draft, index: int) -> None:
        call = draft.calls[index]
        if call.interrupt == DECIDED or (
            self.lacks("record_asks_decided")
            and call.interrupt in (IN_DOUBT, RESOLVED, WITHDRAWN)
        ):
            draft.call(
                index,
                interrupt=RESOLVED,
                resolutions=call.resolutions + 1,
                late=False,
                forged=NONE,
            )

    def withdraw(self, draft: Draft, index: int) -> None:
        draft.call(index, interrupt=WITHDRAWN, late=False, forged=NONE)

    def flush(self, draft: Draft, number: int) -> None:
        """Write what a run holds back: replies, and what was told of refusals."""
        worker = draft.workers[number]
        known = self.script.batch_of[worker.at]
        if worker.phase == END:
            known = self.script.batch_of[worker.at - 1] + 1
        elif worker.phase != AGENT:
            known += 1
        draft.replies = max(draft.replies, known)
        for index in range(worker.at):
            call = draft.calls[index]
            if call.interrupt == DECIDED and call.decision in (REFUSE, ANSWER):
                self.resolve(draft, index)

    def put_in_doubt(self, draft: Draft, index: int) -> None:
        """Mark a started call as unknown; its step keeps the fence that it has."""
        owner = draft.calls[index].steps[-1].owner if self.sleepers_matter else NOBODY
        draft.step(index, UNKNOWN, owner)
        draft.call(index, interrupt=IN_DOUBT)

    def lower(self, draft: Draft) -> Iterator[State]:
        """Count one waiting interrupt less; the last one makes the turn ready."""
        draft.undecided -= 1
        if draft.undecided:
            yield self.sealed(draft)
            return
        draft.turn = READY
        for draft.hint in (False, True):
            yield self.sealed(draft)

    def release(self, draft: Draft) -> None:
        """Give the turn back, or to a person when its attempts are used up."""
        draft.turn = READY if draft.attempts < MAX_ATTEMPTS else NEEDS_ATTENTION
        draft.hint = False

    def close(self, draft: Draft, number: int, status: str) -> None:
        """End the turn and withdraw what is left, but not a call under way."""
        behind = draft.workers[number].behind
        self.flush(draft, number)
        for index, call in enumerate(draft.calls):
            if call.interrupt != DECIDED:
                continue
            if call.steps[-1].status == STARTED and not self.lacks("close_spares"):
                continue
            if behind >> index & 1 and self.lacks("close_reads_chain"):
                continue
            self.withdraw(draft, index)
        draft.stop(number)
        draft.turn = status

    # What a run does without touching a row.

    def loaded(self, draft: Draft) -> str:
        """Return what a run notes when it reads the rows."""
        return "".join(
            FOUND if call.steps[-1].status == STARTED else PLAIN for call in draft.calls
        )

    def forged_now(self, draft: Draft) -> int:
        return sum(
            1 << index for index, call in enumerate(draft.calls) if self.is_forged(call)
        )

    def read_rows(self, draft: Draft, number: int) -> None:
        draft.worker(
            number, notes=self.loaded(draft), forged=self.forged_now(draft), behind=0
        )

    def note(self, draft: Draft, number: int, index: int, what: str) -> None:
        notes = draft.workers[number].notes
        draft.worker(number, notes=notes[:index] + what + notes[index + 1 :])

    def begin_anew(self, draft: Draft) -> None:
        """Ask for everything under new keys, after a restart."""
        for index in range(self.count):
            self._replace(draft, index)
        draft.replies, draft.restarted = 0, False

    def _replace(self, draft: Draft, index: int) -> None:
        """Put a call under a new key in the place of one that is over.

        Whoever still sleeps in the old one writes nothing but a late result.
        """
        draft.calls[index] = ABSENT
        for number, worker in enumerate(draft.workers):
            if worker.phase in IN_A_CALL and worker.at == index:
                draft.stop(number)

    def enter(self, draft: Draft, number: int, batch: int) -> None:
        """Let a worker begin with a batch that the agent asks for."""
        for index in range(self.script.begins[batch], self.script.ends[batch]):
            call = draft.calls[index]
            if (call.interrupt, call.decision) == (WITHDRAWN, SUPERSEDED):
                # Its place is taken by a call under a key of its own.
                self._replace(draft, index)
        self.go_on(draft, number, self.script.begins[batch], batch)

    def go_on(self, draft: Draft, number: int, at: int, batch: int) -> None:
        """Move a worker on to the next call that needs a transaction, or to the end."""
        begin, end = self.script.begins[batch], self.script.ends[batch]
        notes = draft.workers[number].notes
        unasked = any(
            self.asks(index) and draft.calls[index].interrupt == NONE
            for index in range(begin, end)
        )
        while at < end:
            call = draft.calls[at]
            if unasked and (self.asks(at) or call.interrupt != NONE):
                pass  # Nothing gated runs before everything is decided.
            elif notes[at] == FOUND:
                if self.modes[at] != UNSAFE or self.lacks("doubt"):
                    draft.worker(number, phase=CALL, at=at)
                    return
                self.note(draft, number, at, DOUBT)
                notes = draft.workers[number].notes
            elif notes[at] == PLAIN and self._needs_transaction(call, at):
                draft.worker(number, phase=CALL, at=at)
                return
            at += 1
        open_ = unasked or notes[begin:end].strip(PLAIN)
        draft.worker(number, phase=END if open_ else AGENT, at=end)

    def _needs_transaction(self, call: Call, index: int) -> bool:
        return self.modes[index] != QUESTION and self.may_begin(call, index)
