"""What a site's own tests may use: failpoints, and running what is owed."""

from __future__ import annotations

from hitl_approvals.testing.owed import run_owed

__all__ = ["run_owed"]
