"""Who may see and who may decide: the one answer for services, admin and API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group, Permission, PermissionsMixin
from django.core.exceptions import FieldDoesNotExist
from django.db import router
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils.translation import gettext as _

from hitl_approvals import statements
from hitl_approvals.enums import InterruptStatus
from hitl_approvals.exceptions import (
    InterruptNotFound,
    ReviewerNotAllowed,
    TurnNotFound,
)
from hitl_approvals.models import AgentTurn, PendingInterrupt, ReviewQueue
from hitl_approvals.types import AgentPrincipal

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
MOST_PEOPLE = 200


def _open_queues(user: Person) -> QuerySet[ReviewQueue]:
    """Queues without members, and those that the user belongs to."""
    return _open_to(user.pk)


def _is_open_to(user: Person, queue: str | None) -> bool:
    key = ReviewQueue.users.through._meta.get_field(_user_field())  # noqa: SLF001
    slug = ReviewQueue._meta.get_field("slug")  # noqa: SLF001
    using = router.db_for_read(ReviewQueue)
    return bool(statements.ask(using, _this_one, (key, user.pk), (slug, queue)))


def _this_one(user_pk: Any, queue: Any) -> QuerySet[ReviewQueue, str]:
    return _open_to(user_pk).filter(pk=queue).values_list("pk", flat=True)


def _open_to(user_pk: Any) -> QuerySet[ReviewQueue]:
    users = ReviewQueue.users.through.objects.filter(reviewqueue=OuterRef("pk"))
    groups = ReviewQueue.groups.through.objects.filter(reviewqueue=OuterRef("pk"))
    own_groups = _groups_of(user_pk).values("pk")
    everyone = ~Exists(users) & ~Exists(groups)
    member = Exists(users.filter(**{_user_field(): user_pk})) | Exists(
        groups.filter(group__in=own_groups)
    )
    return ReviewQueue.objects.filter(everyone | member)


def _groups_of(user_pk: Any) -> QuerySet[Any]:
    """Return a user's groups; a swapped user model may have none."""
    try:
        field: Any = get_user_model()._meta.get_field("groups")  # noqa: SLF001
    except FieldDoesNotExist:
        return Group.objects.none()
    groups = field.remote_field.model._default_manager  # noqa: SLF001
    found: QuerySet[Any] = groups.filter(**{field.related_query_name(): user_pk})
    return found


def _user_field() -> str:
    """Name of the through table's column for the (possibly swapped) user model."""
    return ReviewQueue.users.field.m2m_reverse_field_name()


def _may_see_any(user: Person) -> bool:
    return user.is_active and (
        user.has_perm(VIEW) or user.has_perm(DECIDE) or user.has_perm(ADMINISTER)
    )


def visible_to(user: Person) -> QuerySet[PendingInterrupt]:
    """Return the interrupts that a person may see; an agent client sees its own."""
    if isinstance(user, AgentPrincipal):
        return PendingInterrupt.objects.filter(client=user.client_id)
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


def queues_decided_by(user: Person) -> QuerySet[ReviewQueue]:
    """Return the queues in which a person may decide what somebody else started."""
    if not (user.is_active and user.has_perm(DECIDE)):
        return ReviewQueue.objects.none()
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
    if not _is_open_to(user, interrupt.queue_id):
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
    """Tell whether a person may see this interrupt; an agent client sees its own."""
    if isinstance(user, AgentPrincipal):
        return interrupt.client_id == user.client_id
    if not _may_see_any(user):
        return False
    if user.has_perm(ADMINISTER):
        return True
    return _is_open_to(user, interrupt.queue_id)


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


def why_not_hold(user: Person, interrupt: PendingInterrupt) -> str | None:
    """Return the sentence that names what is missing to take an open row in hand.

    Whoever could close it may hold it: settle what is in doubt, decide the rest.
    """
    if interrupt.status != InterruptStatus.IN_DOUBT:
        return why_not(user, interrupt)
    try:
        require_settle(user, interrupt)
    except (InterruptNotFound, ReviewerNotAllowed) as error:
        return error.detail
    return None


def may_settle(user: Person) -> bool:
    """Tell whether a person may settle the doubts that they may see."""
    return user.is_active and user.has_perm(SETTLE)


def may_assign(user: Person) -> bool:
    """Tell whether a person may take a row from one and give it to another."""
    return user.is_active and user.has_perm(ASSIGN)


def may_reveal(user: Person) -> bool:
    """Tell whether a person may see hidden arguments of what they may see."""
    return user.is_active and user.has_perm(REVEAL)


def require_view(user: Person | None, interrupt: PendingInterrupt) -> None:
    """Raise unless `user` may see this interrupt; None is trusted code.

    Raises:
        InterruptNotFound: The person may not see it.
    """
    if user is not None and not may_view(user, interrupt):
        raise InterruptNotFound


def require_hold(user: Person, interrupt: PendingInterrupt) -> None:
    """Raise unless `user` may take an open row in hand.

    Raises:
        InterruptNotFound: The person may not even see it.
        ReviewerNotAllowed: The person may see it only.
    """
    missing = why_not_hold(user, interrupt)
    if missing is None:
        return
    if not may_view(user, interrupt):
        raise InterruptNotFound
    raise ReviewerNotAllowed(missing)


