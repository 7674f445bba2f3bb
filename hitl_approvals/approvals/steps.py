"""One text of the gate for sync and async callers: it yields what has to be called."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Generator
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

from asgiref.sync import sync_to_async

from hitl_approvals.awaiting import awaited

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Step:
    """Something that may take long: a handler, a store, a tool, an agent."""

    function: Callable[..., Any]
    args: tuple[Any, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)
    """Keyword arguments."""
    native: Callable[..., Awaitable[Any]] | None = None
    """What an async caller awaits instead."""

    def here(self) -> Any:
        """Call it; what it returns is awaited if it has to be."""
        return awaited(self.function, *self.args, **self.options)

    async def there(self) -> Any:
        """Await it; a plain function runs in a thread, where it may block."""
        if self.native is not None:
            return await self.native(*self.args, **self.options)
        function = self.function
        if not is_async(function):
            function = sync_to_async(function)
        result = await function(*self.args, **self.options)
        return await result if inspect.isawaitable(result) else result


def is_async(function: Callable[..., Any]) -> bool:
    """Whether a function, or an object that is called like one, has to be awaited."""
    called = getattr(function, "__call__", None)  # noqa: B004  its own, to look at it
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(called)


Steps: TypeAlias = Generator[Step, Any, T]
"""A procedure that yields its steps and is sent what came of them."""


def drive(steps: Steps[T]) -> T:
    """Take every step here, and return what the procedure returns."""
    try:
        step = next(steps)
        while True:
            try:
                answer = step.here()
            except BaseException as error:  # noqa: BLE001  the procedure's to judge
                step = steps.throw(error)
            else:
                step = steps.send(answer)
    except StopIteration as done:
        result: T = done.value
        return result


async def adrive(steps: Steps[T]) -> T:
    """Await every step, and return what the procedure returns."""
    try:
        step = next(steps)
        while True:
            try:
                answer = await step.there()
            except BaseException as error:  # noqa: BLE001  the procedure's to judge
                step = steps.throw(error)
            else:
                step = steps.send(answer)
    except StopIteration as done:
        result: T = done.value
        return result


def of_store(store: Any, verb: str, *args: Any, **options: Any) -> Step:
    """Return the step of a store's verb, which has an async twin named `a…`."""
    return Step(
        getattr(store, verb), args, options, native=getattr(store, f"a{verb}", None)
    )
