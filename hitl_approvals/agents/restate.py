"""The Restate forwarder: a workflow there owns the loop, its gated calls run here."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any
from urllib.parse import quote, urlsplit

from hitl_approvals.agents.forwarder import (
    CAPABILITIES,
    ForwarderAgent,
    address_of,
)
from hitl_approvals.agents.links import (
    Absent,
    Broken,
    CannotCancel,
    Ended,
    Engine,
    EngineAway,
    Link,
    Seen,
    Working,
    asking,
    text_of,
)
from hitl_approvals.agents.snapshots import Maker
from hitl_approvals.engines import RestateWorkflow
from hitl_approvals.engines.rounds import DECIDE, PENDING, AnswerRefused
from hitl_approvals.exceptions import HitlConfigurationError
from hitl_approvals.registry import AgentDefinition

REPLY = 5.0
"""Seconds that one answer of the server may take."""
NOT_READY, NOT_FOUND, OVER, REFUSED = 470, 404, 409, 422
NO_SERVICE = "No service of the workflow answers."
NO_ADMIN = (
    "RestateWorkflow names no admin= address. Add it, or cancel the workflow by hand."
)


@dataclass(frozen=True, slots=True)
class Reply:
    """What the server said."""

    status: int
    body: Any
    ran: bool = False
    """Whether a handler was run: else it is the server itself that refuses."""

    @property
    def text(self) -> str:
        """Return the message of a refusal."""
        if isinstance(self.body, dict) and "message" in self.body:
            return str(self.body["message"])
        return str(self.body or f"HTTP {self.status}")


class RestateEngine(Engine):
    """The ingress of a Restate server, spoken to in plain HTTP: no SDK is needed here."""

    name = "Restate"
    maker = Maker(framework="restate", distribution="restate-sdk", adapter=1)

    def __init__(self, address: RestateWorkflow) -> None:
        for place in (address.ingress, address.admin):
            _require_url(place)
        self.address = address
        self.where = urlsplit(address.ingress).netloc.rpartition("@")[2]
        self.patience = address.patience

    def link(self) -> AbstractAsyncContextManager[Link]:
        """Make a link; each request has a connection of its own."""
        return self._link()

    @asynccontextmanager
    async def _link(self) -> AsyncIterator[Link]:
        yield RestateLink(self.address)


class RestateLink(Link):
    """Requests to the ingress, and one to the admin API."""

    def __init__(self, address: RestateWorkflow) -> None:
        self.address = address

    async def look(self, workflow: str) -> Seen:
        """Ask for the result, and if there is none yet for what is waited for."""
        output = await self._output(workflow)
        if output.ran:
            if output.status < 300:
                return Ended(output.body)
            # With whatever status the workflow's own error has, 404 among them.
            return Broken(f"The Restate workflow {workflow} failed: {output.text}")
        if output.status == NOT_READY:
            return await self._pending(workflow)
        if output.status == NOT_FOUND:
            return Absent()
        raise _unreached(output)

    async def start(self, workflow: str, given: Any) -> None:
        """Send the workflow; the server keeps the first of its key."""
        reply = await self._post(self._path(workflow, "run", "send"), given)
        if reply.status >= 300:
            # The service is not registered yet, or the server wants another token.
            raise _unreached(reply)

    async def deliver(self, workflow: str, answer: Mapping[str, Any]) -> None:
        """Resolve the round's promise; the server does so once."""
        reply = await self._post(
            self._path(workflow, DECIDE),
            dict(answer),
            {"idempotency-key": answer["key"]},
            silence=NO_SERVICE,
        )
        if reply.ran and reply.status == REFUSED:
            raise AnswerRefused(reply.text)
        if not reply.ran or (reply.status >= 300 and reply.status != OVER):
            raise _unreached(reply)

    async def cancel(self, workflow: str) -> None:
        """Cancel the workflow's invocation, by the server's admin API."""
        output = await self._output(workflow)
        if output.ran or output.status != NOT_READY:
            return
        if self.address.admin is None:
            raise CannotCancel(NO_ADMIN)
        # A second sending starts nothing, and names the invocation that is there.
        again = await self._post(self._path(workflow, "run", "send"), None)
        if again.status >= 300:
            raise _unreached(again)
        path = f"/invocations/{quote(again.body['invocationId'])}/cancel"
        done = await self._ask("PATCH", path, base=self.address.admin)
        # It may have ended meanwhile.
        if done.status >= 300 and done.status != OVER:
            raise EngineAway(f"The admin API does not cancel it: {done.text}")

    async def _output(self, workflow: str) -> Reply:
        name = quote(self.address.workflow, safe="")
        path = f"/restate/workflow/{name}/{quote(workflow, safe='')}/output"
        return await self._ask("GET", path)

    async def _pending(self, workflow: str) -> Seen:
        try:
            shown = await self._post(self._path(workflow, PENDING), silence=NO_SERVICE)
        except EngineAway as away:
            return Working(str(away))
        if shown.status >= 300:
            return Working(f"It does not show what it waits for: {shown.text}")
        return asking(shown.body) or Working()

    def _path(self, workflow: str, *more: str) -> str:
        parts = (self.address.workflow, workflow, *more)
        return "/" + "/".join(quote(one, safe="") for one in parts)

    async def _post(
        self,
        path: str,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        *,
        silence: str = "",
    ) -> Reply:
        return await self._ask("POST", path, body, headers, silence=silence)

    async def _ask(self, *args: Any, **options: Any) -> Reply:
        return await asyncio.to_thread(self._request, *args, **options)

    def _request(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        *,
        base: str | None = None,
        silence: str = "",
    ) -> Reply:
        """Send one request.

        Raises:
            EngineAway: There is no answer, or one that no Restate server gives.
        """
        place = urlsplit(base or self.address.ingress)
        kind = HTTPSConnection if place.scheme == "https" else HTTPConnection
        connection = kind(place.hostname or "", place.port, timeout=REPLY)
        sent = {**self.address.headers, **(headers or {})}
        data = None
        if body is not None:
            data, sent["content-type"] = json.dumps(body).encode(), "application/json"
        try:
            connection.request(method, place.path.rstrip("/") + path, data, sent)
            answer = connection.getresponse()
            text = answer.read()
        except TimeoutError as error:
            raise EngineAway(silence or text_of(error)) from error
        except (OSError, HTTPException) as error:
            raise EngineAway(text_of(error)) from error
        finally:
            connection.close()
        if answer.status in {401, 403, 429, 502, 503, 504}:
            raise EngineAway(f"HTTP {answer.status}: {text.decode(errors='replace')}")
        # Only an invocation has an id.
        ran = answer.headers.get("x-restate-id") is not None
        return Reply(answer.status, _read(text), ran)


def _require_url(place: str | None) -> None:
    """Refuse an address that names no host: HTTP would find one on this machine.

    Raises:
        HitlConfigurationError: It is no URL of HTTP.
    """
    url = urlsplit(place or "http://none")
    if url.scheme not in {"http", "https"} or not url.hostname:
        raise HitlConfigurationError(
            "The addresses of a RestateWorkflow begin with http:// or https://."
        )


def _unreached(reply: Reply) -> EngineAway:
    """Return what an answer means that comes from no workflow."""
    if reply.status < 300:
        return EngineAway("What answers there is no Restate server.")
    return EngineAway(reply.text)


def _read(text: bytes) -> Any:
    if not text:
        return None
    try:
        return json.loads(text)
    except ValueError:
        return text.decode(errors="replace")


__all__ = ["CAPABILITIES", "make"]


def make(definition: AgentDefinition) -> ForwarderAgent:
    """Return the agent that follows the workflow a function names.

    Raises:
        HitlConfigurationError: It names none.
    """
    address = address_of(definition, RestateWorkflow)
    return ForwarderAgent(definition, RestateEngine(address))
