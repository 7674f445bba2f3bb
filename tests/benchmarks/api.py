"""`make bench-api`: the API at a thousand rows and at a million, and 500 that wait.

Two databases of its own on PostgreSQL, dropped afterwards, filled by SQL: half of the
rows belong to turns, half to remote agents. A reviewer and an agent client ask the same
of both, in turn, so that a busy machine hits both. Prints for each view the median of
its milliseconds and the ratio of large to small; a difference under 3 ms counts as 1.0.
Then as many requests as an agent's processes send wait for decisions under uvicorn.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import count
from statistics import median
from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.db import connection
from django.test.utils import CaptureQueriesContext, setup_test_environment
from django.utils import timezone

from hitl_approvals import Approve, services
from hitl_approvals.models import AgentClient, PendingInterrupt
from tests.benchmarks import desk_agent
from tests.benchmarks.plans import sequential, told
from tests.benchmarks.queue import Row, Site, a_site
from tests.benchmarks.remote_rows import TAG, fill_remote
from tests.benchmarks.rows import Size, fill
from tests.support import remote

API = "/api/interrupts/"
SMALL = 1_000
OPEN_SMALL, OPEN = 300, 10_000
MANY = 450
"""Rows to decide, and rows to fetch: more than are asked for."""
UNLIMITED = {"per_minute": None, "open": None, "waiting": None}
_keys = count(1)

Request = Callable[[], Any]


@dataclass
class ApiSite(Site):
    """One database, and what is asked of its API."""

    token: str = ""
    views: dict[str, Request] = field(default_factory=dict)

    def prepare(self) -> None:
        """Make the people and the rows, and name the views."""
        reviewer = desk_agent.make_reviewer()
        self.client.force_login(reviewer)
        half = Size(self.size.rows // 2, self.size.open, self.size.days, self.size.now)
        fill(half, desk_agent.make_call())
        client, self.token = services.create_client(
            "bench", queue="bench-ops", limits=UNLIMITED, by=None
        )
        fill_remote(half, remote.approved(client, tags=[TAG, "rest"]))
        self._lists(reviewer)
        self._writes()

    def _lists(self, reviewer: Any) -> None:
        waiting = PendingInterrupt.objects.filter(status="pending", turn__isnull=False)
        one = waiting.order_by("pk")[self.size.open // 2]
        services.claim(one.pk, by=reviewer, via="bench")
        yesterday = (timezone.now() - timedelta(days=1)).isoformat()
        asked: dict[str, dict[str, Any]] = {
            "list": {},
            "list, oldest first": {"ordering": "requested_at"},
            "list, by time left": {"ordering": "expires_at"},
            "list, decided last": {"ordering": "-decided_at"},
            "status=resolved": {"status": "resolved"},
            "status, two of them": {"status": ["pending", "in_doubt"]},
            "open=true": {"open": "true"},
            "decision=edit": {"decision": "edit"},
            "queue": {"queue": "bench-money"},
            "queue, open": {"queue": "bench-money", "open": "true"},
            "agent": {"agent": "bench"},
            "tool": {"tool": "run_sql"},
            "client": {"client": "bench"},
            "thread": {"thread": one.thread_id},
            "turn": {"turn": str(one.turn_id)},
            "tag": {"tag": TAG},
            "tag, none has it": {"tag": "nobody-has-this"},
            "kind=question": {"kind": "question"},
            "priority=1": {"priority": "1"},
            "assignee=me": {"assignee": "me"},
            "assignee=none": {"assignee": "none"},
            "requested_after": {"requested_after": yesterday},
            "expires_before": {"expires_before": timezone.now().isoformat()},
            "decided_after": {"decided_after": yesterday},
            "search": {"search": one.thread_id},
            "search, nothing": {"search": "nothing-is-called-so"},
        }
        for name, query in asked.items():
            self._view(name, f"{API}?{urlencode(query, doseq=True)}")
        self._view("list, page 3", self._next(self._next(API)))
        self._view("retrieve", f"{API}{one.pk}/")
        self._view("events", f"{API}{one.pk}/events/")
        self._view("turns, list", "/api/turns/")
        self._view("queues", "/api/queues/")
        mine = PendingInterrupt.objects.filter(client__isnull=False)
        self._view("own list", API, own=True)
        self._view("own list, pending", f"{API}?status=pending", own=True)
        self._view("own row", f"{API}{mine.earliest('pk').pk}/", own=True)

    def _writes(self) -> None:
        turns = PendingInterrupt.objects.filter(turn__isnull=False)
        pending = turns.filter(status="pending", assignee=None).order_by("-pk")
        approved = PendingInterrupt.objects.filter(
            client__isnull=False, status="decided", consumed_at=None
        ).order_by("-pk")
        to_decide = iter(list(pending.values_list("pk", flat=True)[:MANY]))
        found = list(approved.values_list("pk", flat=True)[:MANY])
        found += [self._approved() for _ in range(MANY - len(found))]
        to_fetch = iter(found)
        fetched: list[Any] = []

        def decide() -> Any:
            return self._post(f"{API}{next(to_decide)}/approve/", {})

        def consume() -> Any:
            fetched.append(next(to_fetch))
            return self._post(f"{API}{fetched[-1]}/consume/", {}, key="k")

        def outcome() -> Any:
            body = {"status": "succeeded", "result": {"id": 1}}
            return self._post(f"{API}{fetched.pop()}/outcome/", body, key="k")

        def ask() -> Any:
            body = {"tool_name": "refund", "args": remote.ARGS}
            return self._post(API, body, key=f"new-{next(_keys)}")

        self.views |= {
            "decide": decide,
            "consume": consume,
            "outcome": outcome,
            "raise": ask,
            "one sweep": services.sweep,
        }

    def _approved(self) -> Any:
        """Make one more approval that can be fetched: a small table holds few."""
        client = AgentClient.objects.get(name="bench")
        raised = services.raise_remote(
            client, ref=f"more-{next(_keys)}", tool_name="refund", args=remote.ARGS
        )
        services.decide(raised.interrupt_id, Approve(), by=None, via="bench")
        return raised.interrupt_id

    def _view(self, name: str, path: str, *, own: bool = False) -> None:
        headers = {"Authorization": f"Bearer {self.token}"} if own else {}
        self.views[name] = lambda: self._checked(self.client.get(path, headers=headers))

    def _next(self, path: str) -> str:
        return str(self.client.get(path).json()["next"])

    def _post(self, path: str, body: Any, *, key: str = "") -> Any:
        headers = {"Idempotency-Key": key or f"k{next(_keys)}"}
        if key:
            headers["Authorization"] = f"Bearer {self.token}"
        text = json.dumps(body)
        return self._checked(
            self.client.post(path, text, "application/json", headers=headers)
        )

    @staticmethod
    def _checked(response: Any) -> Any:
        assert response.status_code in (200, 201), response.content
        return response

    def queries(self, page: str) -> int:
        """Return how many queries a view asks."""
        return len(self.captured(page))

    def captured(self, page: str) -> list[dict[str, str]]:
        """Return the queries of a view."""
        self.use()
        with CaptureQueriesContext(connection) as found:
            self.views[page]()
        return list(found.captured_queries)

    def ask(self, page: str) -> float:
        """Ask for a view and return the milliseconds that it took."""
        self.use()
        begin = time.perf_counter()
        self.views[page]()
        return (time.perf_counter() - begin) * 1000


def measure(small: ApiSite, large: ApiSite, view: str, requests: int) -> Row:
    """Ask a view of both sites, in turn."""
    for site in (small, large):
        for _warm in range(3):
            site.ask(view)
    queries = (small.queries(view), large.queries(view))
    spent = [(small.ask(view), large.ask(view)) for _ in range(requests)]
    return Row(
        view, queries, median(one for one, _ in spent), median(two for _, two in spent)
    )


def explained(site: ApiSite) -> Iterator[str]:
    """Yield the plan of every statement of the writes and of one sweep."""
    for view in ("decide", "consume", "outcome", "raise", "one sweep"):
        statements = [one["sql"] for one in site.captured(view)]
        yield f"\n{view}: {len(statements)} statements"
        for sql in statements:
            yield from told(sql)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=200)
    parser.add_argument("--rows", type=int, default=1_000_000, help="30000 at least")
    parser.add_argument(
        "--only", default="", help="parts of the views' names, with commas between"
    )
    parser.add_argument("--explain", action="store_true", help="show plans of writes")
    parser.add_argument("--waiters", type=int, default=500, help="0 for none")
    options = parser.parse_args()
    # Hosts, mails and signals as in tests: nothing is sent.
    setup_test_environment(debug=False)
    settings.HITL_APPROVALS = {"DISPATCHER": "worker"}
    now = timezone.now().isoformat()
    with ExitStack() as stack:
        small, large = (
            stack.enter_context(a_site(Size(rows, open_, days, now), ApiSite))
            for rows, open_, days in (
                (SMALL, OPEN_SMALL, 30),
                (options.rows, OPEN, 365),
            )
        )
        print(
            f"{'view':20}  {'queries':>8}  {SMALL:>6} ms  {options.rows:>6} ms   ratio"
        )
        found = []
        parts = options.only.split(",")
        for view in [name for name in small.views if any(one in name for one in parts)]:
            found.append(measure(small, large, view, options.requests))
            print(found[-1], flush=True)
        if options.explain:
            print(*explained(large), sep="\n")
        scans = sequential(large)
    print(f"sequential scans of the large tables by the writes and the sweep: {scans}")
    worst = max(row.ratio for row in found)
    p50, p99 = _waiters(options.waiters)
    print(
        f"bench api: worst_ratio={worst:.2f} waiters={options.waiters} "
        f"p50_ms={p50:.0f} p99_ms={p99:.0f}"
    )


def _waiters(number: int) -> tuple[float, float]:
    from tests.benchmarks.cycle import database
    from tests.benchmarks.waiters import measure_waiters

    if not number:
        return 0.0, 0.0
    with database():
        return measure_waiters(number)