def require_assign(user: Person | None, interrupt: PendingInterrupt) -> None:
    """Raise unless `user` may give a row to somebody; None is trusted code.

    Raises:
        InterruptNotFound: The person may not even see it.
        ReviewerNotAllowed: The person may see it only.
    """
    require_view(user, interrupt)
    if user is not None and not may_assign(user):
        raise ReviewerNotAllowed(
            _("You need the right “Can assign interrupts to people”.")
        )


def require_reveal(user: Person | None, interrupt: PendingInterrupt) -> None:
    """Raise unless `user` may see hidden arguments; None is trusted code.

    Raises:
        InterruptNotFound: The person may not even see it.
        ReviewerNotAllowed: The person may see it only.
    """
    require_view(user, interrupt)
    if user is not None and not may_reveal(user):
        raise ReviewerNotAllowed(_("You need the right “Can reveal hidden arguments”."))


def require_withdraw(user: Person | None, interrupt: PendingInterrupt) -> None:
    """Raise unless `user` may withdraw what a remote agent asks; None is trusted code.

    Raises:
        InterruptNotFound: The person may not even see it.
        ReviewerNotAllowed: The person may see it only.
    """
    require_view(user, interrupt)
    if interrupt.client_id is not None:
        require_administer(user)


def people_of(interrupt: PendingInterrupt) -> list[Person]:
    """Return, by name, those who could be given an open row; at most 200."""
    model: Any = get_user_model()
    people = model._default_manager.all()  # noqa: SLF001
    known = issubclass(model, PermissionsMixin)
    if known:
        doubt = interrupt.status == InterruptStatus.IN_DOUBT
        people = people.filter(_granted(SETTLE if doubt else DECIDE))
    queue = interrupt.queue
    if queue.users.exists() or queue.groups.exists():
        member = Q(pk__in=queue.users.values("pk"))
        if known:
            member |= Q(groups__in=queue.groups.values("pk"))
        people = people.filter(member)
    first = people.order_by(model.USERNAME_FIELD).distinct()[:MOST_PEOPLE]
    return [one for one in first if why_not_hold(one, interrupt) is None]


def _granted(right: str) -> Q:
    """Return the condition for users with a right, as Django's own backend sees it."""
    app, _dot, codename = right.partition(".")
    rights = Permission.objects.filter(content_type__app_label=app, codename=codename)
    groups = Group.objects.filter(permissions__in=rights.values("pk"))
    return (
        Q(is_superuser=True)
        | Q(user_permissions__in=rights.values("pk"))
        | Q(groups__in=groups.values("pk"))
    )


def person_named(name: str) -> Person | None:
    """Return the person who logs in by this name."""
    model: Any = get_user_model()
    people = model._default_manager.filter(**{model.USERNAME_FIELD: name})  # noqa: SLF001
    found: Person | None = people.first()
    return found


def turns_visible_to(user: Person) -> QuerySet[AgentTurn]:
    """Return the turns that a person may see: all with the right, else the own ones."""
    if not user.is_active:
        return AgentTurn.objects.none()
    if user.has_perm(VIEW_TURN):
        return AgentTurn.objects.all()
    return AgentTurn.objects.filter(requested_by=user.pk)


def may_administer(user: Person) -> bool:
    """Tell whether a person may set up clients and send what was not delivered."""
    return user.is_active and user.has_perm(ADMINISTER)


def why_not_administer() -> str:
    """Return the sentence that names the missing right to administer."""
    return _("You need the right “Can administer turns and queues”.")


def require_administer(user: Person | None) -> None:
    """Raise unless `user` may administer; None is trusted code, which no door passes.

    Raises:
        ReviewerNotAllowed: The right is missing.
    """
    if user is not None and not may_administer(user):
        raise ReviewerNotAllowed(why_not_administer())


def require_fork(user: Person | None, turn: AgentTurn) -> None:
    """Raise unless `user` may fork this turn: whoever started it may not by that alone.

    A fork is new work for reviewers, and lets what was approved once be asked again.

    Raises:
        TurnNotFound: The person may not even see it.
        ReviewerNotAllowed: The right is missing.
    """
    if user is None or may_administer(user):
        return
    if not turns_visible_to(user).filter(pk=turn.pk).exists():
        raise TurnNotFound
    raise ReviewerNotAllowed(why_not_administer())


def require_administer_turn(user: Person | None, turn: AgentTurn) -> None:
    """Raise unless `user` may cancel or retry this turn; its requester may.

    Raises:
        TurnNotFound: The person may not even see it.
        ReviewerNotAllowed: The right is missing.
    """
    if user is None:
        return
    if may_administer(user) or (user.is_active and turn.requested_by_id == user.pk):
        return
    if not turns_visible_to(user).filter(pk=turn.pk).exists():
        raise TurnNotFound
    raise ReviewerNotAllowed(why_not_administer())
