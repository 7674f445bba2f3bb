"""The closed sets of values that rows, the API and the docs share. Holds no behavior."""

from __future__ import annotations

from django.db.models import TextChoices
from django.utils.translation import gettext_lazy as _


class TurnStatus(TextChoices):
    """Where an agent turn stands."""

    READY = "ready", _("ready")
    RUNNING = "running", _("running")
    SUSPENDED = "suspended", _("suspended")
    COMPLETED = "completed", _("completed")
    NEEDS_ATTENTION = "needs_attention", _("needs attention")
    FAILED = "failed", _("failed")
    CANCELLED = "cancelled", _("cancelled")


class InterruptStatus(TextChoices):
    """Where a request for a human decision stands."""

    PENDING = "pending", _("pending")
    DECIDED = "decided", _("decided")
    RESOLVED = "resolved", _("resolved")
    CANCELLED = "cancelled", _("cancelled")
    IN_DOUBT = "in_doubt", _("in doubt")


class InterruptKind(TextChoices):
    """What a person is asked: whether a call may run, or a question."""

    TOOL_CALL = "tool_call", _("tool call")
    QUESTION = "question", _("question")


class DecisionType(TextChoices):
    """What was decided; `expire` is the clock's own."""

    APPROVE = "approve", _("approve")
    REJECT = "reject", _("reject")
    EDIT = "edit", _("edit")
    RESPOND = "respond", _("respond")
    EXPIRE = "expire", _("expire")


class StepStatus(TextChoices):
    """What the ledger knows of one recorded piece of a turn."""

    STARTED = "started", _("started")
    SUCCEEDED = "succeeded", _("succeeded")
    FAILED = "failed", _("failed")
    NOT_STARTED = "not_started", _("not started")
    UNKNOWN = "unknown", _("unknown")


class StepKind(TextChoices):
    """What a step recorded."""

    MODEL = "model", _("model reply")
    TOOL = "tool", _("tool call")
    NODE = "node", _("node")


class ToolMode(TextChoices):
    """What a `started` step means after a crash (DESIGN section 4)."""

    NONE = "none", _("reads only")
    TRANSACTIONAL = "transactional", _("transactional")
    IDEMPOTENT = "idempotent", _("idempotent")
    LOOKUP = "lookup", _("look-up")
    UNSAFE = "unsafe", _("unsafe")


class OnExpiry(TextChoices):
    """What the clock does with a request that nobody decided."""

    REJECT = "reject", _("tell the agent that nobody decided")


class OutcomeStatus(TextChoices):
    """How a resolved interrupt ended."""

    SUCCEEDED = "succeeded", _("ran")
    FAILED = "failed", _("failed, nothing happened")
    REFUSED = "refused", _("refused")
    EXPIRED = "expired", _("expired")
    ANSWERED = "answered", _("answered")
    NOT_RUN = "not_run", _("not run")
    NOT_REQUESTED_AGAIN = "not_requested_again", _("not requested again")
    WITHDRAWN = "withdrawn", _("withdrawn")
    LAPSED = "lapsed", _("not fetched in time")
    GIVEN_UP = "given_up", _("given up, fate unknown")
    SUPERSEDED = "superseded", _("replaced by another request")


class EventType(TextChoices):
    """The names of the audit events."""

    RAISED = "raised", _("raised")
    COPIED = "copied", _("copied into a fork")
    APPROVED = "approved", _("approved")
    EDITED = "edited", _("edited")
    REJECTED = "rejected", _("rejected")
    RESPONDED = "responded", _("answered")
    EXPIRED = "expired", _("expired")
    LAPSED = "lapsed", _("lapsed")
    CONSUMED = "consumed", _("fetched by the agent")
    GIVEN_BACK = "given_back", _("given back unused by the agent")
    REOPENED = "reopened", _("sent back, the world changed")
    RESOLVED = "resolved", _("resolved")
    CANCELLED = "cancelled", _("cancelled")
    IN_DOUBT = "in_doubt", _("in doubt")
    SETTLED_HAPPENED = "settled_happened", _("settled: it happened")
    SETTLED_RUN_AGAIN = "settled_run_again", _("settled: run it again")
    SETTLED_GAVE_UP = "settled_gave_up", _("settled: given up")
    LATE_RESULT = "late_result", _("late result")
    CLAIMED = "claimed", _("claimed")
    RELEASED = "released", _("released")
    ASSIGNED = "assigned", _("assigned")
    REVEALED = "revealed", _("hidden arguments revealed")
    TURN_CANCELLED = "turn_cancelled", _("turn cancelled")
    TURN_COMPLETED = "turn_completed", _("turn completed")
    TURN_FAILED = "turn_failed", _("turn failed")
    TURN_NEEDS_ATTENTION = "turn_needs_attention", _("turn needs attention")
    TURN_RETRIED = "turn_retried", _("turn retried")
    TURN_RESTARTED = "turn_restarted", _("turn restarted")
    TURN_FORKED = "turn_forked", _("turn forked")
    TURN_BEGUN_AS_FORK = "turn_begun_as_fork", _("turn begun as a fork")


ASIDE = (
    EventType.LATE_RESULT,
    EventType.CLAIMED,
    EventType.RELEASED,
    EventType.ASSIGNED,
    EventType.REVEALED,
)
"""Events of an interrupt that tell of no transition: its status stays as it was."""


class DeliveryStatus(TextChoices):
    """Where a message to the outside stands."""

    OWED = "owed", _("owed")
    DELIVERED = "delivered", _("delivered")
    GIVEN_UP = "given_up", _("given up")


class Door(TextChoices):
    """How a decision or a command came in; recorded as text."""

    PYTHON = "python", _("Python")
    ADMIN = "admin", _("admin")
    API = "api", _("API")
    SYSTEM = "system", _("system")


OPEN_TURN = (
    TurnStatus.READY,
    TurnStatus.RUNNING,
    TurnStatus.SUSPENDED,
    TurnStatus.NEEDS_ATTENTION,
)
"""A person or a worker may still move these; the others are final."""

LIVE_TURN = (TurnStatus.READY, TurnStatus.RUNNING, TurnStatus.SUSPENDED)
"""The statuses for which invariants I1 and I2 count `undecided`."""
