"""What is to be said at the end: rows against the world, and against what was promised."""

from __future__ import annotations

import json
import traceback
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from django.db import connection

from hitl_approvals import auditing
from hitl_approvals.enums import EventType, InterruptStatus, TurnStatus
from hitl_approvals.models import AgentTurn, InterruptEvent, PendingInterrupt
from hitl_approvals.models.turns import FINAL
from tests.chaos.people import PROMISES
from tests.crash.site import outside
from tests.crash.site.agents import TABLE
from tests.invariants import AUTHORIZATIONS, assert_invariants

EVENT_OF = {
    "approve": EventType.APPROVED,
    "edit": EventType.EDITED,
    "reject": EventType.REJECTED,
    "respond": EventType.RESPONDED,
    "settled_happened": EventType.SETTLED_HAPPENED,
    "settled_run_again": EventType.SETTLED_RUN_AGAIN,
    "settled_give_up": EventType.SETTLED_GAVE_UP,
}


@dataclass
class Reckoning:
    """The sums of a run, and what is wrong with it."""

    turns: int = 0
    in_doubt: int = 0
    lost: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    about: Counter[str] = field(default_factory=Counter)


def unfinished() -> list[str]:
    """Return the turns that are neither over nor visibly in doubt."""
    doubtful = set(
        PendingInterrupt.objects.filter(status=InterruptStatus.IN_DOUBT).values_list(
            "turn_id", flat=True
        )
    )
    pending = set(
        PendingInterrupt.objects.filter(status=InterruptStatus.PENDING).values_list(
            "turn_id", flat=True
        )
    )
    found = []
    for turn in AgentTurn.objects.exclude(status__in=FINAL):
        in_doubt = turn.pk in doubtful and turn.pk not in pending
        stands = turn.status in (TurnStatus.SUSPENDED, TurnStatus.NEEDS_ATTENTION)
        if not (stands and in_doubt):
            found.append(
                f"turn {turn.pk} is {turn.status} blocked={turn.blocked} "
                f"attempts={turn.attempts} {turn.last_error}"
            )
    return found


def reckon(folder: Path) -> Reckoning:
    """Compare everything with everything."""
    sums = Reckoning(turns=AgentTurn.objects.count())
    sums.lost += unfinished()
    events: dict[Any, list[str]] = defaultdict(list)
    for subject, type_ in InterruptEvent.objects.values_list("subject_id", "type"):
        events[str(subject)].append(type_)
        sums.about[type_] += 1
    _compare_promises(folder, events, sums)
    _compare_effects(events, sums)
    _check_rows(sums)
    return sums


def _compare_promises(
    folder: Path, events: dict[str, list[str]], sums: Reckoning
) -> None:
    turns = {str(pk) for pk in AgentTurn.objects.values_list("pk", flat=True)}
    path = folder / PROMISES
    for line in path.read_text().splitlines() if path.exists() else ():
        promise = json.loads(line)
        what, id_ = promise["what"], promise["id"]
        sums.about["promises"] += 1
        kept = id_ in turns if what == "start" else EVENT_OF[what] in events[id_]
        if not kept:
            sums.lost.append(f"the site said that {what} of {id_} was stored")


def _compare_effects(events: dict[str, list[str]], sums: Reckoning) -> None:
    landed = _landed()
    for row in PendingInterrupt.objects.filter(kind="tool_call"):
        happened = landed.pop(row.args["case"], [])
        told = events[str(row.pk)]
        free = row.policy.get("gated") is False
        allowed = sum(type_ in AUTHORIZATIONS for type_ in told) + free
        if len(happened) > allowed:
            sums.doubled.append(
                f"{row.tool_name} {row.pk}: {len(happened)} effects, {allowed} allowed"
            )
        if row.tool_name == "transactional" and len(happened) > 1:
            sums.doubled.append(f"transactional {row.pk}: {len(happened)} effects")
        if told.count(EventType.RESOLVED) > 1:
            sums.doubled.append(f"{row.pk}: resolved more than once")
        edited = row.decision_args_text is not None
        if set(happened) - ({10, 20} if edited or EventType.EDITED in told else {10}):
            sums.wrong.append(f"{row.tool_name} {row.pk} ran with {happened}")
        if row.outcome_status == "succeeded" and not happened:
            sums.lost.append(f"{row.tool_name} {row.pk} succeeded and did not happen")
        sums.in_doubt += row.status == InterruptStatus.IN_DOUBT
        sums.about["effects"] += len(happened)
    for case, happened in landed.items():
        # No row is left for calls that nobody had to approve and nobody doubted.
        sums.about["effects"] += len(happened)
        if len(happened) > 1:
            sums.doubled.append(f"free call {case}: {len(happened)} effects")


def _landed() -> dict[str, list[int]]:
    """Return the amounts that moved, by call."""
    found: dict[str, list[int]] = defaultdict(list)
    keys: set[tuple[str, str]] = set()
    for call in outside.every_call():
        seen = (call["case"], call["key"])
        if call["mode"] == "idempotent":
            if seen in keys:
                continue  # the other side has had this key
            keys.add(seen)
        if call["mode"] == "none":
            # To read is no effect; what was read must have been allowed all the same.
            if call["amount"] not in found[call["case"]]:
                found[call["case"]].append(call["amount"])
            continue
        found[call["case"]].append(call["amount"])
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT happened_to, amount FROM {TABLE}")
        for case, amount in cursor.fetchall():
            found[case].append(amount)
    return found


def _check_rows(sums: Reckoning) -> None:
    try:
        assert_invariants()
    except AssertionError:
        sums.wrong.append(traceback.format_exc(limit=2))
    for finding in auditing.Verification().findings():
        if finding.is_fault:
            sums.wrong.append(f"audit: {finding.subject_id} {finding.text}")
    stuck = PendingInterrupt.objects.filter(
        status=InterruptStatus.DECIDED, turn__status__in=FINAL
    )
    for row in stuck:
        sums.lost.append(f"{row.pk} is decided, and its turn is {row.turn.status}")
