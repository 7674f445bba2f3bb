"""Review queues: the one thing here that a site sets up in the admin itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.contrib.admin.widgets import ManyToManyRawIdWidget
from django.contrib.auth import get_user_model
from django.http import HttpRequest

from hitl_approvals.models import ReviewQueue

if TYPE_CHECKING:
    _ModelAdmin = admin.ModelAdmin[ReviewQueue]
else:
    _ModelAdmin = admin.ModelAdmin


@admin.register(ReviewQueue)
class ReviewQueueAdmin(_ModelAdmin):
    """Who may decide what waits where."""

    list_display = ("slug", "title", "requester_may_decide")
    fields = ("slug", "title", "users", "groups", "requester_may_decide")
    filter_horizontal = ("groups",)
    show_full_result_count = False
    actions = None

    def get_readonly_fields(
        self, request: HttpRequest, obj: Any | None = None
    ) -> tuple[str, ...]:
        # The slug is the key: tools and interrupts name the queue by it.
        return () if obj is None else ("slug",)

    def get_autocomplete_fields(self, request: HttpRequest) -> tuple[str, ...]:
        """Search for users by name where the site's own user admin allows it."""
        return ("users",) if self._users_are_searchable(request) else ()

    def formfield_for_manytomany(
        self, db_field: Any, request: HttpRequest, **kwargs: Any
    ) -> Any:
        # A list of every user of a large site would not end; ids do.
        if db_field.name == "users" and not self._users_are_searchable(request):
            kwargs["widget"] = ManyToManyRawIdWidget(
                db_field.remote_field, self.admin_site
            )
        return super().formfield_for_manytomany(db_field, request, **kwargs)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        # Interrupts point at their queue for ever; empty it of members instead.
        return False

    def _users_are_searchable(self, request: HttpRequest) -> bool:
        users = get_user_model()
        if not self.admin_site.is_registered(users):
            return False
        found = self.admin_site.get_model_admin(users)
        searchable = bool(found.get_search_fields(request))
        return searchable and found.has_view_permission(request)
