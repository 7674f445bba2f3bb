"""Long polls on an event loop: inside of Django, outside of it, and with real servers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from asgiref.testing import ApplicationCommunicator
from django.core.asgi import get_asgi_application
from django.db import OperationalError, connection, connections
from django.http import HttpRequest, HttpResponse
from django.urls import resolve

from hitl_approvals import Approve, services
from hitl_approvals.api.waiting.asgi import LongPolls
from hitl_approvals.api.waiting.kinds import Kind
from hitl_approvals.api.waiting.watcher import watcher
from tests.api import scenes
from tests.api.remote_scenes import Agent
from tests.api.waiting import LONG, nobody_waits
from tests.support.serving import Reply, Site, get, in_threads, on_an_event_loop

__all__ = ["nobody_waits"]

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("nobody_waits"),
]


@pytest.fixture(params=["inside", "outside"])
def application(request: pytest.FixtureRequest) -> Any:
    django = get_asgi_application()
    return LongPolls(django) if request.param == "outside" else django


class Request:
    """One request to an ASGI application in this process."""

    def __init__(self, application: Any, agent: Agent, url: str, **scope: Any) -> None:
        path, _, query = url.removeprefix("http://testserver").partition("?")
        headers = {"Host": "testserver", "Authorization": f"Bearer {agent.token}"}
        self.communicator = ApplicationCommunicator(
            application,
            {
                "type": "http",
                "asgi": {"version": "3.0"},
                "http_version": "1.1",
                "method": "GET",
                "path": path,
                "query_string": query.encode(),
                "headers": [
                    (name.lower().encode(), value.encode())
                    for name, value in headers.items()
                ],
                **scope,
            },
        )

    async def send(self) -> None:
        await self.communicator.send_input({"type": "http.request", "body": b""})

    async def leave(self) -> None:
        await self.communicator.send_input({"type": "http.disconnect"})
        await self.communicator.wait(LONG)

    async def answer(self) -> Reply:
        start = await self.communicator.receive_output(LONG)
        body = await self.communicator.receive_output(LONG)
        assert not body.get("more_body")
        await self.communicator.wait(LONG)
        headers: dict[str, str] = {}
        for name, value in start["headers"]:
            assert name.decode().lower() not in headers, "a header came twice"
            headers[name.decode().lower()] = value.decode()
        return Reply(start["status"], headers, body["body"], time.monotonic())


async def held(count: int = 1) -> None:
    until = time.monotonic() + LONG
    while len(watcher) != count:
        assert time.monotonic() < until, f"{len(watcher)} wait, not {count}"
        await asyncio.sleep(0.005)


async def elsewhere(work: Callable[..., Any], *args: Any, **options: Any) -> None:
    """Work in another thread, with connections of its own: this one has an event loop."""

    def done() -> None:
        try:
            work(*args, **options)
        finally:
            connections.close_all()

    await sync_to_async(done, thread_sensitive=False)()


async def decide(url: str) -> None:
    pk = url.rstrip("/").rpartition("/")[2]
    await elsewhere(services.decide, pk, Approve(), by=None, via="test")


def test_a_decision_ends_the_wait_with_the_answer_of_a_plain_read(application) -> None:
    agent = Agent()
    url = agent.raised()

    async def scene() -> list[Reply]:
        first = Request(application, agent, f"{url}?wait={LONG}")
        await first.send()
        await held()
        await decide(url)
        waited = await first.answer()
        second = Request(application, agent, url)
        await second.send()
        return [waited, await second.answer()]

    waited, plain = asyncio.run(scene())

    assert (waited.status, waited.json()["status"]) == (200, "decided")
    assert waited.body == plain.body
    assert waited.headers.pop("x-request-id") != plain.headers.pop("x-request-id")
    assert waited.headers == plain.headers


@pytest.mark.parametrize("end", ["decided", "over", "revoked"])
def test_what_ends_a_wait_is_told(application, end: str) -> None:
    agent = Agent()
    url = agent.raised()

    async def scene() -> Reply:
        seconds = 0.2 if end == "over" else LONG
        asked = Request(application, agent, f"{url}?wait={seconds}", method="HEAD")
        await asked.send()
        await held()
        if end == "revoked":
            await elsewhere(services.revoke_client, agent.client.pk, by=None)
        if end != "over":
            await decide(url)
        return await asked.answer()

    told = asyncio.run(scene())

    assert told.status == (401 if end == "revoked" else 200)
    assert told.headers["cache-control"] == "private, no-store"
    assert ("www-authenticate" in told.headers) == (end == "revoked")
    assert int(told.headers["content-length"]) > 0


def test_who_leaves_waits_no_more(application) -> None:
    agent = Agent()
    url = agent.raised()

    async def scene() -> int:
        asked = Request(application, agent, f"{url}?wait={LONG}")
        await asked.send()
        await held()
        await asked.leave()
        return len(watcher)

    assert asyncio.run(scene()) == 0


def test_a_request_too_many_is_told_to_come_again(application) -> None:
    agent = Agent(limits={"waiting": 1})
    url = agent.raised()

    async def scene() -> list[Reply]:
        first = Request(application, agent, f"{url}?wait={LONG}")
        await first.send()
        await held()
        second = Request(application, agent, f"{url}?wait={LONG}")
        await second.send()
        refused = await second.answer()
        await decide(url)
        return [refused, await first.answer()]

    refused, told = asyncio.run(scene())

    assert (refused.status, refused.json()["code"]) == (429, "throttled")
    assert refused.headers["retry-after"] == "5"
    assert told.status == 200


def test_at_the_end_a_request_looks_for_itself_where_nobody_could(
    application, monkeypatch
) -> None:
    agent = Agent()
    url = agent.raised()

    def fails(kind: Kind, ids: Any) -> Any:
        raise OperationalError("gone away")

    monkeypatch.setattr(Kind, "standings", fails)

    async def scene() -> Reply:
        asked = Request(application, agent, f"{url}?wait=0.2")
        await asked.send()
        return await asked.answer()

    told = asyncio.run(scene())

    assert (told.status, told.json()["status"]) == (200, "pending")


def _instead(get_response: Any) -> Any:
    """Answer in place of every view, as a middleware may that comes late."""

    def middleware(request: HttpRequest) -> HttpResponse:
        get_response(request)
        return HttpResponse("closed", status=503)

    return middleware


def test_a_middleware_has_the_last_word(settings) -> None:
    agent = Agent()
    url = agent.raised()
    settings.MIDDLEWARE = [f"{__name__}._instead"]
    application = LongPolls(get_asgi_application())

    async def scene() -> Reply:
        asked = Request(application, agent, f"{url}?wait={LONG}")
        await asked.send()
        return await asked.answer()

    told = asyncio.run(scene())

    assert (told.status, told.body) == (503, b"closed")
    assert len(watcher) == 0


def test_other_connections_are_passed_on() -> None:
    came: list[str] = []

    async def inner(scope: Any, receive: Any, send: Any) -> None:
        came.append(scope["type"])

    asyncio.run(LongPolls(inner)({"type": "lifespan"}, None, None))  # type: ignore[arg-type]

    assert came == ["lifespan"]


def test_the_view_is_async_on_a_loop_only() -> None:
    row = scenes.pending()

    async def on_a_loop() -> Any:
        return resolve(scenes.url(row)).func

    assert asyncio.iscoroutinefunction(asyncio.run(on_a_loop()))
    assert not asyncio.iscoroutinefunction(resolve(scenes.url(row)).func)
    for view in (asyncio.run(on_a_loop()), resolve(scenes.url(row)).func):
        assert view._non_atomic_requests == set(connections)
        assert view.csrf_exempt


# --- Real servers ---------------------------------------------------------------------


def ask_many(site: Site, agent: Agent, urls: list[str]) -> list[Reply]:
    """Let each address be waited for; decide them once all are; return the replies."""

    async def scene() -> list[Reply]:
        headers = {"Authorization": f"Bearer {agent.token}"}
        sent: list[int] = []
        asked = [
            asyncio.ensure_future(
                get(
                    site,
                    f"{url.removeprefix('http://testserver')}?wait={LONG}",
                    headers,
                    sent=lambda: sent.append(1),
                )
            )
            for url in urls
        ]
        await elsewhere(_until_all_wait, len(urls), sent)
        for url in dict.fromkeys(urls):
            await decide(url)
        return await asyncio.gather(*asked)

    connections.close_all()
    return asyncio.run(scene())


def _until_all_wait(count: int, sent: list[int]) -> None:
    """Return once all were sent, and nobody but the watcher is connected for a while."""
    until, calm = time.monotonic() + LONG, 0
    while calm < 5:
        assert time.monotonic() < until, "not all wait"
        time.sleep(0.05)
        calm = calm + 1 if len(sent) == count and _others() in (None, 1) else 0
    assert _others(state="idle in transaction") in (None, 0)


def _others(state: str = "") -> int | None:
    """Return how many connections the site has; None where the database cannot tell."""
    if connection.vendor != "postgresql":
        return None
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
            " AND pid <> pg_backend_pid() AND strpos(state, %s) > 0",
            [state],
        )
        (count,) = cursor.fetchone()
    return int(count)


@pytest.mark.e2e
def test_a_hundred_wait_on_one_connection_and_all_are_told() -> None:
    agent = Agent(limits={"waiting": 100})
    urls = [agent.raised(f"ref-{n}") for n in range(10)] * 10

    with on_an_event_loop() as site:
        told = ask_many(site, agent, urls)

    assert {one.status for one in told} == {200}
    assert {one.json()["status"] for one in told} == {"decided"}
    for url, one in zip(urls, told, strict=True):
        path = url.removeprefix("http://testserver")
        assert one.json()["url"] == f"{site.address}{path}"
    assert len({one.headers["x-request-id"] for one in told}) == 100


@pytest.mark.e2e
def test_where_each_request_has_a_thread_it_waits_in_it() -> None:
    agent = Agent()
    urls = [agent.raised(f"ref-{n}") for n in range(4)] * 2

    with in_threads() as site:
        told = ask_many(site, agent, urls)

    assert [(one.status, one.json()["status"]) for one in told] == [
        (200, "decided")
    ] * 8
