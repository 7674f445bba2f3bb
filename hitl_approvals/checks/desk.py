"""Checks that whoever decides sees what has to be seen, on every admin site."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from django.apps import AppConfig, apps
from django.core.checks import CheckMessage, Error, Tags, register
from django.template import TemplateDoesNotExist, TemplateSyntaxError
from django.template.loader import get_template

if TYPE_CHECKING:
    from hitl_approvals.admin.interrupts import PendingInterruptAdmin

RIGHTS = ("has_add_permission", "has_change_permission", "has_delete_permission")
PAGES = {
    "interrupt.html": ("_arguments.html", "_context.html", "_panel.html", "_rest.html"),
    "interrupt_in_doubt.html": ("_arguments.html", "_context.html", "_rest.html"),
    "_panel.html": ("_promise.html", "_reject.html"),
    "confirm.html": ("_diff.html",),
}
"""Templates that a site may override, and what has to stand in them."""
FOLDER = "admin/hitl_approvals/"


@register(Tags.admin)
def check_desk(
    app_configs: Sequence[AppConfig] | None, **kwargs: Any
) -> list[CheckMessage]:
    """Refuse a desk that hides what a decision rests on."""
    if not apps.is_installed("django.contrib.admin"):
        return []
    from hitl_approvals.admin import PendingInterruptAdmin
    from hitl_approvals.models import PendingInterrupt

    found = [
        Error(
            f"{type(registered).__name__}, on the admin site {registered.admin_site.name!r}, {fault}.",
            hint=(
                "Subclass hitl_approvals.admin.PendingInterruptAdmin, and add to "
                "`sections` instead of replacing it: sections = "
                "(*PendingInterruptAdmin.sections, ...)."
            ),
            obj=type(registered),
            id="hitl_approvals.E009",
        )
        for registered in _registered(PendingInterrupt)
        for fault in _faults(registered, PendingInterruptAdmin)
    ]
    return [*found, *_template_errors()]


def _registered(model: Any) -> Iterator[Any]:
    from django.contrib.admin.sites import all_sites

    for site in sorted(all_sites, key=lambda one: one.name):
        if site.is_registered(model):
            yield site.get_model_admin(model)


def _faults(registered: Any, desk: type[PendingInterruptAdmin]) -> Iterator[str]:
    from hitl_approvals.admin.sections import SAFETY, extra_names

    if not isinstance(registered, desk):
        yield "is no PendingInterruptAdmin, so that nobody sees what a decision rests on"
        return
    dropped = [name for name in SAFETY if name not in registered.sections]
    if dropped:
        yield f"drops the sections {', '.join(dropped)}"
    for name in extra_names(registered):
        if not callable(getattr(registered, f"section_{name}", None)):
            yield f"lists the section {name!r} and has no method section_{name}()"
    for name in RIGHTS:
        if getattr(type(registered), name) is not getattr(desk, name):
            yield f"overrides {name}(): rows change by decisions only"
    if getattr(registered, "actions", None) is not None:
        yield "has actions: nothing is decided from the list"


def _template_errors() -> Iterator[CheckMessage]:
    for name, needed in PAGES.items():
        source = _source(f"{FOLDER}{name}")
        if not source or f'extends "{FOLDER}{name}"' in source.replace("'", '"'):
            continue
        missing = [one for one in needed if one not in source]
        if missing:
            yield Error(
                f"The site's template {FOLDER}{name} leaves out {', '.join(missing)}.",
                hint=f'Begin it with {{% extends "{FOLDER}{name}" %}} and override blocks.',
                id="hitl_approvals.E009",
            )


def _source(name: str) -> str:
    try:
        template: Any = get_template(name)
    except (TemplateDoesNotExist, TemplateSyntaxError):
        return ""  # Django names both by itself
    return str(getattr(template.template, "source", ""))
