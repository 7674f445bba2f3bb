"""What the rows say, put beside what happened outside of them."""

from __future__ import annotations

from collections import defaultdict
from typing import Any
from uuid import UUID

from hitl_approvals import canonical
from hitl_approvals.enums import (
    EventType,
    InterruptStatus,
    OutcomeStatus,
    StepStatus,
    ToolMode,
    TurnStatus,
)
from hitl_approvals.models import (
    AgentTurn,
    InterruptEvent,
    PendingInterrupt,
    TurnStep,
)
from hitl_approvals.transitions import INTERRUPT, STEP, TURN, Table
from tests.properties.outside import Outside, rows_of

MODELS: dict[type[Any], Table] = {
    AgentTurn: TURN,
    PendingInterrupt: INTERRUPT,
    TurnStep: STEP,
}
ALLOW = (EventType.APPROVED, EventType.EDITED, EventType.SETTLED_RUN_AGAIN)
TAKE_BACK = (EventType.LAPSED, EventType.REOPENED)
CLOSED = (TurnStatus.COMPLETED, TurnStatus.FAILED, TurnStatus.CANCELLED)


def reachable(table: Table) -> dict[str, set[str]]:
    """Return for each status those that it may come to in any number of changes."""
    found = {status: {status, *after} for status, after in table.items()}
    for _round in found:
        for after in found.values():
            after |= set().union(*(found[status] for status in after))
    return found


REACHABLE = {model: reachable(table) for model, table in MODELS.items()}


def statuses() -> dict[UUID, tuple[type[Any], str]]:
    """Return the status of every row of ours."""
    return {
        pk: (model, status)
        for model in MODELS
        for pk, status in model.objects.values_list("pk", "status")
    }


def assert_legal(
    before: dict[UUID, tuple[type[Any], str]],
    after: dict[UUID, tuple[type[Any], str]],
) -> None:
    """Assert that every status came from the one before by changes of the tables."""
    assert before.keys() <= after.keys(), "a row was deleted"
    for pk, (model, status) in after.items():
        _model, came_from = before.get(pk, (model, ""))
        assert status in REACHABLE[model][came_from], (model, pk, came_from, status)


def assert_effects(outside: Outside) -> None:
    """Assert that what calls did is what people allowed, and what is on record."""
    events = defaultdict(list)
    for event in InterruptEvent.objects.exclude(interrupt_id=None):
        events[event.interrupt_id].append(event)
    rows = {row.pk: row for row in PendingInterrupt.objects.filter(kind="tool_call")}
    for step in TurnStep.objects.filter(kind="tool"):
        row = rows.get(step.interrupt_id) if step.interrupt_id else None
        _assert_step(outside, step)
        _assert_arguments(outside, step, row, events[step.interrupt_id])
    by_tag = defaultdict(list)
    for row in rows.values():
        if row.policy["gated"] and row.tool_name == "drawn_free":
            _assert_asked_about(outside, row, events[row.pk])
        elif row.policy["gated"]:
            by_tag[tag_of(row)].append(row)
    for tag, found in by_tag.items():
        types = [event.type for row in found for event in events[row.pk]]
        _assert_authorized(outside, tag, found, types)


def tag_of(row: PendingInterrupt) -> str:
    args: Any = canonical.stored(row.args_text)
    return str(args["tag"])


def _assert_step(outside: Outside, step: TurnStep) -> None:
    """One row of the ledger against what its key did."""
    acts = [act for act in outside.acts if act.key == step.idempotency_key]
    if step.mode == ToolMode.TRANSACTIONAL:
        assert not acts
        return
    honest = step.mode != ToolMode.LOOKUP or not outside.overslept
    if step.mode == ToolMode.UNSAFE:
        assert len(acts) <= 1, (step, "one start, one effect")
    if step.status == StepStatus.NOT_STARTED and honest:
        assert not acts, (step, "never started, and yet")
    if step.status == StepStatus.FAILED:
        assert not acts or step.mode == ToolMode.IDEMPOTENT, (step, "failed, and yet")


def _assert_arguments(
    outside: Outside,
    step: TurnStep,
    row: PendingInterrupt | None,
    events: list[InterruptEvent],
) -> None:
    """What ran is what somebody allowed, byte for byte."""
    allowed = {event.digest_run for event in events if event.type in ALLOW}
    if row is None or not row.policy["gated"]:
        allowed |= {step.args_digest}
    for act in outside.acts:
        if act.key == step.idempotency_key:
            text = canonical.dumps({"tag": act.tag, "amount": act.amount})
            assert canonical.digest(text) in allowed, (act, "ran other arguments")


def _assert_authorized(
    outside: Outside, tag: str, rows: list[PendingInterrupt], types: list[str]
) -> None:
    """One call, over all its rows: a restart or another review makes it a new one."""
    allowed = sum(type_ in ALLOW for type_ in types)
    allowed -= sum(type_ in TAKE_BACK for type_ in types)
    mode = rows[0].policy["mode"]
    keys = outside.keys_of(tag)
    if mode == ToolMode.TRANSACTIONAL:
        ran = sum(
            row.outcome_status == OutcomeStatus.SUCCEEDED
            for row in rows
            if not row.policy.get("taken_over")
        )
        assert rows_of(tag) == ran, (rows, "transactional, exactly once")
        return
    acted = len(keys) if mode == ToolMode.IDEMPOTENT else sum(keys.values())
    if mode == ToolMode.LOOKUP and outside.overslept:
        return
    assert acted <= allowed, (rows, acted, allowed, "more than was allowed")


def _assert_asked_about(
    outside: Outside, row: PendingInterrupt, events: list[InterruptEvent]
) -> None:
    """A fork lets people decide on a free call of unknown fate, as on any other."""
    keys = set(row.steps.values_list("idempotency_key", flat=True))
    acted = sum(act.key in keys for act in outside.acts)
    allowed = sum(event.type in ALLOW for event in events)
    assert acted <= allowed, (row, acted, allowed, "more than was allowed")


def assert_nothing_hidden() -> None:
    """Assert that no closed turn leaves anything open, once the sweeper came by."""
    open_ = (InterruptStatus.PENDING, InterruptStatus.DECIDED)
    left = PendingInterrupt.objects.filter(turn__status__in=CLOSED, status__in=open_)
    assert not left.exists(), list(left)
    begun = TurnStep.objects.filter(turn__status__in=CLOSED, status=StepStatus.STARTED)
    assert not begun.exists(), list(begun)
