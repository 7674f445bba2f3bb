"""An event loop that lasts as long as the process, for the clients of models.

Every run of a turn has a loop of its own. A client keeps its connections open for the next
request, and those belong to the loop that opened them: the next run would find them dead.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine
from contextvars import copy_context
from typing import Any, TypeVar

R = TypeVar("R")

_lock = threading.Lock()
_loops: dict[int, asyncio.AbstractEventLoop] = {}
"""By process: the thread of a loop does not come along in a fork."""


async def lastingly(work: Callable[..., Coroutine[Any, Any, R]], *args: Any) -> R:
    """Await a coroutine on the lasting loop, in this one's context."""
    context = copy_context()

    async def there() -> R:
        here = asyncio.get_running_loop()
        return await here.create_task(work(*args), context=context)

    waiting = asyncio.run_coroutine_threadsafe(there(), _loop())
    # Cancelled here, it is cancelled there.
    return await asyncio.wrap_future(waiting)


def _loop() -> asyncio.AbstractEventLoop:
    with _lock:
        found = _loops.get(os.getpid())
        if found is None:
            found = _loops[os.getpid()] = asyncio.new_event_loop()
            name = "hitl-openai-agents-models"
            threading.Thread(target=found.run_forever, name=name, daemon=True).start()
        return found


def _after_fork() -> None:
    # Another thread may have held it when this process was made.
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)
