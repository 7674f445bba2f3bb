"""How much an agent client may ask for: what the site says, unless the client's own say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeGuard

from django.db.models import F

from hitl_approvals import canonical
from hitl_approvals.conf import hitl_settings
from hitl_approvals.enums import InterruptStatus
from hitl_approvals.exceptions import ClientNotAllowed, PayloadRejected, TooManyOpen
from hitl_approvals.models import AgentClient, ReviewQueue
from hitl_approvals.services import rows
from hitl_approvals.services.transactions import alias
from hitl_approvals.text import storable

_OPEN = (InterruptStatus.PENDING, InterruptStatus.DECIDED)
NUMBERS = ("open", "per_minute", "waiting")
"""Limits that are a whole number above 0, or None for none."""
QUEUES = "queues"
"""Slugs of the queues that a client may name, beside its own."""
MOST = 1_000_000
MOST_QUEUES = 100


def limit_of(client: AgentClient, name: str) -> int | None:
    """Return a limit of a client, the site's `CLIENT_LIMITS` unless it has its own.

    Args:
        client: As it was read.
        name: `open`, `per_minute` or `waiting`.

    Returns:
        A number above 0; None is no limit.
    """
    # What somebody broke by hand counts for nothing.
    own: Any = _own(client).get(name, ...)
    limit: int | None = hitl_settings.client_limits[name]
    return own if own is None or is_number(own) else limit


def queues_of(client: AgentClient) -> list[str]:
    """Return the slugs of the queues that a client may raise into, its own first."""
    further = _own(client).get(QUEUES)
    own = further if isinstance(further, list) else []
    texts = [one for one in own if isinstance(one, str)]
    return list(dict.fromkeys([str(client.queue_id), *texts]))


def require_queue(client: AgentClient, queue: str | None) -> None:
    """Raise unless a client may raise into a queue; None is its own.

    Raises:
        ClientNotAllowed: It is not among `queues_of`.
    """
    if queue is None or queue in queues_of(client):
        return
    raise ClientNotAllowed(
        "This agent client may not raise into that queue; nothing was stored. It may "
        f"into: {', '.join(queues_of(client))}."
    )


def take_place(client: AgentClient) -> None:
    """Hold the client's row, and refuse one request more than it may have open.

    To be called inside a transaction, before its first other statement: requests of one
    client are written one after the other, so that no two take the same place.

    Raises:
        ClientNotAllowed: It was revoked meanwhile.
        TooManyOpen: It has as many as it may have.
    """
    row = AgentClient.objects.using(alias()).filter(pk=client.pk)
    if not row.filter(revoked_at__isnull=True).update(limits=F("limits")):
        raise ClientNotAllowed
    most = limit_of(client, "open")
    if most is None:
        return
    unfetched = rows.interrupts().filter(
        client=client.pk, status__in=_OPEN, consumed_at__isnull=True
    )
    if unfetched[:most].count() >= most:
        raise TooManyOpen(
            f"This agent client has {most} requests that are undecided or not fetched, "
            "as many as it may have; nothing was stored. Fetch or cancel some."
        )


def checked(limits: Mapping[str, Any]) -> dict[str, Any]:
    """Return limits as they are stored.

    Raises:
        PayloadRejected: A name is unknown, a value is not one, or a queue is not there.
    """
    if not isinstance(limits, Mapping):
        raise _refused("", "Must be an object.")
    for name, value in limits.items():
        if name in NUMBERS:
            if value is not None and not is_number(value):
                raise _refused(name, f"Must be an integer from 1 to {MOST}, or null.")
        elif name != QUEUES:
            known = ", ".join((*NUMBERS, QUEUES))
            shown = canonical.printable(str(name), 80)
            raise _refused(shown, f"There is no such limit; known are {known}.")
    kept = dict(limits)
    if QUEUES in limits:
        kept[QUEUES] = _queues(limits[QUEUES])
    return kept


def is_number(value: object) -> TypeGuard[int]:
    """Tell whether this can be a limit."""
    return type(value) is int and 0 < value <= MOST


def _own(client: AgentClient) -> Mapping[str, Any]:
    limits: Any = client.limits
    return limits if isinstance(limits, Mapping) else {}


def _queues(slugs: Any) -> list[str]:
    fits = isinstance(slugs, (list, tuple)) and len(slugs) <= MOST_QUEUES
    if not fits or not all(isinstance(one, str) and storable(one) for one in slugs):
        raise _refused(QUEUES, f"Must be a list of at most {MOST_QUEUES} slugs.")
    wanted = list(dict.fromkeys(slugs))
    there = ReviewQueue.objects.using(alias()).filter(pk__in=wanted)
    known = set(there.values_list("pk", flat=True))
    for one in wanted:
        if one not in known:
            raise _refused(
                QUEUES, f"There is no queue “{canonical.printable(one, 80)}”."
            )
    return wanted


def _refused(loc: str, message: str) -> PayloadRejected:
    where = f"limits.{loc}" if loc else "limits"
    return PayloadRejected(
        f"The limits do not fit, nothing was stored. {where}: {message}",
        errors=[{"loc": where, "message": message}],
    )
