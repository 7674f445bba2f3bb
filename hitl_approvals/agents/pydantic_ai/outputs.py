"""What an agent's output may be: also a pause, and no function that nobody gates."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

from pydantic_ai import (
    DeferredToolRequests,
    NativeOutput,
    PromptedOutput,
    TextOutput,
    ToolOutput,
)
from pydantic_ai._utils import get_union_args
from pydantic_ai.output import _ChoicesActions

from hitl_approvals.agents.pydantic_ai import UNGATED

WRAPPERS = (NativeOutput, PromptedOutput, TextOutput, ToolOutput)


def with_pauses(output_type: Any) -> Any:
    """Return an output type that lets a run pause; None if it does so already."""
    types = output_type if isinstance(output_type, (list, tuple)) else [output_type]
    return None if DeferredToolRequests in types else [*types, DeferredToolRequests]


def foreign_functions(output_type: Any) -> Iterator[str]:
    """Yield the names of functions that would be called with what the model says."""
    if isinstance(output_type, (list, tuple)):
        for one in output_type:
            yield from foreign_functions(one)
    elif isinstance(output_type, WRAPPERS):
        if not hasattr(output_type, UNGATED):
            yield from _inside(output_type)
    elif union := get_union_args(output_type):
        yield from foreign_functions(union)
    elif _ChoicesActions.of(output_type):
        # Its values are called with nothing: what the model says is which.
        yield output_type.__name__
    elif inspect.isfunction(output_type) or inspect.ismethod(output_type):
        yield output_type.__name__


def _inside(wrapper: Any) -> Iterator[str]:
    if isinstance(wrapper, TextOutput):
        # Called whatever it is, also with a decorator around it that is no function.
        taker = wrapper.output_function
        yield getattr(taker, "__name__", type(taker).__name__)
    for name in ("output", "outputs"):
        yield from foreign_functions(getattr(wrapper, name, ()))
