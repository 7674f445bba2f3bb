"""Requests of a remote agent for the benchmark, made by PostgreSQL from one real row.

Most are over, as after a year. Some wait, some are approved and not fetched, and many
are fetched with their report still to come: those a sweeper must not read each time.
"""

from __future__ import annotations

from django.db import connection

from hitl_approvals.models import InterruptEvent, PendingInterrupt
from tests.benchmarks.rows import _UUID, Size, _copy, _table

TAG = "bench-rare"
"""One row in eight has it."""


def fill_remote(size: Size, template: PendingInterrupt) -> None:
    """Make the rows and their events, as copies of a request that was approved."""
    n = "n"
    key = _UUID.format(at=size.asked(n), salt="remote", n=n)
    newest = size.rows - size.open
    waits = f"n > {size.rows - size.open // 10}"
    approved = f"(n > {size.rows - size.open // 2} AND NOT {waits})"
    # As many again as are open, and further back.
    fetched = f"(n > {newest - size.open} AND NOT {approved} AND NOT {waits})"
    over = f"NOT ({waits} OR {approved} OR {fetched})"
    asked = size.asked(n)
    _copy(
        PendingInterrupt,
        template.pk,
        f"generate_series(1, {size.rows}) n",
        id=key,
        dedupe_key="md5('c' || n) || md5('d' || n)",
        client_ref="'request-' || n",
        thread_id="'remote-' || n",
        tool_name="(ARRAY['issue_refund', 'send_email', 'run_sql'])[1 + n % 3]",
        queue_id="(ARRAY['bench-mail', 'bench-money', 'bench-ops'])[1 + n % 3]",
        tags=f'CASE WHEN n % 8 = 0 THEN \'["{TAG}","rest"]\' ELSE \'["rest"]\' END',
        status=f"CASE WHEN {waits} THEN 'pending' WHEN {over} THEN 'resolved'"
        " ELSE 'decided' END",
        decision=f"CASE WHEN {waits} THEN NULL ELSE 'approve' END",
        decision_digest=f"CASE WHEN {waits} THEN '' ELSE t.decision_digest END",
        decided_at=f"CASE WHEN NOT {waits} THEN {asked} + interval '1 minute' END",
        decided_by_label=f"CASE WHEN {waits} THEN '' ELSE 'bench' END",
        requested_at=asked,
        execute_by=f"CASE WHEN {fetched} OR {over} THEN {asked} + interval '1 hour'"
        " ELSE statement_timestamp() + interval '1 day' END",
        consumed_at=f"CASE WHEN {fetched} OR {over} THEN {asked}"
        " + interval '2 minutes' END",
        consume_key=f"CASE WHEN {fetched} OR {over} THEN 'k' END",
        outcome_due=f"CASE WHEN {fetched} OR {over} THEN statement_timestamp()"
        " + interval '1 day' END",
        outcome_status=f"CASE WHEN {over} THEN 'succeeded' ELSE '' END",
        resolved_at=f"CASE WHEN {over} THEN {asked} + interval '3 minutes' END",
    )
    for number, event in enumerate(
        InterruptEvent.objects.filter(subject_id=template.pk).order_by("sequence")
    ):
        _copy(
            InterruptEvent,
            event.pk,
            f"generate_series(1, {size.rows}) n",
            id=_UUID.format(at=asked, salt=f"remote event {number}", n=n),
            subject_id=key,
            interrupt_id=key,
            at=asked,
        )
    with connection.cursor() as cursor:
        for model in (PendingInterrupt, InterruptEvent):
            cursor.execute(f"VACUUM ANALYZE {_table(model)}")
