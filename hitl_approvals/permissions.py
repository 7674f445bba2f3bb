"""Who may see and who may decide: the one answer for services, admin and API."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib.auth.models import Group
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils.translation import gettext as _

from hitl_approvals.exceptions import (
    InterruptNotFound,
    ReviewerNotAllowed,
    TurnNotFound,
)
from hitl_approvals.models import AgentTurn, PendingInterrupt, ReviewQueue

if TYPE_CHECKING:
    from hitl_approvals.types import Person

VIEW = "hitl_approvals.view_pendinginterrupt"
DECIDE = "hitl_approvals.decide_pendinginterrupt"
SETTLE = "hitl_approvals.settle_pendinginterrupt"
ASSIGN = "hitl_approvals.assign_pendinginterrupt"
REVEAL = "hitl_approvals.reveal_pendinginterrupt"
ADMINISTER = "hitl_approvals.administer_pendinginterrupt"
VIEW_TURN = "hitl_approvals.view_agentturn"
START_TURN = "hitl_approvals.add_agentturn"


def _open_queues(user: Person) -> QuerySet[ReviewQueue]:
    """Queues without members, and those that the user belongs to."""
    users = ReviewQueue.users.through.objects.filter(reviewqueue=OuterRef("pk"))
    groups = ReviewQueue.groups.through.objects.filter(reviewqueue=OuterRef("pk"))
    own_groups = _groups_of(user).values("pk")
    everyone = ~Exists(users) & ~Exists(groups)
    member = Exists(users.filter(**{_user_field(): user.pk})) | Exists(
        groups.filter(group__in=own_groups)
    )
    return ReviewQueue.objects.filter(everyone | member)


def _groups_of(user: Person) -> QuerySet[Group]:
    """Return a user's groups; a swapped user model may name them otherwise, or have none."""
    groups = getattr(user, "groups", None)
    found: QuerySet[Group] = Group.objects.none() if groups is None else groups.all()
    return found


def _user_field() -> str:
    """Name of the through table's column for the (possibly swapped) user model."""
    return ReviewQueue.users.field.m2m_reverse_field_name()


def _may_see_any(user: Person) -> bool:
    return user.is_active and (
        user.has_perm(VIEW) or user.has_perm(DECIDE) or user.has_perm(ADMINISTER)
    )


def visible_to(user: Person) -> QuerySet[PendingInterrupt]:
    """Return the interrupts that a person may see."""
    if not _may_see_any(user):
        return PendingInterrupt.objects.none()
    if user.has_perm(ADMINISTER):
        return PendingInterrupt.objects.all()
    return PendingInterrupt.objects.filter(queue__in=_open_queues(user))


def queues_visible_to(user: Person) -> QuerySet[ReviewQueue]:
    """Return the queues whose interrupts a person may see."""
    if not _may_see_any(user):
        return ReviewQueue.objects.none()
    if user.has_perm(ADMINISTER):
        return ReviewQueue.objects.all()
    return _open_queues(user)


def why_not_see() -> str:
    """Return the sentence that names the missing right to see interrupts."""
    return _("You need the right “Can view interrupt” to see interrupts.")


def decidable_by(user: Person) -> QuerySet[PendingInterrupt]:
    """Return the interrupts that a person could decide, whatever their status."""
    if not (user.is_active and user.has_perm(DECIDE)):
        return PendingInterrupt.objects.none()
    own = Q(turn__requested_by=user.pk, queue__requester_may_decide=False)
    return PendingInterrupt.objects.filter(queue__in=_open_queues(user)).exclude(own)


def why_not(user: Person, interrupt: PendingInterrupt) -> str | None:
    """Return the sentence that names the missing right to decide, or None."""
    if not user.is_active:
        return _("This account is not active.")
    if not user.has_perm(DECIDE):
        return _("You need the right “Can decide interrupts” to decide.")
    if not _open_queues(user).filter(pk=interrupt.queue_id).exists():
        return _("Only members of the queue “%(queue)s” may decide here.") % {
            "queue": interrupt.queue_id
        }
    turn = interrupt.turn
    if (
        turn is not None
        and turn.requested_by_id == user.pk
        and not interrupt.queue.requester_may_decide
    ):
        return _("You started this turn; somebody else has to decide its calls.")
    return None


def may_decide(user: Person, interrupt: PendingInterrupt) -> bool:
    """Tell whether a person may decide this interrupt."""
    return why_not(user, interrupt) is None


def may_view(user: Person, interrupt: PendingInterrupt) -> bool:
    """Tell whether a person may see this interrupt."""
    if not _may_see_any(user):
        return False
    if user.has_perm(ADMINISTER):
        return True
    return _open_queues(user).filter(pk=interrupt.queue_id).exists()


def require_decide(user: Person | None, interrupt: PendingInterrupt) -> None:
    """Raise unless `user` may decide; None is trusted code, which no door passes.

    Raises:
        InterruptNotFound: The person may not even see it.
        ReviewerNotAllowed: The person may see it only.
    """
    if user is None:
        return
    missing = why_not(user, interrupt)
    if missing is None:
        return
    if not may_view(user, interrupt):
        raise InterruptNotFound
    raise ReviewerNotAllowed(missing)


def require_settle(user: Person | None, interrupt: PendingInterrupt) -> None:
    """Raise unless `user` may settle a doubt; None is trusted code.

    Raises:
        InterruptNotFound: The person may not even see it.
        ReviewerNotAllowed: The person may see it only.
    """
    if user is None:
        return
    if not may_view(user, interrupt):
        raise InterruptNotFound
    if not user.has_perm(SETTLE):
        raise ReviewerNotAllowed(
            _("You need the right “Can settle calls in doubt” to settle.")
        )


def turns_visible_to(user: Person) -> QuerySet[AgentTurn]:
    """Return the turns that a person may see: all with the right, else the own ones."""
    if not user.is_active:
        return AgentTurn.objects.none()
    if user.has_perm(VIEW_TURN):
        return AgentTurn.objects.all()
    return AgentTurn.objects.filter(requested_by=user.pk)


def require_fork(user: Person | None, turn: AgentTurn) -> None:
    """Raise unless `user` may fork this turn: whoever started it may not by that alone.

    A fork is new work for reviewers, and lets what was approved once be asked again.

    Raises:
        TurnNotFound: The person may not even see it.
        ReviewerNotAllowed: The right is missing.
    """
    if user is None or (user.is_active and user.has_perm(ADMINISTER)):
        return
    if not turns_visible_to(user).filter(pk=turn.pk).exists():
        raise TurnNotFound
    raise ReviewerNotAllowed(_("You need the right “Can administer turns and queues”."))


def require_administer_turn(user: Person | None, turn: AgentTurn) -> None:
    """Raise unless `user` may cancel or retry this turn; its requester may.

    Raises:
        TurnNotFound: The person may not even see it.
        ReviewerNotAllowed: The right is missing.
    """
    if user is None:
        return
    if user.is_active and (
        user.has_perm(ADMINISTER) or turn.requested_by_id == user.pk
    ):
        return
    if not turns_visible_to(user).filter(pk=turn.pk).exists():
        raise TurnNotFound
    raise ReviewerNotAllowed(_("You need the right “Can administer turns and queues”."))
