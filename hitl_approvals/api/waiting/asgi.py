"""Lets requests wait outside of Django: `LongPolls(get_asgi_application())`.

Django's own request ends at once, with its thread, its connections and the work of every
middleware; what is left of it is a coroutine. When there is something to tell, the answer
goes out with the headers that the middleware gave. May be imported before Django is set
up.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from hitl_approvals.api.waiting.waiters import Answer

Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
Application: TypeAlias = Callable[[Any, Any, Any], Awaitable[None]]
"""Any ASGI application; each framework names the parts of the protocol otherwise."""

KEY = "hitl_approvals.long_poll"
"""Where a view finds, in the scope of its request, that it may leave the waiting to us."""
MARK = "X-Hitl-Held"
"""Header of a response that only stands for one; it never goes out."""
_OF_THE_BODY = {b"content-length", b"content-type", MARK.lower().encode()}


class LongPolls:
    """An ASGI application around Django's."""

    def __init__(self, application: Application) -> None:
        self._application = application

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Serve a request; one that is held is answered after Django is done with it."""
        if scope["type"] != "http":
            await self._application(scope, receive, send)
            return
        poll = LongPoll(send)
        # Leaves the place that the view took, whatever becomes of the request.
        with poll.place:
            await self._application({**scope, KEY: poll}, receive, poll.send)
            if poll.start is not None and poll.answer is not None:
                answer = await _while_here(receive, poll.answer)
                if answer is not None:
                    await _tell(answer, poll.start, scope["method"], send)


class LongPoll:
    """What a view and the application around Django know of one request."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.place = ExitStack()
        """Entered by the view: the request's place among those that wait."""
        self.answer: Callable[[], Awaitable[Answer]] | None = None
        """Set by the view if the request is held."""
        self.start: Message | None = None
        """How the response begins that stands for the answer."""

    async def send(self, message: Message) -> None:
        """Pass on what Django says, unless it only stands for an answer."""
        if message["type"] == "http.response.start":
            names = {name.lower() for name, _value in message["headers"]}
            # Not so if a middleware has put an answer of its own in place of it.
            if MARK.lower().encode() in names:
                self.start = message
        if self.start is None:
            await self._send(message)


async def _while_here(
    receive: Receive, answer: Callable[[], Awaitable[Answer]]
) -> Answer | None:
    """Return the answer; None if the client has gone before."""
    waiting = asyncio.ensure_future(answer())
    leaving = asyncio.ensure_future(_gone(receive))
    leaving.add_done_callback(lambda _: waiting.cancel())
    try:
        return await waiting
    except asyncio.CancelledError:
        if leaving.done():
            return None
        waiting.cancel()
        raise
    finally:
        leaving.cancel()


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _tell(answer: Answer, start: Message, method: str, send: Send) -> None:
    headers = [
        (name, value)
        for name, value in start["headers"]
        if name.lower() not in _OF_THE_BODY
    ]
    given = {name.lower() for name, _value in headers}
    headers += [
        (name.encode("latin-1"), value.encode("latin-1"))
        for name, value in answer.headers.items()
        if name.lower().encode("latin-1") not in given
    ]
    headers.append((b"Content-Length", str(len(answer.content)).encode()))
    body = b"" if method == "HEAD" else answer.content
    await send({**start, "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
