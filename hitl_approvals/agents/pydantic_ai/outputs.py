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
    elif inspect.isfunction(output_type) or inspect.ismethod(output_type):
        yield output_type.__name__
    elif isinstance(output_type, WRAPPERS) and not hasattr(output_type, UNGATED):
        for name in ("output", "output_function", "outputs"):
            yield from foreign_functions(getattr(output_type, name, ()))
