"""Named points at which a test may stop or kill the process. One comparison when unarmed.

Armed only through `hitl_approvals.testing.failpoints`.
"""

from __future__ import annotations

from collections.abc import Callable

POINTS = (
    "decide.before_commit",
    "decide.after_commit",
    "claim.after_commit",
    "model.after_reply",
    "gate.before_commit",
    "gate.after_commit",
    "tool.after_call",
    "record.before_commit",
    "record.after_commit",
    "transaction.after_body",
    "transaction.after_commit",
    "suspend.before_commit",
    "suspend.after_commit",
    "end.before_commit",
    "end.after_commit",
    "release.before_commit",
    "release.after_commit",
    "settle.before_commit",
    "settle.after_commit",
    "revoke.before_commit",
    "revoke.after_commit",
    "announce.before_publish",
    "request.before_commit",
    "request.after_commit",
    "aside.before_commit",
    "aside.after_commit",
    "raise.before_commit",
    "raise.after_commit",
    "remote.before_commit",
    "remote.after_commit",
)
"""Every point: in the order in which a turn may pass them, then what is beside turns."""

_hook: Callable[[str], None] | None = None


def reach(name: str) -> None:
    """Pass a point; does nothing unless a test armed it."""
    if _hook is not None:
        _hook(name)


def set_hook(hook: Callable[[str], None] | None) -> None:
    """Call `hook` with the name of each point that is passed from here on."""
    global _hook
    _hook = hook
