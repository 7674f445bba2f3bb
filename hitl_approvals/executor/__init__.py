"""DurableExecutor: nodes that pause for a person, go on later, and can be forked."""

from __future__ import annotations

from hitl_approvals.executor.durable import DurableExecutor
from hitl_approvals.executor.outcome import ExecutionResult

__all__ = ["DurableExecutor", "ExecutionResult"]
