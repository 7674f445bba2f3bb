"""Agent clients: who asks for decisions without a turn of ours."""

from __future__ import annotations

import secrets
from typing import Any

from hitl_approvals.exceptions import ClientNotAllowed, PayloadRejected
from hitl_approvals.models import AgentClient, DbNow
from hitl_approvals.services import queues
from hitl_approvals.services.transactions import alias
from hitl_approvals.text import storable
from hitl_approvals.types import ActorInfo

MAX_NAME = 100
"""What the column holds."""


def ensure_client(name: str) -> AgentClient:
    """Return the client of that name; made without a usable token if it is missing.

    Raises:
        PayloadRejected: The name is blank, too long, or cannot be stored.
    """
    if not (name.strip() and len(name) <= MAX_NAME and storable(name)):
        raise PayloadRejected(
            f"A client's name has 1 to {MAX_NAME} characters, none of them NUL or half "
            "of a pair of surrogates."
        )
    if (found := find(name)) is not None:
        return found
    queues.ensure_default()
    # No token has a digest that does not begin like one.
    unusable = "!" + secrets.token_hex(31)
    made, _new = AgentClient.objects.using(alias()).get_or_create(
        name=name, defaults={"token_digest": unusable}
    )
    return made


def find(name: str) -> AgentClient | None:
    """Return the client of that name, if it was ever needed."""
    return AgentClient.objects.using(alias()).filter(name=name).first()


def active(client: AgentClient) -> Any:
    """Return a client as it stands now, with the database's time as `db_now`.

    Raises:
        ClientNotAllowed: It was revoked, or is not there any more.
    """
    known = AgentClient.objects.using(alias()).annotate(db_now=DbNow())
    found = known.filter(pk=client.pk, revoked_at__isnull=True).first()
    if found is None:
        raise ClientNotAllowed
    return found


def actor_of_client(client: AgentClient, via: str) -> ActorInfo:
    """Return the text that an event keeps of a client; no user is called like that."""
    return ActorInfo(
        user_id=f"client:{client.pk}", label=f"client {client.name}", via=via
    )
