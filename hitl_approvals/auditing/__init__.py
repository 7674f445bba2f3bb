"""Reads the audit trail back: verifies the chains, exports the events. Writes nothing."""

from __future__ import annotations

from hitl_approvals.auditing.chains import Finding, Problem
from hitl_approvals.auditing.lines import export
from hitl_approvals.auditing.verification import Checked, Verification

__all__ = ["Checked", "Finding", "Problem", "Verification", "export"]
