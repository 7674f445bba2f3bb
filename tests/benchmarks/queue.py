"""`make bench-queue`: pages of the desk at a thousand rows and at a million.

Two databases of its own on PostgreSQL, dropped afterwards, filled by SQL. A reviewer with
one group and three queues asks for each page through Django's test client, in turn from
the small database and from the large one, so that a busy machine hits both. Prints the
queries of one request, the median of its milliseconds, and the ratio of large to small;
a difference under 3 ms counts as 1.0.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from statistics import median
from typing import Any, TypeVar

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, connection, connections
from django.test import Client
from django.test.utils import CaptureQueriesContext, setup_test_environment
from django.utils import timezone

from hitl_approvals.models import PendingInterrupt
from tests.benchmarks import desk_agent
from tests.benchmarks.rows import Size, fill
from tests.workspace import run_database

LIST = "/admin/hitl_approvals/pendinginterrupt/"
SMALL = 1_000
OPEN_SMALL, OPEN = 500, 10_000
"""As many open rows in the small one as fill every page of the list."""
NOISE_MS = 3.0
S = TypeVar("S", bound="Site")


@dataclass
class Site:
    """One database with its rows, and the pages that are asked of it."""

    size: Size
    database: Any
    client: Client = field(default_factory=Client)
    pages: dict[str, str] = field(default_factory=dict)

    def use(self) -> None:
        """Let Django's connection be the one to this database."""
        connections[DEFAULT_DB_ALIAS] = self.database

    def prepare(self) -> None:
        """Make the people and the rows, and name the pages."""
        self.client.force_login(desk_agent.make_reviewer())
        fill(self.size, desk_agent.make_call())
        waiting = PendingInterrupt.objects.filter(status="pending").order_by("pk")
        one = waiting[self.size.open // 2]
        self.pages = {
            "list": LIST,
            "list, page 3": LIST,
            "filtered list": f"{LIST}?queue=bench-money&tool=issue_refund",
            "decided list": f"{LIST}?view=decided",
            "search": f"{LIST}?q={one.thread_id}",
            "search in all": f"{LIST}?view=all&q={one.thread_id}",
            "search, nothing": f"{LIST}?view=all&q=nothing-is-called-so",
            "detail": f"{LIST}{one.pk}/change/",
            "numbers": f"{LIST}numbers/",
            "API list": "/api/interrupts/",
            "API open": "/api/interrupts/?open=true&ordering=requested_at",
            "API stats": "/api/stats/",
        }
        third = self.client.get(LIST)
        for _ in range(2):
            self.pages["list, page 3"] = f"{LIST}{third.context['next_query']}"
            third = self.client.get(self.pages["list, page 3"])

    def queries(self, page: str) -> int:
        """Return how many queries a page asks, once it has been asked for before."""
        self.use()
        with CaptureQueriesContext(connection) as found:
            self.ask(page)
        return len(found)

    def ask(self, page: str) -> float:
        """Ask for a page and return the milliseconds that it took."""
        self.use()
        begin = time.perf_counter()
        response = self.client.get(self.pages[page])
        spent = (time.perf_counter() - begin) * 1000
        assert response.status_code == 200, (page, response.status_code)
        return spent


@dataclass(frozen=True)
class Row:
    """What was measured of one page."""

    page: str
    queries: tuple[int, int]
    small: float
    large: float

    @property
    def ratio(self) -> float:
        return 1.0 if self.large - self.small < NOISE_MS else self.large / self.small

    def __str__(self) -> str:
        few, many = self.queries
        asked = str(few) if few == many else f"{few} to {many}"
        return (
            f"{self.page:20}  {asked:>8}  {self.small:9.1f}  {self.large:9.1f}"
            f"  {self.ratio:6.2f}"
        )


def measure(small: Site, large: Site, page: str, requests: int) -> Row:
    """Ask for a page of both sites, in turn."""
    for site in (small, large):
        for _warm in range(3):
            site.ask(page)
    queries = (small.queries(page), large.queries(page))
    spent: list[tuple[float, float]] = [
        (small.ask(page), large.ask(page)) for _ in range(requests)
    ]
    return Row(
        page,
        queries,
        median(one for one, _ in spent),
        median(other for _, other in spent),
    )


@contextmanager
def a_site(size: Size, make: type[S] = Site) -> Iterator[S]:  # type: ignore[assignment]
    """Make a database with its rows, and drop it."""
    before = connections[DEFAULT_DB_ALIAS]
    made = before.copy(alias=DEFAULT_DB_ALIAS)
    made.settings_dict = {**before.settings_dict}
    name = f"{run_database()}_{size.rows}"
    made.settings_dict["TEST"] = {**before.settings_dict["TEST"], "NAME": name}
    connections[DEFAULT_DB_ALIAS] = made
    old = made.settings_dict["NAME"]
    made.creation.create_test_db(verbosity=0, autoclobber=True, serialize=False)
    settings.DATABASES[DEFAULT_DB_ALIAS]["NAME"] = old
    site = make(size, made)
    try:
        begin = time.perf_counter()
        site.prepare()
        print(
            f"{size.rows} rows made in {time.perf_counter() - begin:.0f} s", flush=True
        )
        yield site
    finally:
        site.use()
        made.creation.destroy_test_db(old, verbosity=0)
        connections[DEFAULT_DB_ALIAS] = before


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=200)
    parser.add_argument("--rows", type=int, default=1_000_000)
    options = parser.parse_args()
    # Hosts, mails and signals as in tests: nothing is sent.
    setup_test_environment(debug=False)
    now = timezone.now().isoformat()
    with ExitStack() as stack:
        small = stack.enter_context(a_site(Size(SMALL, OPEN_SMALL, 30, now)))
        large = stack.enter_context(a_site(Size(options.rows, OPEN, 365, now)))
        print(
            f"{'page':20}  {'queries':>8}  {SMALL:>6} ms  {options.rows:>6} ms   ratio"
        )
        found = []
        for page in small.pages:
            found.append(measure(small, large, page, options.requests))
            print(found[-1], flush=True)
    worst = max(row.ratio for row in found)
    print(f"bench queue: rows={options.rows} worst_ratio={worst:.2f}")
