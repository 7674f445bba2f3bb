"""LangGraph checkpoints in the site's own database: an app of its own, usable alone.

Knows nothing of turns and approvals. The tables need no LangGraph; what does is
imported on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from hitl_approvals.exceptions import MissingExtra

if TYPE_CHECKING:
    from hitl_approvals.checkpoints.errors import (
        CheckpointTooNew,
        TypeChanged,
        TypeNotAllowed,
    )
    from hitl_approvals.checkpoints.lending import close_idle_connections
    from hitl_approvals.checkpoints.saver import DjangoCheckpointSaver
    from hitl_approvals.checkpoints.strict import StrictSerializer

_HOME = {
    "CheckpointTooNew": "errors",
    "DjangoCheckpointSaver": "saver",
    "StrictSerializer": "strict",
    "TypeChanged": "errors",
    "TypeNotAllowed": "errors",
    "close_idle_connections": "lending",
}

__all__ = [
    "CheckpointTooNew",
    "DjangoCheckpointSaver",
    "StrictSerializer",
    "TypeChanged",
    "TypeNotAllowed",
    "close_idle_connections",
]


def __getattr__(name: str) -> Any:
    try:
        home = _HOME[name]
    except KeyError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
    try:
        module = import_module(f"{__name__}.{home}")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in {"langgraph", "langchain_core"}:
            raise
        raise MissingExtra(
            f"`{name}` needs `langgraph`, which is not installed: "
            'pip install "django-hitl-approvals[langgraph]"'
        ) from error
    value = getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
