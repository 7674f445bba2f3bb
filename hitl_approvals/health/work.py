"""Looks at the rows: what is owed, silent, in doubt or stopped."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import router
from django.db.models import Count, Max, Min, QuerySet

from hitl_approvals.conf import hitl_settings
from hitl_approvals.enums import InterruptStatus, StepStatus, TurnStatus
from hitl_approvals.figures.status import late_after
from hitl_approvals.health.lines import Level, Line, counted, spoken
from hitl_approvals.models import (
    AgentTurn,
    DbNow,
    PendingInterrupt,
    SweepMark,
    TurnStep,
)

UNHEARD_AFTER = 3
"""Announcements of one run after which it is odd that nobody took it."""
SHOWN = 5
"""Rows that are named, at most."""


@dataclass(frozen=True, slots=True)
class Pile:
    """How many rows, and for how long the oldest of them."""

    count: int
    age: timedelta = timedelta()

    @classmethod
    def of(cls, rows: QuerySet[Any], since: str) -> Pile:
        found = rows.aggregate(count=Count("pk"), oldest=Min(since), now=Max(DbNow()))
        oldest, now = found["oldest"], found["now"]
        age = now - oldest if oldest is not None else timedelta()
        return cls(found["count"], max(age, timedelta()))

    @property
    def facts(self) -> dict[str, Any]:
        seconds = self.age.total_seconds() if self.count else None
        return {"count": self.count, "oldest_seconds": seconds}


def owed(max_owed: timedelta) -> Line:
    """Say for how long runs have been owed: the first sign of missing workers."""
    pile = Pile.of(_owed(), "next_run_at")
    text = counted(pile.count, "run is owed", "runs are owed")
    if not pile.count:
        return Line("owed", Level.OK, f"{text}.", facts=pile.facts)
    text = f"{text}, the oldest for {spoken(pile.age)}"
    if pile.age <= max_owed:
        return Line("owed", Level.OK, f"{text}.", facts=pile.facts)
    return Line(
        "owed",
        Level.FAIL,
        f"{text}; that is more than {spoken(max_owed)}.",
        "Start a worker, or more of them. If there are some: do they register the "
        "agents of these turns, and listen to the right Celery queue?",
        pile.facts,
    )


def unheard() -> Line:
    """Say which runs were announced again and again."""
    count = _owed().filter(hints__gte=UNHEARD_AFTER).count()
    facts = {"count": count}
    if not count:
        return Line("announced", Level.OK, "No announcement goes unheard.", facts=facts)
    return Line(
        "announced",
        Level.WARN,
        f"{counted(count, 'owed run was', 'owed runs were')} announced "
        f"{UNHEARD_AFTER} times or more, and no worker took it.",
        "Workers do not get the messages, or do not register these agents. After "
        f"{spoken(hitl_settings.unclaimed_after)} such turns need attention.",
        facts,
    )


def blocked() -> Line:
    """Say how many turns wait for another one of their thread; that is as it should be."""
    waiting = _turns().filter(status=TurnStatus.READY, blocked=True)
    pile = Pile.of(waiting, "created_at")
    text = counted(pile.count, "turn waits", "turns wait")
    return Line(
        "blocked",
        Level.OK,
        f"{text} for another turn of the same thread.",
        facts=pile.facts,
    )


def sweeper() -> Line:
    """Say when a sweeper last came by: without one, whatever is lost stays lost."""
    marks = SweepMark.objects.using(router.db_for_write(SweepMark))
    mark = marks.annotate(db_now=DbNow()).order_by("-swept_at").first()
    advice = (
        "Workers sweep by themselves, so no worker is running. Start one, or call "
        "`manage.py hitl_sweep` from cron."
    )
    if mark is None:
        return Line("sweeper", Level.FAIL, "No sweeper has ever come by.", advice)
    now: datetime = mark.db_now
    age = max(now - mark.swept_at, timedelta())
    process = mark.report.get("process", "")
    facts = {"age_seconds": age.total_seconds(), "process": process}
    text = f"A sweeper came by {spoken(age)} ago"
    if age <= late_after():
        return Line("sweeper", Level.OK, f"{text}.", facts=facts)
    text = f"The last sweeper came by {spoken(age)} ago ({process})."
    return Line("sweeper", Level.FAIL, text, advice, facts)


def leases() -> Line:
    """Say which workers went silent and still hold their turn."""
    silent = _turns().filter(status=TurnStatus.RUNNING, lease_until__lt=DbNow())
    pile = Pile.of(silent, "lease_until")
    text = f"{counted(pile.count, 'running turn has', 'running turns have')} a lapsed lease"
    if not pile.count:
        return Line("leases", Level.OK, f"{text}.", facts=pile.facts)
    patient = pile.age <= 3 * hitl_settings.sweep
    return Line(
        "leases",
        Level.OK if patient else Level.WARN,
        f"{text}, the oldest since {spoken(pile.age)}.",
        "" if patient else "The sweeper should have taken them; see its line.",
        pile.facts,
    )


def overdue() -> Line:
    """Say which calls began, are past their deadline and were never recorded."""
    begun = _steps().filter(status=StepStatus.STARTED, hard_deadline__lt=DbNow())
    pile = Pile.of(begun, "hard_deadline")
    text = f"{counted(pile.count, 'call is', 'calls are')} past the deadline unrecorded"
    patient = not pile.count or pile.age <= 3 * hitl_settings.sweep
    return Line(
        "calls",
        Level.OK if patient else Level.WARN,
        f"{text}." if not pile.count else f"{text}, the oldest by {spoken(pile.age)}.",
        ""
        if patient
        else "Tools run longer than their timeout=, or their workers died and no "
        "sweeper came by since. The sweeper puts them in doubt, or the next run "
        "deals with them.",
        pile.facts,
    )


def doubts() -> Line:
    """Say how many calls only a person can clear up."""
    count = _interrupts().filter(status=InterruptStatus.IN_DOUBT).count()
    text = f"{counted(count, 'call is', 'calls are')} in doubt"
    if not count:
        return Line("doubts", Level.OK, f"{text}.", facts={"count": 0})
    return Line(
        "doubts",
        Level.WARN,
        f"{text}: it may have happened or not.",
        "Somebody with the right to settle finds out and says so in the admin.",
        {"count": count},
    )


def attention() -> Line:
    """Say which turns stopped and wait for a person."""
    stopped = _turns().filter(status=TurnStatus.NEEDS_ATTENTION)
    count = stopped.count()
    text = f"{counted(count, 'turn needs', 'turns need')} attention"
    if not count:
        return Line("attention", Level.OK, f"{text}.", facts={"count": 0})
    oldest = list(stopped.order_by("created_at").values("pk", "last_error")[:SHOWN])
    shown = [{"turn": str(one["pk"]), "error": one["last_error"]} for one in oldest]
    first = shown[0]
    error = first["error"].partition("\n")[0][:200] or "no error is recorded"
    return Line(
        "attention",
        Level.WARN,
        f"{text}; the oldest is {first['turn']}: {error}",
        "Remove the cause, then retry or cancel them in the admin.",
        {"count": count, "oldest": shown},
    )


def reviewers() -> Line:
    """Say for how long requests have waited for people; how long is right is theirs."""
    waiting = _interrupts().filter(status=InterruptStatus.PENDING)
    pile = Pile.of(waiting, "requested_at")
    text = f"{counted(pile.count, 'request waits', 'requests wait')} for a person"
    text = f"{text}, the oldest since {spoken(pile.age)}" if pile.count else text
    return Line("reviewers", Level.OK, f"{text}.", facts=pile.facts)


def remote() -> Line:
    """Say what remote agents have not fetched, and of what nothing was heard."""
    decided = _interrupts().filter(status=InterruptStatus.DECIDED, turn__isnull=True)
    unfetched = Pile.of(decided.filter(consumed_at__isnull=True), "decided_at")
    begun = decided.filter(consumed_at__isnull=False)
    late = Pile.of(begun.filter(outcome_due__lt=DbNow()), "outcome_due")
    text = counted(
        unfetched.count,
        "decision waits for its remote agent",
        "decisions wait for their remote agents",
    )
    if unfetched.count:
        text = f"{text}, the oldest since {spoken(unfetched.age)}"
    facts = {"unfetched": unfetched.facts, "unreported": late.facts}
    if late.age <= 3 * hitl_settings.sweep:
        return Line("remote", Level.OK, f"{text}.", facts=facts)
    return Line(
        "remote",
        Level.WARN,
        f"{text}; {counted(late.count, 'call is', 'calls are')} past the time to say "
        f"what came of it, the oldest by {spoken(late.age)}.",
        "The sweeper should have put them in doubt; see its line.",
        facts,
    )


# The primary: on a replica everything would look a little older than it is.


def _owed() -> QuerySet[AgentTurn]:
    return _turns().filter(
        status=TurnStatus.READY, blocked=False, next_run_at__lte=DbNow()
    )


def _turns() -> QuerySet[AgentTurn]:
    return AgentTurn.objects.using(router.db_for_write(AgentTurn))


def _interrupts() -> QuerySet[PendingInterrupt]:
    return PendingInterrupt.objects.using(router.db_for_write(PendingInterrupt))


def _steps() -> QuerySet[TurnStep]:
    return TurnStep.objects.using(router.db_for_write(TurnStep))
