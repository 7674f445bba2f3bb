"""A site as a test drives it: workers that die, clocks that jump, people that decide."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from datetime import timedelta
from typing import Any

from django.db import transaction

from hitl_approvals import run_turn, services, start_turn
from hitl_approvals.enums import InterruptStatus, StepStatus, TurnStatus
from hitl_approvals.exceptions import HitlApprovalsError
from hitl_approvals.models import (
    AgentTurn,
    DbNow,
    PendingInterrupt,
    TurnStep,
    db_now_plus,
)
from hitl_approvals.testing.failpoints import armed
from tests.invariants import assert_invariants
from tests.properties import rows
from tests.properties.outside import AGENT, Died, outside

PAST = db_now_plus(timedelta(seconds=-2))
LONG_AGO = db_now_plus(timedelta(days=-30))
TRUSTED: dict[str, Any] = {"by": None, "via": "test"}
CLOCKS = ("lease", "deadline", "next run", "expires", "execute by", "unclaimed")
RUN_POINTS = (
    "claim.after_commit",
    "gate.before_commit",
    "gate.after_commit",
    "tool.after_call",
    "record.before_commit",
    "record.after_commit",
    "transaction.after_body",
    "transaction.after_commit",
    "suspend.before_commit",
    "suspend.after_commit",
    "end.before_commit",
    "end.after_commit",
    "release.before_commit",
    "release.after_commit",
)
"""Where a worker may be killed."""


@contextmanager
def example() -> Iterator[None]:
    """Undo everything afterwards; inside it is as if no transaction was open."""
    block = transaction.atomic()
    # The marker by which Django's own test cases are told from a site's transactions.
    block._from_testcase = True  # type: ignore[attr-defined]
    with block:
        yield
        transaction.set_rollback(True)


def dying(point: str) -> Any:
    """Kill the process when it passes a point, if one is named."""

    def die() -> None:
        raise Died

    return armed(point, die) if point else nullcontext()


def survived(work: Any, point: str = "") -> Any:
    """Return what the work returns, or None if the process died in it."""
    try:
        with dying(point):
            return work()
    except Died:
        return None


def refused(work: Any) -> HitlApprovalsError | None:
    """Return the error with which a service refuses; then nothing may have changed."""
    before = _everything()
    try:
        work()
    except HitlApprovalsError as refusal:
        error = refusal
    else:
        return None
    assert _everything() == before, (error, "refused, and yet something changed")
    return error


def _everything() -> list[list[Any]]:
    return [
        list(model.objects.order_by("pk").values())
        for model in (AgentTurn, PendingInterrupt, TurnStep)
    ]


class Site:
    """One example's turns, in the order in which they were started."""

    def __init__(self) -> None:
        self.turns: list[Any] = []
        self._tags = itertools.count()
        self._seen = rows.statuses()

    def open_turns(self) -> int:
        return len(self.turns_in("ready", "running", "suspended"))

    def turns_in(self, *wanted: str) -> list[Any]:
        """Return the turns that had one of these statuses when they were last read."""
        return [pk for pk in self.turns if self._seen.get(pk, (None, ""))[1] in wanted]

    def has(self, model: type[Any], *wanted: str) -> bool:
        """Tell whether some row had one of these statuses when they were last read."""
        return any(kind is model and s in wanted for kind, s in self._seen.values())

    def start(
        self, script: list[Any], *, here: bool, thread: str | None, point: str
    ) -> None:
        """Start a turn; every call of the script gets a tag of its own."""
        tagged = [
            batch if isinstance(batch, str) else [self._call(mode) for mode in batch]
            for batch in script
        ]
        known = set(AgentTurn.objects.values_list("pk", flat=True))
        survived(lambda: start_turn(AGENT, tagged, thread_id=thread, run=here), point)
        self.turns += AgentTurn.objects.exclude(pk__in=known).values_list(
            "pk", flat=True
        )

    def _call(self, mode: str) -> dict[str, Any]:
        number = next(self._tags)
        args = {"tag": f"call {number}.", "amount": 1}
        return {"id": f"id {number}", "name": f"drawn_{mode}", "args": args}

    def fork(self, turn: Any, number: int) -> None:
        """Fork a turn at one of its points: by itself, a step or an interrupt."""
        points: list[Any] = [
            None,
            *TurnStep.objects.filter(turn=turn).order_by("position"),
            *PendingInterrupt.objects.filter(turn=turn).order_by("position", "pk"),
        ]
        at = points[number % len(points)]
        made: list[AgentTurn] = []
        refused(
            lambda: made.append(services.fork(turn, at=None if at is None else at.pk))
        )
        self.turns += [fork.pk for fork in made]

    def run(self, turn: Any, point: str = "") -> str | None:
        """Let a worker take the turn, and perhaps die in it."""
        outcome: str | None = survived(lambda: run_turn(turn), point)
        return outcome

    def interrupts(self, *statuses: str) -> list[PendingInterrupt]:
        """Return the interrupts of this site in their order."""
        found = PendingInterrupt.objects.filter(turn__in=self.turns)
        if statuses:
            found = found.filter(status__in=statuses)
        return list(found.order_by("requested_at", "pk"))

    def jump(self, clock: str, turn: Any) -> None:
        """Let one kind of time pass for one turn."""
        of_turn = AgentTurn.objects.filter(pk=turn)
        calls = PendingInterrupt.objects.filter(turn=turn)
        if clock == "lease":
            of_turn.filter(status=TurnStatus.RUNNING).update(lease_until=PAST)
        elif clock == "deadline":
            TurnStep.objects.filter(turn=turn, hard_deadline__isnull=False).update(
                hard_deadline=PAST
            )
        elif clock == "next run":
            of_turn.filter(status=TurnStatus.READY).update(next_run_at=PAST)
        elif clock == "expires":
            calls.filter(status=InterruptStatus.PENDING).update(expires_at=PAST)
        elif clock == "execute by":
            calls.filter(execute_by__isnull=False).update(execute_by=PAST)
        else:
            of_turn.filter(status=TurnStatus.READY).update(
                next_run_at=LONG_AGO, hints=99
            )

    def check(self, *, verified: bool = False) -> None:
        """Assert everything that must hold between any two steps."""
        seen = rows.statuses()
        rows.assert_legal(self._seen, seen)
        self._seen = seen
        # The trail is verified once, at the end of an example.
        assert_invariants(verified=verified)
        rows.assert_effects(outside)

    # The end: first by itself, then with people who are willing.

    def drive_to_the_end(self) -> None:
        """Drive every turn to its end, and assert that each one gets there."""
        outside.calm_down()
        for count in range(12):
            self._go_on_by_itself()
            self.check()
            rows.assert_nothing_hidden()
            # What goes wrong in the same way again and again is begun anew.
            if not self._be_willing(restart=count > 2):
                break
        self.check(verified=True)
        left = AgentTurn.objects.filter(pk__in=self.turns)
        left = left.exclude(status__in=rows.CLOSED)
        told = ("status", "undecided", "blocked", "attempts", "last_error")
        assert not left, ("people were willing, and yet", list(left.values(*told)))
        assert not self.interrupts(
            InterruptStatus.PENDING, InterruptStatus.DECIDED, InterruptStatus.IN_DOUBT
        )

    def _go_on_by_itself(self) -> None:
        """Sweep and run until nothing moves any more; then everything is visible."""
        for _round in range(30):
            before = rows.statuses()
            for turn in self.turns:
                for clock in ("lease", "deadline"):
                    self.jump(clock, turn)
            services.sweep()
            for turn in self.turns:
                if AgentTurn.objects.filter(pk=turn, status=TurnStatus.READY).exists():
                    self.jump("next run", turn)
                    self.run(turn)
            if rows.statuses() == before:
                break
        _assert_visible(AgentTurn.objects.filter(pk__in=self.turns))

    def decide_all(self, turn: Any, decision: str = "approve") -> int:
        """Decide and answer whatever a turn waits for; return how much that was."""
        pending = [
            row
            for row in self.interrupts(InterruptStatus.PENDING)
            if row.turn_id == turn
        ]
        for row in pending:
            body: dict[str, Any] = {"type": decision}
            if row.kind == "question":
                body = {"type": "respond", "value": 1}
            elif decision == "edit":
                body["args"] = {**(row.args or {}), "amount": 2}
            refused(lambda: services.decide(row.pk, body, **TRUSTED))  # noqa: B023
        return len(pending)

    def _be_willing(self, *, restart: bool) -> int:
        """Decide and settle everything; return how much there was to do."""
        done = sum(self.decide_all(turn) for turn in self.turns)
        for row in self.interrupts(InterruptStatus.IN_DOUBT):
            services.settle(row.pk, "give_up", **TRUSTED)
            done += 1
        for turn in AgentTurn.objects.filter(
            pk__in=self.turns, status=TurnStatus.NEEDS_ATTENTION
        ):
            (services.restart if restart else services.retry)(turn.pk, **TRUSTED)
            done += 1
        return done


def _assert_visible(turns: Iterable[AgentTurn]) -> None:
    """Assert that each turn is over, waits for a person, or waits behind one that does."""
    asks = (TurnStatus.SUSPENDED, TurnStatus.NEEDS_ATTENTION)
    found = list(turns)
    held = {turn.active_thread for turn in found if turn.status in asks}
    for turn in found:
        behind = turn.blocked and turn.thread_key in held
        assert turn.status in (*rows.CLOSED, *asks) or behind, (turn, turn.status)


def may_be_under_way(row: PendingInterrupt) -> bool:
    """Tell whether a process may still be in the call that is in doubt."""
    return TurnStep.objects.filter(
        interrupt=row.pk, generation=row.generation, hard_deadline__gt=DbNow()
    ).exists()


def begun_steps(turn: Any) -> bool:
    return TurnStep.objects.filter(turn=turn, status=StepStatus.STARTED).exists()
