"""Requests that may be sent again under one `Idempotency-Key`. Reads no row itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rest_framework.request import Request

from hitl_approvals.api.bodies import idempotency_key
from hitl_approvals.api.views import REPLAYED, person
from hitl_approvals.services.idempotency import once


def once_a_key(
    request: Request,
    verb: str,
    pk: str,
    work: Callable[[], object],
    *,
    body: Any = None,
) -> bool:
    """Do what a request asks for, unless it did so before under its key.

    Args:
        request: What came; its key belongs to whoever sent it.
        verb: What is asked for.
        pk: The row that it is about.
        work: The one call of a service.
        body: What was asked, as JSON. What a person saw of the row is no part of it.

    Returns:
        Whether it was done before; the answer shows the row as it is by then.

    Raises:
        BadRequest: The key is blank or too long.
        HitlApprovalsError: It was refused; the key may be used again.
    """
    key = idempotency_key(request)
    return once(verb, pk, work, by=person(request), key=key, body=body)


def replayed_header(replayed: bool) -> dict[str, str]:  # noqa: FBT001  its one subject
    """Return the header that says whether the request had been done before."""
    return {REPLAYED: "true" if replayed else "false"}
