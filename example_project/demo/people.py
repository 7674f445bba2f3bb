"""The people of the demonstration and what each of them may do."""

from __future__ import annotations

from dataclasses import dataclass

from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from rest_framework.authtoken.models import Token

from hitl_approvals.models import ReviewQueue

QUEUE = "refunds"


@dataclass(frozen=True)
class Person:
    """Somebody who can log in; the password is the name."""

    name: str
    about: str
    permissions: tuple[str, ...] = ()
    superuser: bool = False
    in_queue: bool = False


PEOPLE = (
    Person("admin", "everything", superuser=True),
    Person(
        "rita",
        f"decide, also in the queue “{QUEUE}”, and settle calls in doubt",
        (
            "view_pendinginterrupt",
            "decide_pendinginterrupt",
            "settle_pendinginterrupt",
            "view_agentturn",
        ),
        in_queue=True,
    ),
    Person(
        "vera",
        "look only",
        ("view_pendinginterrupt", "view_agentturn"),
        in_queue=True,
    ),
    Person(
        "sam",
        "start turns of the agent, and decide, but not what he asked for himself",
        ("add_agentturn", "view_pendinginterrupt", "decide_pendinginterrupt"),
        in_queue=True,
    ),
)


def seed_people() -> dict[str, str]:
    """Make people, rights and queue as they are declared; return everybody's API token."""
    queue, _ = ReviewQueue.objects.get_or_create(
        slug=QUEUE, defaults={"title": "Refunds"}
    )
    tokens = {}
    for person in PEOPLE:
        user, made = get_user_model().objects.get_or_create(
            username=person.name,
            defaults={"is_staff": True, "is_superuser": person.superuser},
        )
        if made:
            user.set_password(person.name)
            user.save(update_fields=["password"])
        user.user_permissions.set(
            Permission.objects.filter(
                content_type__app_label="hitl_approvals",
                codename__in=person.permissions,
            )
        )
        if person.in_queue:
            queue.users.add(user)
        tokens[person.name] = Token.objects.get_or_create(user=user)[0].key
    return tokens
