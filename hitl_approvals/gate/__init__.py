"""The gate in front of a tool body: policy, request, decision, apply."""

from __future__ import annotations

from hitl_approvals.gate.batch import Gate

__all__ = ["Gate"]
