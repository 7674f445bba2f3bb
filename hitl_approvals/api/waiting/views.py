"""The two ways to wait: on an event loop, and in a thread where there is none.

The viewset reads the row first, with everything that a plain GET asks; if there is
nothing to tell it returns `Held`, which is answered here once there is.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import partial, wraps
from typing import Any, TypeVar

from asgiref.sync import ThreadSensitiveContext, sync_to_async
from django.db import connections
from django.db.models import Model
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from rest_framework.exceptions import Throttled
from rest_framework.response import Response

from hitl_approvals.api.views import ApprovalsViewSet, request_id
from hitl_approvals.api.waiting import answers, asking, viewers
from hitl_approvals.api.waiting.asgi import KEY, MARK, LongPoll
from hitl_approvals.api.waiting.kinds import Kind
from hitl_approvals.api.waiting.waiters import Answer, Waiter
from hitl_approvals.api.waiting.watcher import watcher
from hitl_approvals.services.transactions import alias

M = TypeVar("M", bound=Model)
T = TypeVar("T")
View = Callable[..., HttpResponseBase]

READS = 8
"""First reads that go on at once on an event loop, each with a connection of its own."""
GRACE = 5.0
"""Seconds past the end of its wait after which a request looks for itself."""

_reads = threading.BoundedSemaphore(READS)


class Held(Response):
    """Stands for an answer that is not there yet; no client ever sees it."""

    def __init__(self, waiter: Waiter) -> None:
        super().__init__()
        self.waiter = waiter


class WaitingViewSet(ApprovalsViewSet[M]):
    """A viewset whose `retrieve` may wait until there is something to tell."""

    kind: Kind

    @classmethod
    def as_view(cls, actions: Any = None, **initkwargs: Any) -> Any:
        """Return the view; the one that shows a single row may wait."""
        view = super().as_view(actions, **initkwargs)
        single = actions is not None and actions.get("get") == "retrieve"
        return waits(view) if single else view

    def asked_to_wait(self) -> asking.Asked | None:
        """Return how long this request may wait; None is a plain read.

        Raises:
            BadRequest: What the query says of it cannot be read.
        """
        return asking.read(self.request, known=self.kind.states, default=self.kind.held)

    def where_to_read(self, asked: asking.Asked | None) -> str | None:
        """Return the database to read from; who waits is never shown a replica's past."""
        return None if asked is None else alias()

    def held(self, row: M, asked: asking.Asked | None) -> Response | None:
        """Return what makes the request wait; None if there is something to tell now.

        Inside a transaction nobody waits: it would be held open, and might not see what
        others commit.
        """
        standing = self.kind.standing(row)
        if asked is None or not asked.seconds or standing[0] not in asked.held:
            return None
        if connections[alias()].in_atomic_block:
            return None
        request = self.request
        return Held(
            Waiter(
                view=self,
                kind=self.kind,
                pk=row.pk,
                seen=standing,
                held=asked.held,
                seconds=asked.seconds,
                account=viewers.account_of(request),
                places=viewers.places_of(request),
                viewer=viewers.viewer_of(request),
                place=viewers.place_of(request),
                request_id=request_id(request),
            )
        )


def waits(view: View) -> Any:
    """Return a view that answers held requests, by blocking the thread that it is in.

    Its attribute `attending` is the same as a coroutine, for event loops.
    """

    @wraps(view)
    def blocking(request: HttpRequest, **kwargs: Any) -> HttpResponseBase:
        response = view(request, **kwargs)
        if not isinstance(response, Held):
            return response
        _let_connections_go()
        waiter = response.waiter
        answer: Answer | None = None
        try:
            with watcher.waiting(waiter), suppress(TimeoutError):
                answer = waiter.promise.result(waiter.seconds + GRACE)
        except Throttled as error:
            return _refused(waiter, error)
        return (answer or _look(waiter)).response(waiter.request_id)

    @wraps(view)
    async def attending(request: HttpRequest, **kwargs: Any) -> HttpResponseBase:
        first = _sparing(view) if asking.WAIT in request.GET else view
        response = await sync_to_async(first)(request, **kwargs)
        if not isinstance(response, Held):
            return response
        waiter = response.waiter
        outside: LongPoll | None = getattr(request, "scope", {}).get(KEY)
        with ExitStack() as own:
            place = own if outside is None else outside.place
            try:
                place.enter_context(watcher.waiting(waiter))
            except Throttled as error:
                return _refused(waiter, error)
            if outside is not None:
                outside.answer = partial(_answer_outside, waiter)
                return HttpResponse(headers={**response.headers, MARK: "yes"})
            answer = await _awaited(waiter)
            if answer is None:
                answer = await sync_to_async(_look)(waiter)
            return answer.response(waiter.request_id)

    blocking.attending = attending  # type: ignore[attr-defined]
    return blocking


async def _awaited(waiter: Waiter) -> Answer | None:
    with suppress(TimeoutError):
        async with asyncio.timeout(waiter.seconds + GRACE):
            return await asyncio.wrap_future(waiter.promise)
    return None


async def _answer_outside(waiter: Waiter) -> Answer:
    """Return the answer to a request that Django is done with."""
    answer = await _awaited(waiter)
    if answer is None:
        async with ThreadSensitiveContext():
            answer = await sync_to_async(_sparing(_look))(waiter)
    return answer


def _sparing(work: Callable[..., T]) -> Callable[..., T]:
    """Return work that keeps no connection, and of which only a few parts go on at once.

    On an event loop each request has a thread, and each thread its own connections:
    as many as come at once would be opened, and be kept while they wait.
    """

    def spared(*args: Any, **kwargs: Any) -> T:
        with _reads:
            try:
                return work(*args, **kwargs)
            finally:
                _let_connections_go()

    return spared


def _let_connections_go() -> None:
    for connection in connections.all(initialized_only=True):
        # A transaction around the request is somebody else's, a test's for example.
        if not connection.in_atomic_block:
            connection.close()


def _look(waiter: Waiter) -> Answer:
    """Answer in the request's own thread, where errors are handled like any others."""
    return answers.answer_to(waiter)


def _refused(waiter: Waiter, error: Throttled) -> HttpResponseBase:
    view = waiter.view
    refusal = view.handle_exception(error)
    return view.finalize_response(view.request, refusal, **view.kwargs)
