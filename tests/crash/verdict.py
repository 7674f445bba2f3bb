"""Judges a case by what it left behind: rows, the file outside, and what people were told."""

from __future__ import annotations

import traceback
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from django.db import connection

from hitl_approvals import auditing
from hitl_approvals.enums import EventType, InterruptStatus, TurnStatus
from hitl_approvals.models import AgentTurn, InterruptEvent, PendingInterrupt
from tests.crash.cases import Case
from tests.crash.site import outside
from tests.crash.site.agents import TABLE
from tests.invariants import AUTHORIZATIONS, assert_invariants

SAID = {"approve": "ok", "edit": "ok", "reject": "rejected"}


@dataclass
class Seen:
    """What whoever played the case can say about it."""

    case: Case
    turn_id: str
    doubted: bool
    answers: list[dict[str, Any]]
    """What the door said to a request that was sent twice."""
    problem: str
    """Why the case did not come to its end; empty if it did."""
    key: str = ""
    """What the requests of this case are called."""

    @property
    def folder(self) -> str:
        turn = self.turn
        if turn is None or self.case.phase == "call":
            return self.key
        return str(turn.input["case"])

    @property
    def turn(self) -> AgentTurn | None:
        if not self.turn_id:
            return None
        return AgentTurn.objects.filter(pk=self.turn_id).first()


@dataclass
class Verdict:
    """What is to be said of a case: nothing, if all is well."""

    lost: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    outcome: str = ""
    seconds: float = 0.0
    log: str = ""

    @property
    def good(self) -> bool:
        return not (self.lost or self.doubled or self.wrong)

    @property
    def word(self) -> str:
        """What stands in the table."""
        for name in ("doubled", "lost", "wrong"):
            if getattr(self, name):
                return name.upper()
        return self.outcome


def judge(seen: Seen) -> Verdict:
    """Compare what happened with what people allowed and with what rows say."""
    verdict = Verdict()
    if seen.problem:
        verdict.lost.append(seen.problem)
    if seen.case.phase == "remote":
        judge_elsewhere(seen, verdict)
        _check_rows(verdict)
        return verdict
    turn = seen.turn
    if turn is None:
        verdict.lost.append("there is no turn")
        return verdict
    happened = _effects(seen)
    _compare_effects(seen, happened, verdict)
    _compare_rows(seen, turn, verdict)
    if turn.status == TurnStatus.COMPLETED and seen.case.phase != "call":
        _compare_output(seen, turn, happened, verdict)
    _compare_answers(seen, verdict)
    _check_invariants(turn, verdict)
    verdict.outcome = _word(seen, happened)
    return verdict


def _effects(seen: Seen) -> list[int]:
    """Return the amounts that moved in the world, one for every time that they did."""
    if seen.case.mode == "transactional":
        with connection.cursor() as cursor:
            cursor.execute(
                f"SELECT amount FROM {TABLE} WHERE happened_to = %s", [seen.folder]
            )
            return [amount for (amount,) in cursor.fetchall()]
    calls = outside.calls(seen.folder)
    if seen.case.mode == "idempotent":
        return list({call["key"]: call["amount"] for call in calls}.values())
    if seen.case.mode == "none":
        # To read is no effect, however often it is done; only what was read counts.
        return list({call["amount"] for call in calls})
    return [call["amount"] for call in calls]


def _events(seen: Seen) -> list[str]:
    found = InterruptEvent.objects.filter(
        turn_id=seen.turn_id, interrupt_id__isnull=False
    )
    return [event.type for event in found]


def _compare_effects(seen: Seen, happened: list[int], verdict: Verdict) -> None:
    events = _events(seen)
    allowed = sum(event in AUTHORIZATIONS for event in events)
    if len(happened) > allowed:
        verdict.doubled.append(f"{len(happened)} effects, {allowed} allowed")
    if seen.case.mode != "unsafe" and len(happened) > 1:
        verdict.doubled.append(f"{len(happened)} effects of a {seen.case.mode} call")
    for type_ in (EventType.RESOLVED, *AUTHORIZATIONS - {EventType.SETTLED_RUN_AGAIN}):
        if events.count(type_) > 1:
            verdict.doubled.append(f"{events.count(type_)} events {type_}")
    meant = 20 if seen.case.decision == "edit" else 10
    if set(happened) - {meant}:
        verdict.wrong.append(f"it ran with {happened} instead of {meant}")


