"""The Restate forwarder, on a real server and a real service."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from hitl_approvals import Reject, services
from hitl_approvals.agents.base import load
from hitl_approvals.agents.following import workflow_id
from hitl_approvals.agents.links import Asking
from hitl_approvals.agents.restate import Reply, RestateLink
from hitl_approvals.engines import RestateWorkflow
from hitl_approvals.engines.rounds import AnswerRefused
from hitl_approvals.exceptions import HitlConfigurationError
from hitl_approvals.registry import AgentDefinition, registry
from tests.engines.forwarding import (
    AGENT,
    PAY,
    ServerContract,
    begin,
    let_go,
    look,
    pursue,
    statuses,
)
from tests.engines.restate_support import RestateHarness
from tests.support import agents, turns

pytestmark = [pytest.mark.engines, pytest.mark.django_db(transaction=True)]


@pytest.fixture(scope="module")
def restate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RestateHarness]:
    harness = RestateHarness(tmp_path_factory.mktemp("restate"))
    yield harness
    harness.close()


@pytest.fixture
def engine(restate: RestateHarness, monkeypatch: pytest.MonkeyPatch) -> RestateHarness:
    """The server of this module, and an agent whose workflows its service performs."""
    address = RestateWorkflow(
        ingress=f"http://{restate.server.ingress}",
        admin=f"http://{restate.server.admin}",
        workflow="Scripted",
        patience=2,
    )
    definition = AgentDefinition(
        name=AGENT,
        target=lambda: address,
        kind="restate",
        tools={one.name: one for one in agents.TOOLS},
    )
    monkeypatch.setitem(registry.agents, AGENT, definition)
    restate.model_calls.clear()
    return restate


class TestRestate(ServerContract):
    """What holds for every engine."""


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"round": 2}, "There is no round 2"),
        ({"results": {"c2": {}}}, r"got \['c2'\]"),
        ({"results": None}, "holds a round and its results"),
    ],
)
def test_the_workflow_refuses_nonsense(
    engine: RestateHarness, changes: dict[str, Any], says: str
) -> None:
    turn = begin([PAY])
    workflow = workflow_id(turn)
    answer = {"round": 1, "key": f"{workflow}-x", "results": {}, **changes}

    with pytest.raises(AnswerRefused, match=says):
        engine.deliver(workflow, answer)

    assert engine.deliveries(workflow) == 0
    turns.decide(turns.only(turn), Reject("no"))
    pursue(turn)
    assert statuses(turn) == ["rejected"]


@pytest.mark.parametrize("status", [400, 404, 409, 422, 470, 500])
def test_a_workflow_may_fail_with_any_status(
    engine: RestateHarness, status: int
) -> None:
    turn = begin({"fail": "no such order", "status": status})
    pursue(turn)

    assert turn.status == "failed"
    assert turn.error.endswith("failed: no such order")


def test_calls_that_cannot_be_told_apart_fail_the_workflow(
    engine: RestateHarness,
) -> None:
    turn = begin([PAY, PAY])
    pursue(turn)

    assert turn.status == "failed"
    assert "ids of their own" in turn.error


def test_without_an_admin_address_a_workflow_that_stays_open_is_shown(
    engine: RestateHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = registry.agents[AGENT]
    address = replace(known.target(), admin=None)
    monkeypatch.setitem(registry.agents, AGENT, replace(known, target=lambda: address))
    turn = begin([PAY])
    services.cancel(turn.pk, by=None, via="test")

    assert turns.resume(turn) == "cancelled"

    assert isinstance(look(turn), Asking)
    assert turn.next_run_at is not None
    assert f"{workflow_id(turn)} cannot be cancelled from here" in turn.last_error
    assert "names no admin= address" in turn.last_error

    # Somebody adds it, and all is well.
    monkeypatch.setitem(registry.agents, AGENT, known)
    let_go(turn)
    assert engine.is_over(workflow_id(turn))


def test_an_admin_address_that_is_none_is_shown(
    engine: RestateHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ingress refuses what is asked of the admin API; the workflow stays open."""
    known = registry.agents[AGENT]
    address = replace(known.target(), admin=f"http://{engine.server.ingress}")
    monkeypatch.setitem(registry.agents, AGENT, replace(known, target=lambda: address))
    turn = begin([PAY])
    services.cancel(turn.pk, by=None, via="test")

    assert turns.resume(turn) == "cancelled"

    assert turn.next_run_at is not None
    assert "does not cancel" in turn.last_error
    monkeypatch.setitem(registry.agents, AGENT, known)
    let_go(turn)
    assert engine.is_over(workflow_id(turn))


def test_a_workflow_that_can_no_more_be_named_is_shown(
    engine: RestateHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server asks for the service before it names an invocation that is there."""
    turn = begin([PAY])
    services.cancel(turn.pk, by=None, via="test")
    real = RestateLink._post

    async def refused(link: RestateLink, path: str, *args: Any, **options: Any) -> Any:
        if path.endswith("/send"):
            return Reply(404, {"message": "service 'Scripted' not found"})
        return await real(link, path, *args, **options)

    monkeypatch.setattr(RestateLink, "_post", refused)

    assert turns.resume(turn) == "cancelled"

    assert "service 'Scripted' not found" in turn.last_error


class Welcoming(BaseHTTPRequestHandler):
    """What stands where a Restate server should: it says yes to everything."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.end_headers()
        self.wfile.write(b"<h1>Welcome</h1>")

    def do_POST(self) -> None:
        self.do_GET()

    def log_message(self, *args: Any) -> None:
        pass


def test_what_is_no_restate_server_is_not_believed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A page of a proxy is no result of a workflow."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Welcoming) as server:
        threading.Thread(target=server.serve_forever).start()
        place = f"http://127.0.0.1:{server.server_port}"
        address = RestateWorkflow(ingress=place, workflow="Scripted", patience=1)
        definition = AgentDefinition(name=AGENT, target=lambda: address, kind="restate")
        monkeypatch.setitem(registry.agents, AGENT, definition)
        try:
            turn = begin([PAY])
        finally:
            server.shutdown()

    assert (turn.status, turn.attempts) == ("ready", 0)
    assert "is no Restate server" in turn.last_error


@pytest.mark.parametrize(
    "addresses",
    [
        {"ingress": "127.0.0.1:8080"},
        {"ingress": "ftp://127.0.0.1"},
        {"admin": "localhost:9070"},
    ],
)
def test_an_address_that_is_no_url_is_refused(addresses: dict[str, str]) -> None:
    """HTTP without a host would go to whoever listens on this machine."""
    address = RestateWorkflow(workflow="Scripted", **addresses)
    definition = AgentDefinition(name=AGENT, target=lambda: address, kind="restate")

    with pytest.raises(HitlConfigurationError, match="http://"):
        load(definition)


def test_a_workflow_that_is_not_registered_is_waited_for(
    engine: RestateHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = RestateWorkflow(
        ingress=f"http://{engine.server.ingress}", workflow="Nobody", patience=1
    )
    definition = AgentDefinition(name="empty", target=lambda: address, kind="restate")
    monkeypatch.setitem(registry.agents, "empty", definition)

    turn = turns.begin([PAY], agent="empty")

    assert (turn.status, turn.attempts) == ("ready", 0)
    assert "Waits for Restate at 127.0.0.1" in turn.last_error
