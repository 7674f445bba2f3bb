"""Every error the package raises on purpose; a leaf that imports nothing of ours."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, ClassVar

from django.core.exceptions import ImproperlyConfigured


class HitlApprovalsError(Exception):
    """Something was refused; nothing was changed."""

    code: ClassVar[str] = "error"

    def __init__(self, detail: str = "", **context: Any) -> None:
        self.detail = detail or (type(self).__doc__ or "").strip().splitlines()[0]
        self.context = context
        super().__init__(self.detail)

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuild, (type(self), self.detail, self.context))


def _rebuild(
    cls: type[HitlApprovalsError], detail: str, context: dict[str, Any]
) -> HitlApprovalsError:
    return cls(detail, **context)


class NotFound(HitlApprovalsError):
    """There is no such thing, or you may not see it."""

    code = "not_found"


class InterruptNotFound(NotFound):
    """There is no such interrupt, or you may not see it."""

    code = "interrupt_not_found"


class TurnNotFound(NotFound):
    """There is no such turn, or you may not see it."""

    code = "turn_not_found"


class AgentNotFound(NotFound):
    """No agent of that name is registered here."""

    code = "agent_not_found"


class TransitionNotAllowed(HitlApprovalsError):
    """The row is in a state that does not allow this."""

    code = "transition_not_allowed"


class AlreadyDecided(TransitionNotAllowed):
    """Somebody decided this before you; your decision was not recorded."""

    code = "already_decided"

    @property
    def decision(self) -> str:
        return str(self.context.get("decision", ""))

    @property
    def decided_by(self) -> str:
        return str(self.context.get("decided_by", ""))

    @property
    def decided_at(self) -> datetime | None:
        value = self.context.get("decided_at")
        return value if isinstance(value, datetime) else None


class InterruptExpired(TransitionNotAllowed):
    """The time to decide this has passed."""

    code = "interrupt_expired"


class InterruptCancelled(TransitionNotAllowed):
    """This was withdrawn; there is nothing left to decide."""

    code = "interrupt_cancelled"


class AlreadyConsumed(TransitionNotAllowed):
    """Another process of the agent has this decision already; it may act on it."""

    code = "already_consumed"


class StaleReview(HitlApprovalsError):
    """The row changed after you opened it; look again before you decide."""

    code = "stale_review"

    @property
    def seen(self) -> int | None:
        return self.context.get("seen")

    @property
    def current(self) -> int | None:
        return self.context.get("current")


class ClaimedByAnother(HitlApprovalsError):
    """Somebody else holds this for now; nothing was recorded."""

    code = "claimed_by_another"

    @property
    def claimed_by(self) -> str:
        return str(self.context.get("claimed_by", ""))

    @property
    def claimed_until(self) -> datetime | None:
        value = self.context.get("claimed_until")
        return value if isinstance(value, datetime) else None


class KeyReused(HitlApprovalsError):
    """This idempotency key was already used for another request."""

    code = "key_reused"


class InterruptConflict(HitlApprovalsError):
    """The store holds another request under this id."""

    code = "interrupt_conflict"


class CheckpointConflict(HitlApprovalsError):
    """This checkpoint cannot be written: the thread has gone on without it."""

    code = "checkpoint_conflict"


class DecisionNotAllowed(HitlApprovalsError):
    """This kind of decision is not offered here."""

    code = "decision_not_allowed"


class ReviewerNotAllowed(HitlApprovalsError):
    """You may not do this."""

    code = "reviewer_not_allowed"


class ClientNotAllowed(HitlApprovalsError):
    """This agent client was revoked; it can neither ask nor act."""

    code = "client_not_allowed"


class TooManyOpen(HitlApprovalsError):
    """This agent client has as many open requests as it may have; nothing was stored."""

    code = "too_many_open"


class PayloadRejected(HitlApprovalsError):
    """The data does not fit; nothing was stored."""

    code = "payload_rejected"

    def __init__(
        self,
        detail: str = "",
        *,
        reason: str = "does_not_fit",
        errors: Sequence[dict[str, str]] = (),
        **context: Any,
    ) -> None:
        super().__init__(detail, reason=reason, errors=list(errors), **context)

    @property
    def reason(self) -> str:
        return str(self.context["reason"])

    @property
    def errors(self) -> list[dict[str, str]]:
        return list(self.context["errors"])


class SnapshotMismatch(HitlApprovalsError):
    """What is stored is not what was shown; nothing may run from it."""

    code = "snapshot_mismatch"


class ThreadBusy(HitlApprovalsError):
    """Another turn of this thread is open and the site refuses a second."""

    code = "thread_busy"


class RunError(HitlApprovalsError):
    """A run of a turn had to stop."""

    code = "run_error"


class LeaseLost(RunError):
    """Another worker has taken this turn over; this run may start nothing more."""

    code = "lease_lost"


class RunDiverged(RunError):
    """The agent asked for another call than the one on record under the same key."""

    code = "run_diverged"


class RunDeferred(RunError):
    """A call could not be started yet; the same run is to be tried again later."""

    code = "run_deferred"

    @property
    def not_before(self) -> datetime | None:
        return self.context.get("not_before")

    @property
    def wait(self) -> timedelta | None:
        """For how long, if it is no attempt: what is waited for is outside."""
        return self.context.get("wait")

    @property
    def state(self) -> Any:
        """What the adapter keeps meanwhile; only with `wait`."""
        return self.context.get("state")


class UnsafeContext(HitlApprovalsError):
    """This must not run here: inside a database transaction, or inside a turn."""

    code = "unsafe_context"


class NotInTurn(HitlApprovalsError):
    """A gated tool was called outside a turn; use `.unguarded()` to mean it."""

    code = "not_in_turn"


class HitlConfigurationError(ImproperlyConfigured):
    """The site's settings or an agent's declaration cannot work."""


class MissingExtra(ImportError):
    """An optional driver is not installed; the message names the pip line."""


class ToolFailed(Exception):
    """Raised by a tool: nothing happened, and the text is for the model."""


class ToolNotStarted(Exception):
    """Raised by a tool: the call never left this process; try again later."""


class TurnFailed(Exception):
    """Raised by an agent: this turn is over and must not be retried."""


class InterruptSuspended(Exception):
    """Not an error: the run stops here until a person decides."""

    def __init__(self, interrupt_id: Any = None) -> None:
        self.interrupt_id = interrupt_id
        super().__init__(interrupt_id)


class ApprovalRejected(Exception):
    """A reviewer refused the call that was made as a plain function call."""

    def __init__(self, tool_name: str, reason: str) -> None:
        self.tool_name = tool_name
        self.reason = reason
        super().__init__(tool_name, reason)
