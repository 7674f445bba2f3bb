"""Agent clients: who asks for decisions without a turn of ours, and how it is let in."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.core.exceptions import ValidationError
from django.db import IntegrityError
from django.db.models import QuerySet

from hitl_approvals import canonical
from hitl_approvals.exceptions import (
    ClientNotAllowed,
    NotFound,
    PayloadRejected,
    TransitionNotAllowed,
)
from hitl_approvals.models import DEFAULT_QUEUE, AgentClient, DbNow, db_now_plus
from hitl_approvals.permissions import require_administer
from hitl_approvals.services import client_limits, client_tokens, queues
from hitl_approvals.services.events import actor_of
from hitl_approvals.services.transactions import alias, run_atomic
from hitl_approvals.text import storable
from hitl_approvals.types import ActorInfo, Person

MAX_NAME = 100
"""What the column holds."""
MAX_OVERLAP = timedelta(days=90)
"""How long the token before may be let in beside the new one, at most."""

logger = logging.getLogger("hitl_approvals")


def create_client(
    name: str,
    *,
    queue: str = DEFAULT_QUEUE,
    limits: Mapping[str, Any] | None = None,
    by: Person | None,
) -> tuple[AgentClient, str]:
    """Make an agent client and its token, which is told here and never again.

    Args:
        name: What people and the audit trail call it; no other client's.
        queue: Slug of the queue that its requests go to.
        limits: What differs from the site's `CLIENT_LIMITS`.
        by: Who makes it; None is trusted code.

    Returns:
        The client, and the token in plain text.

    Raises:
        ReviewerNotAllowed: The right to administer is missing.
        PayloadRejected: The name is taken, blank, too long or cannot be stored; there is
            no such queue; or the limits do not fit.
    """
    require_administer(by)
    _require_name(name)
    _require_queue(queue)
    token = client_tokens.new_token()
    client = AgentClient(
        name=name,
        queue_id=queue,
        limits=client_limits.checked({} if limits is None else limits),
        token_digest=client_tokens.digest_of(token),
        token_hint=token[: client_tokens.HINT],
    )
    try:
        run_atomic(lambda: client.save(using=alias(), force_insert=True))
    except IntegrityError as error:
        raise _refused("name", "There is an agent client of that name.") from error
    _log("made", client, by)
    return read(client.pk), token


def rotate_token(
    client_id: UUID | str,
    *,
    by: Person | None,
    keep_old_for: timedelta | None = None,
    seen: str | None = None,
) -> tuple[AgentClient, str]:
    """Give a client a new token; every older one is refused at once, or after a while.

    A client that was made without a token gets its first one. One that was revoked
    stays so: make another one.

    Args:
        client_id: The client.
        by: Who changes it; None is trusted code.
        keep_old_for: How long the token that it had is let in as well, so that its
            processes can be told the new one; None ends it at once.
        seen: The `token_hint` that was shown to whoever asks. Where it is another one
            by now nothing is changed, so a form that is sent twice makes one token.

    Returns:
        The client, and the token in plain text.

    Raises:
        ReviewerNotAllowed: The right to administer is missing.
        NotFound: There is no such client.
        ClientNotAllowed: It was revoked.
        PayloadRejected: `keep_old_for` is nothing, or too long.
        TransitionNotAllowed: It was given a new token since it was seen.
    """
    require_administer(by)
    if keep_old_for is not None and not timedelta(0) < keep_old_for <= MAX_OVERLAP:
        raise _refused("keep_old_for", f"Give at most {MAX_OVERLAP.days} days.")
    client = _read_active(client_id)
    if seen is not None and seen != client.token_hint:
        raise _too_late()
    token = client_tokens.new_token()
    keeps = keep_old_for is not None and client_tokens.is_digest(client.token_digest)
    changed = _change(
        client,
        token_digest=client_tokens.digest_of(token),
        token_hint=token[: client_tokens.HINT],
        previous_digest=client.token_digest if keeps else None,
        previous_until=db_now_plus(keep_old_for) if keeps and keep_old_for else None,
    )
    if not changed:
        # Whoever was first has been shown a token, which must go on being let in.
        _read_active(client_id)
        raise _too_late()
    _log("given a new token", client, by)
    return read(client.pk), token


def revoke_client(client_id: UUID | str, *, by: Person | None) -> AgentClient:
    """Refuse a client from now on, for good; what it asked for stays where it is.

    Its tokens are forgotten. To revoke it again changes nothing.

    Raises:
        ReviewerNotAllowed: The right to administer is missing.
        NotFound: There is no such client.
    """
    require_administer(by)
    client = read(client_id)
    changed = _clients().filter(pk=client.pk, revoked_at__isnull=True)
    if changed.update(
        revoked_at=DbNow(),
        token_digest=client_tokens.no_digest(),
        previous_digest=None,
        previous_until=None,
    ):
        _log("revoked", client, by)
    return read(client.pk)


def change_client(
    client_id: UUID | str,
    *,
    by: Person | None,
    queue: str | None = None,
    limits: Mapping[str, Any] | None = None,
) -> AgentClient:
    """Change the queue or the limits of a client; requests that it made stay as they are.

    Args:
        client_id: The client.
        by: Who changes it; None is trusted code.
        queue: Slug of the queue that its requests go to; None leaves it.
        limits: All that differs from the site's `CLIENT_LIMITS`; None leaves them.

    Raises:
        ReviewerNotAllowed: The right to administer is missing.
        NotFound: There is no such client.
        ClientNotAllowed: It was revoked.
        PayloadRejected: There is no such queue, or the limits do not fit.
    """
    require_administer(by)
    client = _read_active(client_id)
    changes: dict[str, Any] = {}
    if queue is not None:
        _require_queue(queue)
        changes["queue"] = queue
    if limits is not None:
        changes["limits"] = client_limits.checked(limits)
    if not changes:
        return client
    if not _clients().filter(pk=client.pk, revoked_at__isnull=True).update(**changes):
        raise ClientNotAllowed
    _log(f"changed ({', '.join(changes)})", client, by)
    return read(client.pk)


def ensure_client(name: str) -> AgentClient:
    """Return the client of that name; made without a usable token if it is missing.

    Raises:
        PayloadRejected: The name is blank, too long, or cannot be stored.
    """
    _require_name(name)
    if (found := find(name)) is not None:
        return found
    queues.ensure_default()
    made, _new = _clients().get_or_create(
        name=name, defaults={"token_digest": client_tokens.no_digest()}
    )
    return made


def every() -> QuerySet[AgentClient]:
    """Return all clients by name, revoked ones too."""
    return _clients().order_by("name")


def find(name: str) -> AgentClient | None:
    """Return the client of that name, if it was ever needed."""
    return _clients().filter(name=name).first() if storable(name) else None


def read(client_id: UUID | str) -> AgentClient:
    """Return a client, revoked or not.

    Raises:
        NotFound: There is none.
    """
    try:
        found = _clients().filter(pk=client_id).first()
    except (ValidationError, ValueError):
        found = None
    if found is None:
        raise NotFound("There is no such agent client.")
    return found


def active(client: AgentClient) -> Any:
    """Return a client as it stands now, with the database's time as `db_now`.

    Raises:
        ClientNotAllowed: It was revoked, or is not there any more.
    """
    known = _clients().annotate(db_now=DbNow())
    found = known.filter(pk=client.pk, revoked_at__isnull=True).first()
    if found is None:
        raise ClientNotAllowed
    return found


def actor_of_client(client: AgentClient, via: str) -> ActorInfo:
    """Return the text that an event keeps of a client; no user is called like that."""
    return ActorInfo(
        user_id=f"client:{client.pk}", label=f"client {client.name}", via=via
    )


def _clients() -> QuerySet[AgentClient]:
    return AgentClient.objects.using(alias())


def _read_active(client_id: UUID | str) -> AgentClient:
    client = read(client_id)
    if client.revoked_at is not None:
        raise ClientNotAllowed(
            "This agent client was revoked, for good; make another one."
        )
    return client


def _change(client: AgentClient, **changes: Any) -> bool:
    """Write to a client that has the token that it had when it was read."""
    same = _clients().filter(
        pk=client.pk, token_digest=client.token_digest, revoked_at__isnull=True
    )
    return bool(same.update(**changes))


def _too_late() -> TransitionNotAllowed:
    return TransitionNotAllowed(
        "This agent client was given a new token just now; another one was not made."
    )


def _require_name(name: str) -> None:
    if not (name.strip() and len(name) <= MAX_NAME and storable(name)):
        raise _refused(
            "name",
            f"A client's name has 1 to {MAX_NAME} characters, none of them NUL or half "
            "of a pair of surrogates.",
        )


def _require_queue(slug: str) -> None:
    if not storable(slug) or slug not in queues.known([slug]):
        raise _refused("queue", "There is no such queue.")


def _refused(loc: str, message: str) -> PayloadRejected:
    return PayloadRejected(message, errors=[{"loc": loc, "message": message}])


def _log(what: str, client: AgentClient, by: Person | None) -> None:
    name, who = (canonical.printable(x) for x in (client.name, actor_of(by, "").label))
    logger.info("agent client %s (%s) was %s by %s", name, client.pk, what, who)
