"""Answers requests whose wait is over, those of one viewer together.

Each gets what a plain GET would say at this moment: the account, its credential, its
rights and the row are read anew.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable
from typing import TYPE_CHECKING, Any
from uuid import UUID

from rest_framework.exceptions import APIException
from rest_framework.response import Response

from hitl_approvals.api.waiting import viewers
from hitl_approvals.api.waiting.kinds import Kind
from hitl_approvals.api.waiting.waiters import Answer, Waiter
from hitl_approvals.services.transactions import alias

if TYPE_CHECKING:
    from hitl_approvals.api.waiting.views import WaitingViewSet

logger = logging.getLogger("hitl_approvals")


def answer(waiters: Iterable[Waiter]) -> None:
    """Answer some waiters; those that it fails for look for themselves."""
    groups: dict[Hashable, list[Waiter]] = defaultdict(list)
    for one in waiters:
        groups[one.kind.model, one.viewer, one.place].append(one)
    for group in groups.values():
        try:
            found = shown(group[0], {one.pk for one in group})
        except Exception:
            # Whatever a site's own classes raise: the request raises it again, where
            # its error is handled like that of any other.
            logger.warning("Requests that wait could not be answered.", exc_info=True)
            found = {}
        for one in group:
            one.keep(found.get(one.pk))


def shown(waiter: Waiter, ids: Collection[UUID]) -> dict[UUID, Answer]:
    """Return what rows look like now to a waiter's viewer; an error for what is missing."""
    with waiter.place.taken():
        return _shown(waiter.view, waiter.kind, ids)


def _shown(
    view: WaitingViewSet[Any], kind: Kind, ids: Collection[UUID]
) -> dict[UUID, Answer]:
    request = view.request
    try:
        viewers.renew(request)
    except APIException as error:
        refusal = _finished(view, view.handle_exception(error))
        return dict.fromkeys(ids, refusal)
    rows = list(kind.visible_to(request.user).using(alias()).filter(pk__in=ids))
    values = view.get_serializer(rows, many=True).data
    found = {
        row.pk: _finished(view, Response(value))
        for row, value in zip(rows, values, strict=True)
    }
    if len(found) < len(ids):
        missing = _finished(view, view.handle_exception(kind.missing()))
        found |= {pk: missing for pk in ids if pk not in found}
    return found


def _finished(view: WaitingViewSet[Any], response: Response) -> Answer:
    final = view.finalize_response(view.request, response, **view.kwargs).render()
    return Answer(final.status_code, final.content, dict(final.headers))
