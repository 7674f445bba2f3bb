"""Human approval for AI agents' tool calls, on Django and Celery.

Public names resolve on first use, so this package is importable before the apps are
ready and without settings.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hitl_approvals.agents.async_turn import AsyncTurn
    from hitl_approvals.agents.graph_context import AsyncGraphContext, GraphContext
    from hitl_approvals.agents.turn import Turn
    from hitl_approvals.approvals.gate import ApprovalGate, approval
    from hitl_approvals.approvals.outcomes import Execution, ToolResult
    from hitl_approvals.decisions import Approve, Decision, Edit, Reject, Respond
    from hitl_approvals.engine import request_call, run_turn, start_turn
    from hitl_approvals.exceptions import (
        ApprovalRejected,
        HitlApprovalsError,
        InterruptConflict,
        InterruptSuspended,
        ToolFailed,
        ToolNotStarted,
        TurnFailed,
    )
    from hitl_approvals.executor import DurableExecutor, ExecutionResult
    from hitl_approvals.policies import (
        all_of,
        allowlist,
        any_of,
        denylist,
        evaluate_policy,
        gate_all_except,
        gate_only,
        predicate,
    )
    from hitl_approvals.registry import agent, tool
    from hitl_approvals.resuming import aresume, resume
    from hitl_approvals.stores.base import (
        ApprovalRequest,
        InterruptRecord,
        InterruptStore,
    )
    from hitl_approvals.stores.checkpoints import Checkpoint, CheckpointStore
    from hitl_approvals.stores.django import DjangoInterruptStore
    from hitl_approvals.stores.django_checkpoints import DjangoCheckpointStore
    from hitl_approvals.stores.memory import MemoryInterruptStore
    from hitl_approvals.stores.memory_checkpoints import MemoryCheckpointStore
    from hitl_approvals.stores.redis import RedisInterruptStore
    from hitl_approvals.types import AlreadyResolved, Applied, CallInfo
    from hitl_approvals.underway import current_call

__version__ = "0.1.0"

_HOME = {
    "agent": "registry",
    "tool": "registry",
    "Turn": "agents.turn",
    "AsyncTurn": "agents.async_turn",
    "GraphContext": "agents.graph_context",
    "AsyncGraphContext": "agents.graph_context",
    "CallInfo": "types",
    "current_call": "underway",
    "start_turn": "engine",
    "run_turn": "engine",
    "request_call": "engine",
    "resume": "resuming",
    "aresume": "resuming",
    "Applied": "types",
    "AlreadyResolved": "types",
    "approval": "approvals.gate",
    "ApprovalGate": "approvals.gate",
    "Execution": "approvals.outcomes",
    "ToolResult": "approvals.outcomes",
    "Approve": "decisions",
    "Reject": "decisions",
    "Edit": "decisions",
    "Respond": "decisions",
    "Decision": "decisions",
    "allowlist": "policies",
    "denylist": "policies",
    "gate_only": "policies",
    "gate_all_except": "policies",
    "predicate": "policies",
    "all_of": "policies",
    "any_of": "policies",
    "evaluate_policy": "policies",
    "ApprovalRequest": "stores.base",
    "InterruptRecord": "stores.base",
    "DjangoInterruptStore": "stores.django",
    "InterruptStore": "stores.base",
    "MemoryInterruptStore": "stores.memory",
    "RedisInterruptStore": "stores.redis",
    "DurableExecutor": "executor",
    "ExecutionResult": "executor",
    "Checkpoint": "stores.checkpoints",
    "CheckpointStore": "stores.checkpoints",
    "DjangoCheckpointStore": "stores.django_checkpoints",
    "MemoryCheckpointStore": "stores.memory_checkpoints",
    "HitlApprovalsError": "exceptions",
    "InterruptConflict": "exceptions",
    "InterruptSuspended": "exceptions",
    "ApprovalRejected": "exceptions",
    "ToolFailed": "exceptions",
    "ToolNotStarted": "exceptions",
    "TurnFailed": "exceptions",
}

__all__ = [
    "AlreadyResolved",
    "Applied",
    "ApprovalGate",
    "ApprovalRejected",
    "ApprovalRequest",
    "Approve",
    "AsyncGraphContext",
    "AsyncTurn",
    "CallInfo",
    "Checkpoint",
    "CheckpointStore",
    "Decision",
    "DjangoCheckpointStore",
    "DjangoInterruptStore",
    "DurableExecutor",
    "Edit",
    "Execution",
    "ExecutionResult",
    "GraphContext",
    "HitlApprovalsError",
    "InterruptConflict",
    "InterruptRecord",
    "InterruptStore",
    "InterruptSuspended",
    "MemoryCheckpointStore",
    "MemoryInterruptStore",
    "RedisInterruptStore",
    "Reject",
    "Respond",
    "ToolFailed",
    "ToolNotStarted",
    "ToolResult",
    "Turn",
    "TurnFailed",
    "agent",
    "all_of",
    "allowlist",
    "any_of",
    "approval",
    "aresume",
    "current_call",
    "denylist",
    "evaluate_policy",
    "gate_all_except",
    "gate_only",
    "predicate",
    "request_call",
    "resume",
    "run_turn",
    "start_turn",
    "tool",
]


def __getattr__(name: str) -> Any:
    try:
        home = _HOME[name]
    except KeyError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
    if home == "engine" and not _models_are_ready():
        return _later(name)
    value = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def _models_are_ready() -> bool:
    from django.apps import apps

    return apps.models_ready


def _later(name: str) -> Callable[..., Any]:
    """Stand for a function of the engine where the rows cannot be imported yet."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return getattr(import_module(f"{__name__}.engine"), name)(*args, **kwargs)

    call.__name__ = call.__qualname__ = name
    return call


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
