"""One request that waits, and the answer that it is given."""

from __future__ import annotations

import time
from collections.abc import Hashable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias
from uuid import UUID

from django.http import HttpResponse

from hitl_approvals.api.waiting.kinds import Kind, Standing, has_news
from hitl_approvals.api.waiting.viewers import Place

if TYPE_CHECKING:
    from hitl_approvals.api.waiting.views import WaitingViewSet


@dataclass(frozen=True, slots=True)
class Answer:
    """A finished answer, which all can share that asked the same as the same viewer."""

    status: int
    content: bytes
    headers: dict[str, str]

    def response(self, request_id: str) -> HttpResponse:
        """Return it as the response to one request."""
        headers = {**self.headers, "X-Request-ID": request_id}
        return HttpResponse(self.content, status=self.status, headers=headers)


Promise: TypeAlias = "Future[Answer | None]"
"""None: nobody could find out; whoever waits has to look for itself."""


@dataclass(eq=False, slots=True)
class Waiter:
    """A request that waits for news of one row."""

    view: WaitingViewSet[Any]
    """The view that read the row first; it knows how to show it to this viewer."""
    kind: Kind
    pk: UUID
    seen: Standing
    held: frozenset[str]
    seconds: float
    account: Hashable
    """Whose places it takes."""
    places: int | None
    """How many of them there are; None is no limit but that of the process."""
    viewer: Hashable
    """Whom a row is shown to."""
    place: Place
    """Where it is shown."""
    request_id: str
    promise: Promise = field(default_factory=Future)
    until: float = 0.0
    """When the wait is over, on the clock of this process."""

    def begin(self) -> None:
        """Start the clock; from now on only the watcher ends it."""
        self.until = time.monotonic() + self.seconds
        # Without this a request that is cancelled would cancel the promise, and the
        # watcher's answer would meet an error.
        self.promise.set_running_or_notify_cancel()

    def has_news(self, now: Standing) -> bool:
        """Tell whether a row that stands so has anything to tell to this reader."""
        return has_news(self.held, self.seen, now)

    def keep(self, answer: Answer | None) -> None:
        """Wake the request, once."""
        if not self.promise.done():
            self.promise.set_result(answer)
