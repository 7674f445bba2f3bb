"""What a person may see, as names of queues: read once, and used by every figure."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import QuerySet

from hitl_approvals import permissions
from hitl_approvals.models import AgentTurn, PendingInterrupt
from hitl_approvals.types import Person


@dataclass(frozen=True, slots=True)
class Scope:
    """The queues of a person.

    Names instead of a subquery: the database then knows how many there are, and walks
    the index of each.
    """

    user: Person
    queues: dict[str, str]
    """Slug and title, by slug."""
    everything: bool

    @classmethod
    def of(cls, user: Person) -> Scope:
        """Read which queues a person may see."""
        visible = permissions.queues_visible_to(user).order_by("slug")
        return cls(
            user,
            {
                slug: title or slug
                for slug, title in visible.values_list("slug", "title")
            },
            user.is_active and user.has_perm(permissions.ADMINISTER),
        )

    def interrupts(self) -> QuerySet[PendingInterrupt]:
        """Return the interrupts that the person may see."""
        if self.everything:
            return PendingInterrupt.objects.all()
        return PendingInterrupt.objects.filter(queue__in=list(self.queues))

    def turns(self) -> QuerySet[AgentTurn]:
        """Return the turns that the person may see."""
        return permissions.turns_visible_to(self.user)
