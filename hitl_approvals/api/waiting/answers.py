"""Answers requests whose wait is over: one read for all, one look for each viewer.

Each gets what a plain GET would say at this moment: the account, its credential, its
rights and the row are read anew.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.db import Error
from rest_framework.exceptions import APIException
from rest_framework.response import Response

from hitl_approvals.api.waiting import viewers
from hitl_approvals.api.waiting.kinds import Kind
from hitl_approvals.api.waiting.waiters import Answer, Waiter
from hitl_approvals.models import AgentClient

if TYPE_CHECKING:
    from hitl_approvals.api.waiting.views import WaitingViewSet

logger = logging.getLogger("hitl_approvals")


def answer(waiters: Iterable[Waiter]) -> None:
    """Answer some waiters; those that it fails for look for themselves."""
    groups: dict[Hashable, list[Waiter]] = defaultdict(list)
    for one in waiters:
        groups[one.kind.model, one.viewer, one.place].append(one)
    parties = list(groups.values())
    try:
        read = _read(parties)
    except Error:
        logger.warning("Rows that somebody waits for could not be read.", exc_info=True)
        parties, read = [], Read({}, {})
    for party in parties:
        try:
            found = _shown(party, read)
        except Exception:
            # Whatever a site's own classes raise: the request raises it again, where
            # its error is handled like that of any other.
            logger.warning("Requests that wait could not be answered.", exc_info=True)
            continue
        for one in party:
            one.keep(found[one.pk])
    for one in chain.from_iterable(groups.values()):
        one.keep(None)  # does nothing to who has been answered


def answer_to(waiter: Waiter) -> Answer:
    """Return the answer to one waiter; what fails is the caller's."""
    party = [waiter]
    return _shown(party, _read([party]))[waiter.pk]


@dataclass(frozen=True, slots=True)
class Read:
    """What all answers need, read at once however many viewers there are."""

    rows: dict[UUID, Any]
    clients: dict[UUID, AgentClient]
    """Those that are let in."""


def _read(parties: Sequence[Sequence[Waiter]]) -> Read:
    ids: dict[Kind, set[UUID]] = defaultdict(set)
    for party in parties:
        ids[party[0].kind] |= {one.pk for one in party}
    rows = {row.pk: row for kind in ids for row in kind.read(ids[kind])}
    return Read(rows, viewers.clients_of(party[0].view.request for party in parties))


def _shown(party: Sequence[Waiter], read: Read) -> dict[UUID, Answer]:
    """Return what the rows look like to those who see the same; an error for others."""
    first, ids = party[0], {one.pk for one in party}
    view, request = first.view, first.view.request
    with first.place.taken():
        try:
            viewers.renew(request, read.clients)
        except APIException as error:
            refusal = _finished(view, view.handle_exception(error))
            return dict.fromkeys(ids, refusal)
        there = [read.rows[pk] for pk in ids if pk in read.rows]
        seen = first.kind.seen_by(request.user, there)
        values = view.get_serializer(seen, many=True).data
        found = {
            row.pk: _finished(view, Response(value))
            for row, value in zip(seen, values, strict=True)
        }
        if len(found) < len(ids):
            missing = _finished(view, view.handle_exception(first.kind.missing()))
            found |= {pk: missing for pk in ids if pk not in found}
        return found


def _finished(view: WaitingViewSet[Any], response: Response) -> Answer:
    final = view.finalize_response(view.request, response, **view.kwargs).render()
    return Answer(final.status_code, final.content, dict(final.headers))
