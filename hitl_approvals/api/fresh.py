"""Reads a row for an answer where it was written. Decides nothing."""

from __future__ import annotations

from uuid import UUID

from django.core.exceptions import ValidationError

from hitl_approvals import permissions
from hitl_approvals.models import PendingInterrupt
from hitl_approvals.services.transactions import alias
from hitl_approvals.types import Person


def fresh(pk: UUID | str, by: Person) -> PendingInterrupt | None:
    """Return a row that one may see; a replica may not know the decision yet."""
    related = ("turn", "client", "assignee")
    rows = permissions.visible_to(by).using(alias()).select_related(*related)
    try:
        return rows.filter(pk=pk).first()
    except (ValidationError, ValueError):
        return None
