"""Rows of the queue benchmark, made by PostgreSQL itself from one real row of each table.

They satisfy every constraint and look like a year of work; no service made them. Each
turn has four interrupts, and those asked for last are open.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db import connection
from django.db.models import Model

from hitl_approvals.models import (
    AgentTurn,
    InterruptEvent,
    PendingInterrupt,
    TurnStep,
)

A_TURN = 4
"""Interrupts of one turn."""
DOUBTS = 8

# A UUIDv7, so that keys are in the order of the requests as they are on a site.
_UUID = """(lpad(to_hex((extract(epoch FROM {at}) * 1000)::bigint), 12, '0') || '7'
    || substr(md5('{salt}' || {n}), 1, 3) || '8' || substr(md5('{salt}' || {n}), 4, 15))::uuid"""


@dataclass(frozen=True)
class Size:
    """How many rows there are, how many of them wait, and over how many days they came."""

    rows: int
    open: int
    days: int
    now: str
    """One moment for all statements, for keys are made of it."""

    @property
    def step(self) -> str:
        return f"interval '{self.days * 86_400 / self.rows:.6f} seconds'"

    def asked(self, n: str) -> str:
        """Return the moment at which the row of a number was asked for."""
        return f"(timestamptz '{self.now}' - ({self.rows} - {n}) * {self.step})"

    def turn(self, n: str) -> str:
        """Return the key of the turn of a row; turns begin with their first row."""
        first = f"({n} - ({n} - 1) % {A_TURN})"
        return _UUID.format(at=self.asked(first), salt="turn", n=first)

    def interrupt(self, n: str) -> str:
        return _UUID.format(at=self.asked(n), salt="int", n=n)


def fill(size: Size, template: PendingInterrupt) -> None:
    """Make the rows, as copies of an interrupt that waits, of its turn and their records.

    The tables are left as a vacuum leaves them.
    """
    assert template.turn is not None
    event = InterruptEvent.objects.filter(subject_id=template.pk).earliest("sequence")
    step = TurnStep.objects.filter(turn=template.turn_id).earliest("position")
    _turns(size, template.turn)
    _interrupts(size, template)
    _copy(
        InterruptEvent,
        event.pk,
        f"generate_series(1, {size.rows}) n",
        id=_UUID.format(at=size.asked("n"), salt="event", n="n"),
        subject_id=size.interrupt("n"),
        interrupt_id=size.interrupt("n"),
        turn_id=size.turn("n"),
        at=size.asked("n"),
    )
    _copy(
        TurnStep,
        step.pk,
        f"generate_series(1, {size.rows}, {A_TURN}) n",
        id=_UUID.format(at=size.asked("n"), salt="step", n="n"),
        turn_id=size.turn("n"),
    )
    with connection.cursor() as cursor:
        for model in (TurnStep, PendingInterrupt, AgentTurn, InterruptEvent):
            cursor.execute(f"VACUUM ANALYZE {_table(model)}")


def _turns(size: Size, template: AgentTurn) -> None:
    last_closed = size.rows - size.open
    over = f"n <= {last_closed}"
    _copy(
        AgentTurn,
        template.pk,
        f"generate_series(1, {size.rows}, {A_TURN}) n",
        id=size.turn("n"),
        thread_id="'thread-' || n",
        thread_key="md5('a' || n) || md5('b' || n)",
        active_thread="NULL",
        start_key="NULL",
        status=f"CASE WHEN {over} THEN 'completed' ELSE 'suspended' END",
        undecided=f"CASE WHEN {over} THEN 0 ELSE {A_TURN} END",
        created_at=size.asked("n"),
        finished_at=f"CASE WHEN {over} THEN {size.asked('n')} + interval '1 hour' END",
    )


def _interrupts(size: Size, template: PendingInterrupt) -> None:
    last_closed = size.rows - size.open
    open_, doubt = f"n > {last_closed}", f"n > {size.rows - DOUBTS}"
    decided = f"(n <= {last_closed} OR {doubt})"
    # In words that repeat every twenty rows: 14 approved, 2 edited, 3 rejected, 1 expired.
    decision = (
        f"CASE WHEN {doubt} THEN 'approve' WHEN {open_} THEN NULL WHEN n % 20 < 14 THEN"
        " 'approve' WHEN n % 20 < 16 THEN 'edit' WHEN n % 20 < 19 THEN 'reject' ELSE 'expire' END"
    )
    runs = f"({doubt} OR (n <= {last_closed} AND n % 20 < 16))"
    decided_at = f"{size.asked('n')} + (1 + n % 97) * interval '7 seconds'"
    _copy(
        PendingInterrupt,
        template.pk,
        f"generate_series(1, {size.rows}) n",
        id=size.interrupt("n"),
        turn_id=size.turn("n"),
        dedupe_key="md5('a' || n) || md5('b' || n)",
        thread_id=f"'thread-' || (n - (n - 1) % {A_TURN})",
        position=f"n % {A_TURN}",
        tool_name="(ARRAY['issue_refund', 'send_email', 'run_sql', 'deploy',"
        " 'delete_account'])[1 + n % 5]",
        queue_id="(ARRAY['bench-mail', 'bench-money', 'bench-ops'])[1 + n % 3]",
        status=f"CASE WHEN {doubt} THEN 'in_doubt' WHEN {open_} THEN 'pending'"
        " ELSE 'resolved' END",
        decision=decision,
        decision_digest=f"CASE WHEN {runs} THEN args_digest ELSE '' END",
        decision_args_text=f"CASE WHEN n <= {last_closed} AND n % 20 IN (14, 15)"
        " THEN args_text END",
        reason=f"CASE WHEN n <= {last_closed} AND n % 20 IN (16, 17, 18)"
        " THEN 'Not now.' ELSE '' END",
        decided_at=f"CASE WHEN {decided} THEN {decided_at} END",
        decided_by_label=f"CASE WHEN {decided} THEN 'bench' ELSE '' END",
        requested_at=size.asked("n"),
        expires_at=f"CASE WHEN NOT {decided} AND n % 2 = 0 THEN statement_timestamp()"
        " + interval '1 day' + n % 5000 * interval '1 minute' END",
        resolved_at=f"CASE WHEN n <= {last_closed} THEN {decided_at}"
        " + interval '2 seconds' END",
    )


def _copy(model: type[Model], pk: Any, source: str, **changed: str) -> None:
    """Insert copies of one row with some columns as expressions of `n`."""
    fields = [field.column for field in model._meta.concrete_fields]
    known = set(fields)
    assert known >= set(changed), set(changed) - known
    if model._meta.pk.get_internal_type() != "UUIDField":
        fields.remove("id")
        changed.pop("id", None)
    values = [changed.get(name, f't."{name}"') for name in fields]
    columns = ", ".join(f'"{name}"' for name in fields)
    table = _table(model)
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {table} ({columns}) SELECT {', '.join(values)}"
            f" FROM {table} t, {source} WHERE t.id = '{pk}'"
        )


def _table(model: type[Model]) -> str:
    return connection.ops.quote_name(model._meta.db_table)
