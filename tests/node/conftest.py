"""A site, a payment system, a gate before both, and the job of an agent."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import TypeVar

import pytest
from django.db import connection

from example_project.remote_agents.payments import Ledger, Payments
from hitl_approvals import Approve, services
from hitl_approvals.models import AgentClient, PendingInterrupt
from hitl_approvals.services import clients
from tests.node.agents import KINDS, Job
from tests.node.gate import Gate
from tests.node.site import COMMANDS, Site

Server = TypeVar("Server", bound=ThreadingHTTPServer)


@pytest.fixture(scope="session")
def sites(
    django_db_setup: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Site]]:
    """The site by the server that it runs under."""
    settings = os.environ["DJANGO_SETTINGS_MODULE"]
    folder = tmp_path_factory.mktemp("sites")
    made = {server: Site(settings, folder, server) for server in COMMANDS}
    yield made
    for site in made.values():
        site.stop()


@pytest.fixture
def server() -> str:
    """Under which server the site runs; tests say it otherwise."""
    return "runserver"


@pytest.fixture
def site(sites: dict[str, Site], server: str, transactional_db: None) -> Site:
    """The site, up: the test before may have killed it."""
    sites[server].start()
    return sites[server]


@pytest.fixture
def honours_keys() -> bool:
    """Whether the payment system knows a key again; tests say it otherwise."""
    return True


@pytest.fixture
def ledger(tmp_path: Path, honours_keys: bool) -> Ledger:
    return Ledger(tmp_path / "ledger.jsonl", honours_keys=honours_keys)


@pytest.fixture
def gate(site: Site, ledger: Ledger) -> Iterator[Gate]:
    with (
        serving(Payments(ledger)) as payments,
        serving(Gate(site.url, payments.url)) as gate,
    ):
        gate.on_wait = approve
        yield gate


@pytest.fixture
def billing(transactional_db: None) -> tuple[AgentClient, str]:
    """An agent client and its token."""
    return clients.create_client("billing", by=None)


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    kind: str = request.param
    return kind


@pytest.fixture
def job(
    kind: str,
    gate: Gate,
    billing: tuple[AgentClient, str],
    tmp_path: Path,
    honours_keys: bool,
) -> Job:
    folder = tmp_path / "jobs"
    folder.mkdir()
    environment = {
        "HITL_URL": f"{gate.url}/api",
        "HITL_TOKEN": billing[1],
        "PAYMENTS_URL": gate.url,
        "HONOURS_KEYS": "yes" if honours_keys else "no",
    }
    return Job(kind, folder, environment)


def approve() -> None:
    decide(Approve())


def decide(decision: object) -> None:
    """Decide what waits, in whatever thread this is."""
    try:
        for row in PendingInterrupt.objects.filter(status="pending"):
            services.decide(row.pk, decision, by=None, via="test")  # type: ignore[arg-type]
    finally:
        if threading.current_thread() is not threading.main_thread():
            connection.close()


@contextmanager
def serving(server: Server) -> Iterator[Server]:
    thread = threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.02}
    )
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
