"""The audit trail in the admin: to read, to search by id, and nothing else."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from hitl_approvals.admin import values
from hitl_approvals.admin.base import DeskAdmin
from hitl_approvals.admin.paging import CappedPaginator
from hitl_approvals.admin.text import val
from hitl_approvals.models import InterruptEvent


@admin.register(InterruptEvent)
class InterruptEventAdmin(DeskAdmin):
    """Every transition, as it was recorded."""

    list_display = ("at", "type", "subject_id", "who", "via", "status", "sequence")
    list_filter = ("type",)
    ordering = ("-pk",)
    paginator = CappedPaginator
    search_fields = ("subject_id",)
    search_help_text = _("Id of an interrupt or a turn, or the exact name of a person.")
    show_facets = admin.ShowFacets.NEVER
    sortable_by = ()
    fields = (
        "type",
        "at",
        "who",
        "via",
        "on_behalf_of",
        "subject_id",
        "sequence",
        "turn_id",
        "interrupt_id",
        "status",
        "decision",
        "generation",
        "revision",
        "digest_proposed",
        "digest_shown",
        "digest_run",
        "execute_by",
        "what",
        "previous_hash",
        "hash",
    )

    @admin.display(description=_("who"))
    def who(self, event: InterruptEvent) -> SafeString:
        """The actor's name, which somebody chose."""
        return val(event.actor, one_line=True)

    @admin.display(description=_("detail"))
    def what(self, event: InterruptEvent) -> SafeString:
        """The event's detail, which may quote anybody."""
        return val(values.json_text(event.detail))

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return request.user.has_perm("hitl_approvals.view_interruptevent")

    def get_readonly_fields(
        self, request: HttpRequest, obj: Any | None = None
    ) -> tuple[str, ...]:
        return tuple(self.fields)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        text = search_term.strip()
        if not text:
            return queryset, False
        if "\x00" in text:
            return queryset.none(), False
        try:
            key = UUID(text)
        except ValueError:
            return queryset.filter(actor=text), False
        about = Q(subject_id=key) | Q(turn_id=key)
        return queryset.filter(about), False
