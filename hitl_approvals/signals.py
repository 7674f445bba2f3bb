"""Signals for the site's own code, sent after the commit of what they tell of.

We never connect any of them ourselves. The sender is the class of the row; receivers
get `interrupt_id` (None for a turn), `turn_id` (None for a remote agent's interrupt),
`event_id` and `event_type` of the audit event, `status`, `generation`, `revision` and
`decision` after it, and `at`. A receiver that raises is logged and stops nobody.
"""

from __future__ import annotations

from django.dispatch import Signal

interrupt_raised = Signal()
interrupt_decided = Signal()
interrupt_resolved = Signal()
interrupt_expired = Signal()
interrupt_cancelled = Signal()
interrupt_in_doubt = Signal()
turn_completed = Signal()
turn_failed = Signal()
turn_cancelled = Signal()
turn_needs_attention = Signal()

__all__ = [
    "interrupt_cancelled",
    "interrupt_decided",
    "interrupt_expired",
    "interrupt_in_doubt",
    "interrupt_raised",
    "interrupt_resolved",
    "turn_cancelled",
    "turn_completed",
    "turn_failed",
    "turn_needs_attention",
]
