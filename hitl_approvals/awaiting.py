"""Calls plain and async functions alike from synchronous code. Pure."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from asgiref.sync import async_to_sync


def awaited(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """Call a function and return its result, awaited if it is a coroutine.

    Inside an async agent the coroutine runs on the agent's own event loop, so clients
    that belong to that loop work; elsewhere it gets a loop of its own.
    """
    if inspect.iscoroutinefunction(function):
        return async_to_sync(function)(*args, **kwargs)
    result = function(*args, **kwargs)
    return async_to_sync(_finish)(result) if inspect.isawaitable(result) else result


async def _finish(awaitable: Any) -> Any:
    return await awaitable