def _compare_rows(seen: Seen, turn: AgentTurn, verdict: Verdict) -> None:
    if turn.status != TurnStatus.COMPLETED:
        verdict.lost.append(f"the turn is {turn.status}: {turn.last_error}")
    rows = list(PendingInterrupt.objects.filter(turn=turn.pk))
    if len(rows) > 1:
        verdict.doubled.append(f"{len(rows)} interrupts for one call")
    gave_up = seen.case.answer == "give_up"
    final = InterruptStatus.CANCELLED if gave_up else InterruptStatus.RESOLVED
    for row in rows:
        if row.status != final:
            verdict.lost.append(f"the interrupt is {row.status}, not {final}")
        if row.decision != seen.case.decision:
            verdict.wrong.append(f"the decision is {row.decision}")
    if seen.doubted and seen.case.mode != "unsafe":
        verdict.wrong.append("a person was asked what nobody has to ask")


def _compare_output(
    seen: Seen, turn: AgentTurn, happened: list[int], verdict: Verdict
) -> None:
    said = "unknown" if seen.case.answer == "give_up" else SAID[seen.case.decision]
    output = turn.output or {}
    if output.get("status") != said or output.get("said") != f"closed with {said}":
        verdict.wrong.append(f"the agent was told {output} instead of {said}")
    if said == "ok" and not happened:
        verdict.lost.append("the agent was told that it happened, and it did not")
    if said == "rejected" and happened:
        verdict.doubled.append("it was refused, and it happened")


def _compare_answers(seen: Seen, verdict: Verdict) -> None:
    statuses = [answer["status"] for answer in seen.answers]
    if seen.case.phase == "decide" and set(statuses) != {200}:
        verdict.lost.append(f"the reviewer was answered with {seen.answers}")
    # Settling has no key: whoever comes second is told that it is settled.
    if seen.case.phase == "settle" and not {200, 409} >= set(statuses):
        verdict.wrong.append(f"the person was answered with {seen.answers}")


def judge_elsewhere(seen: Seen, verdict: Verdict) -> None:
    """Compare a remote agent's request with what was to come of it."""
    folder, move = seen.key, seen.case.answer
    rows = list(PendingInterrupt.objects.filter(client_ref=f"asks {folder}"))
    if len(rows) != 1:
        verdict.lost.append(f"{len(rows)} rows of one request")
        return
    (row,) = rows
    told = InterruptEvent.objects.filter(subject_id=row.pk)
    counted = Counter(told.values_list("type", flat=True))
    gone = move in ("withdraw", "lapse")
    acts = 0 if gone or move == "fetch refusal" else 1
    happened = len(outside.calls(folder))
    if row.status != ("cancelled" if gone else "resolved"):
        verdict.lost.append(f"the request is {row.status}")
    if happened != acts:
        verdict.doubled.append(f"{happened} effects, {acts} meant")
    for type_, count in counted.items():
        most = 2 if (type_, move) == (EventType.CONSUMED, "give back") else 1
        if count > most:
            verdict.doubled.append(f"{count} events {type_}")
    statuses = {answer["status"] for answer in seen.answers}
    if not statuses <= {200, 201}:
        verdict.lost.append(f"whoever sent it again was answered with {seen.answers}")
    told_once = "once" if happened else "not"
    verdict.outcome = f"{told_once}, asked" if seen.doubted else told_once


def _check_rows(verdict: Verdict) -> None:
    try:
        assert_invariants()
    except AssertionError:
        verdict.wrong.append(traceback.format_exc(limit=2))


def _check_invariants(turn: AgentTurn, verdict: Verdict) -> None:
    _check_rows(verdict)
    for finding in auditing.Verification(turn_id=turn.pk).findings():
        if finding.is_fault:
            verdict.wrong.append(f"audit: {finding.text}")


def _word(seen: Seen, happened: list[int]) -> str:
    told = "once" if happened else "not"
    return f"{told}, asked" if seen.doubted else told
