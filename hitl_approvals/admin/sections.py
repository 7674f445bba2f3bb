"""What a site may add to the page of an interrupt, and what it must not take away."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.http import HttpRequest

from hitl_approvals.models import PendingInterrupt

if TYPE_CHECKING:
    from hitl_approvals.admin.base import DeskAdmin

SAFETY = ("arguments", "asked", "why", "conversation", "siblings", "timeline")
"""The desk's own sections: what a person has to see who decides."""


@dataclass(frozen=True, slots=True)
class Section:
    """A section of the page of an interrupt that a site adds.

    Everything in it is escaped, unless it is a `SafeString`.
    """

    title: str
    text: str = ""
    fields: Sequence[tuple[str, Any]] = ()
    """Names and values, shown as a list of pairs."""


def added(
    desk: DeskAdmin, request: HttpRequest, row: PendingInterrupt
) -> list[Section]:
    """Return the sections of a subclass, in its order.

    The desk's own are not asked for here: its templates show them whatever a subclass
    lists, and a check names the subclass that left one out.
    """
    made = []
    for name in extra_names(desk):
        section: Section | None = getattr(desk, f"section_{name}")(request, row)
        if section is not None:
            made.append(section)
    return made


def extra_names(desk: Any) -> list[str]:
    """Return the names of the sections that are a site's own."""
    listed: Sequence[str] = getattr(desk, "sections", SAFETY)
    return [name for name in listed if name not in SAFETY]
