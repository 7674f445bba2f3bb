"""At a size where a wrong plan costs, PostgreSQL reads by index, and by the one meant."""

from __future__ import annotations

import re

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from hitl_approvals.admin import paging
from hitl_approvals.models import (
    AgentTurn,
    InterruptEvent,
    PendingInterrupt,
    TurnStep,
)
from tests.admin.scenes import LIST
from tests.benchmarks import desk_agent
from tests.benchmarks.rows import Size, fill

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.breaks_invariants,  # SQL makes the rows
]
LARGE = tuple(
    model._meta.db_table
    for model in (PendingInterrupt, AgentTurn, TurnStep, InterruptEvent)
)
SCAN = re.compile(rf"Seq Scan on ({'|'.join(LARGE)})\b")
CAPPED = re.compile(
    rf"Aggregate .*\n *->  Limit .*rows={paging.CAP + 1} .*\n *->  Seq Scan on .*"
)
"""A count that expects to meet its cap among the first rows of the table and to stop."""
INDEX = re.compile(r"(?:using|Index Scan on) (\w+)")


@pytest.fixture
def many(transactional_db: None) -> Client:
    """A site of 50,000 rows with 2,000 open, and its reviewer's browser."""
    with connection.cursor() as cursor:
        # The rows of other tests are deleted and still fill pages, which makes reading
        # a table from its beginning look cheap.
        for table in LARGE if connection.vendor == "postgresql" else ():
            cursor.execute(f"VACUUM FULL {table}")
    client = Client()
    client.force_login(desk_agent.make_reviewer())
    now = timezone.now().isoformat()
    fill(Size(rows=50_000, open=2_000, days=60, now=now), desk_agent.make_call())
    return client


def plans(client: Client, address: str) -> list[tuple[str, str]]:
    """Return the statements of a page that read large tables, each with its plan."""
    with CaptureQueriesContext(connection) as found:
        assert client.get(address).status_code == 200
    statements = [
        one["sql"] for one in found if any(table in one["sql"] for table in LARGE)
    ]
    explained = []
    with connection.cursor() as cursor:
        for sql in statements:
            cursor.execute(f"EXPLAIN {sql}")
            explained.append((sql, "\n".join(line for (line,) in cursor.fetchall())))
    return explained


@pytest.mark.skipif(
    connection.vendor != "postgresql", reason="these are the plans of PostgreSQL"
)
def test_every_page_reads_by_the_index_that_was_made_for_it(many: Client) -> None:
    one = PendingInterrupt.objects.filter(status="pending").order_by("pk")[999]
    third = many.get(f"{LIST}{many.get(LIST).context['next_query']}")
    meant = {
        LIST: {"hitl_int_expiry_idx", "hitl_int_queue_idx"},
        f"{LIST}{third.context['next_query']}": {"hitl_int_expiry_idx"},
        f"{LIST}?o=oldest": {"hitl_int_status_idx"},
        f"{LIST}?queue=bench-money": {"hitl_int_queue_idx"},
        f"{LIST}?tool=issue_refund": set(),
        f"{LIST}?view=decided": {"hitl_approvals_pendinginterrupt_pkey"},
        f"{LIST}?q={one.thread_id}": {"hitl_int_thread_idx"},
        f"{LIST}?view=all&q={one.thread_id}": {
            "hitl_int_thread_idx",
            "hitl_int_agent_idx",
            "hitl_int_tool_idx",
        },
        f"{LIST}{one.pk}/change/": {"hitl_approvals_pendinginterrupt_pkey"},
        f"{LIST}numbers/": {"hitl_int_decided_idx", "hitl_int_queue_idx"},
        "/api/interrupts/": {"hitl_int_requested_idx"},
        "/api/interrupts/?tag=nothing": {"hitl_int_requested_idx"},
        f"/api/interrupts/?search={one.thread_id}": {"hitl_int_thread_idx"},
        "/api/interrupts/?ordering=expires_at": {"hitl_int_expiry_idx"},
        "/api/interrupts/?ordering=-decided_at": {"hitl_int_decided_idx"},
        f"/api/interrupts/{one.pk}/events/": {"hitl_event_sequence_uniq"},
        "/api/queues/": set(),
        "/api/stats/": {"hitl_int_decided_idx"},
    }

    open_ = "/api/interrupts/?open=true"
    meant |= {open_: set(), f"{open_}&ordering=requested_at": set()}

    wrong = []
    for address, indexes in meant.items():
        found = plans(many, address)
        assert found
        used = {name for _, plan in found for name in INDEX.findall(plan)}
        wrong += [
            f"{address}: {plan}\n{sql}"
            for sql, plan in found
            if SCAN.search(CAPPED.sub("", plan))
        ]
        if address.startswith(open_):
            # Along all rows it would meet the open ones last, or first, by luck only.
            if "hitl_int_requested_idx" in used:
                wrong.append(f"{address}: walks along all rows")
            indexes = {"hitl_int_queue_idx", "hitl_int_status_idx"}
            indexes = set() if indexes & used else indexes
        if indexes - used:
            wrong.append(f"{address}: not by {indexes - used} but by {used}")

    counting = "Index Only Scan using hitl_int_decided_idx"
    counted = [plan for _, plan in plans(many, f"{LIST}numbers/") if counting in plan]
    if len(counted) < 2:
        wrong.append("The numbers fetch the rows that they count.")

    assert not wrong, "\n\n".join(wrong)
