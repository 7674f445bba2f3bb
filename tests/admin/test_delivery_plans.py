"""At a size where a wrong plan costs, PostgreSQL reads deliveries by the index meant."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from hitl_approvals.models import Delivery
from tests.admin.test_deliveries import DELIVERIES, address

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.skipif(
        connection.vendor != "postgresql", reason="these are the plans of PostgreSQL"
    ),
]
TABLE = Delivery._meta.db_table
SCAN = re.compile(rf"Seq Scan on {TABLE}\b")
CAPPED = re.compile(r"Aggregate .*\n *->  Limit .*rows=1001 .*\n *->  Seq Scan on .*")
"""A count that expects to meet its cap among the first rows of the table and to stop."""
INDEX = re.compile(r"(?:using|Index Scan on) (\w+)")
ROWS = f"""
    INSERT INTO {TABLE} (id, channel, event_type, event_id, subject_id, body, status,
        attempts, next_attempt_at, give_up_at, lease_token, last_error, created_at)
    SELECT gen_random_uuid(), 'webhook:e' || (i % 5), 'interrupt.raised',
        gen_random_uuid(), gen_random_uuid(), '{{}}',
        CASE WHEN i % 1000 = 0 THEN 'owed' WHEN i % 100 = 1 THEN 'given_up'
            ELSE 'delivered' END,
        1, CASE WHEN i % 1000 = 0 THEN now() + make_interval(secs => i) END,
        now() - make_interval(secs => i), '', '', now() - make_interval(secs => i)
    FROM generate_series(1, 50000) i
"""


@pytest.fixture
def many(db: None) -> Client:
    """A site of 50,000 deliveries, and the browser of its administrator."""
    with connection.cursor() as cursor:
        cursor.execute(ROWS)
        cursor.execute(f"ANALYZE {TABLE}")
    client = Client()
    client.force_login(User.objects.create_superuser("boss"))
    return client


def plans(client: Client, place: str) -> list[str]:
    """Return the plans of a page's statements that read deliveries."""
    with CaptureQueriesContext(connection) as found:
        assert client.get(place).status_code == 200
    explained = []
    with connection.cursor() as cursor:
        for sql in [one["sql"] for one in found if TABLE in one["sql"]]:
            cursor.execute(f"EXPLAIN {sql}")
            explained.append("\n".join(line for (line,) in cursor.fetchall()))
    return explained


def test_every_page_reads_by_the_index_that_was_made_for_it(many: Client) -> None:
    one: Any = (
        Delivery.objects.filter(status="delivered").order_by("created_at").first()
    )
    second = many.get(DELIVERIES, {"view": "all"}).context["next_query"]
    listed = {"hitl_delivery_list_idx"}
    meant = {
        DELIVERIES: {"hitl_delivery_due_idx"},
        f"{DELIVERIES}?view=all": listed,
        f"{DELIVERIES}{second}": listed,
        f"{DELIVERIES}?view=delivered": listed,
        f"{DELIVERIES}?view=all&channel=webhook:e1": listed,
        f"{DELIVERIES}?view=all&q={one.subject_id}": {"hitl_delivery_subject_idx"},
        address(one): {f"{TABLE}_pkey"},
    }

    wrong = []
    for place, indexes in meant.items():
        found = plans(many, place)
        used = {name for plan in found for name in INDEX.findall(plan)}
        wrong += [
            f"{place}: {plan}" for plan in found if SCAN.search(CAPPED.sub("", plan))
        ]
        if indexes - used:
            wrong.append(f"{place}: not by {indexes - used} but by {used}")

    assert not wrong, "\n\n".join(wrong)
