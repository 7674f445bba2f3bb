"""Writes our OpenAPI document: our endpoints alone, whatever else the site has."""

from __future__ import annotations

from copy import deepcopy
from importlib.metadata import version
from threading import Lock
from typing import Any

from drf_spectacular.generators import EndpointEnumerator, SchemaGenerator
from drf_spectacular.plumbing import normalize_result_object

from hitl_approvals.api.schema.inspector import NewRegistry, register
from hitl_approvals.api.schema.shapes import ref
from hitl_approvals.api.schema.webhooks import webhooks

OPENAPI = "3.1.1"
TITLE = "Approvals"
ABOUT = """\
Lists what waits for a human decision, records decisions, and starts and steers the turns
of agents. Refusals have one shape with a stable `code`. Times are UTC.
"""
TAGS = {
    "interrupts": "Requests for a human decision.",
    "queues": "Where interrupts wait, and who decides them.",
    "turns": "The work of this site's agents.",
    "stats": "The numbers of the desk.",
    "schema": "This document.",
    "webhooks": "What the site sends by itself to the endpoints of `WEBHOOKS`.",
}
# A viewset's schema is one object that remembers the view it was last asked about.
_one_at_a_time = Lock()


class Endpoints(EndpointEnumerator):
    """Our addresses; a site's hooks and order are for its own document."""

    def get_api_endpoints(self, patterns: Any = None, prefix: str = "") -> list[Any]:
        """Return (path, pattern, method, view) of each, in the order of the addresses."""
        found = self._get_api_endpoints(patterns, prefix)
        return sorted(found, key=lambda one: (one[0], one[2]))


class Generator(SchemaGenerator):
    """Writes the document without the site's own settings for its document."""

    endpoint_inspector_cls = Endpoints

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.registry = NewRegistry()

    def get_schema(self, request: Any = None, public: bool = True) -> dict[str, Any]:  # noqa: FBT001, FBT002  theirs
        """Return the document with addresses relative to where the API is included."""
        with _one_at_a_time:
            paths = self._paths()
        # No operation has it: it is what an address says to any other method.
        register(self.registry, ref("Refused405", "responses"))
        sent = deepcopy(webhooks())
        register(self.registry, sent)
        used = {
            tag
            for path in paths.values()
            for one in path.values()
            for tag in one["tags"]
        }
        document = {
            "openapi": OPENAPI,
            "info": {
                "title": TITLE,
                "description": ABOUT,
                "version": version("django-hitl-approvals"),
            },
            "paths": paths,
            "webhooks": sent,
            "components": self.registry.build({}),
            "tags": [
                {"name": name, "description": about}
                for name, about in TAGS.items()
                if name in {*used, "webhooks"}
            ],
        }
        found: dict[str, Any] = normalize_result_object(document)
        return found

    def _paths(self) -> dict[str, dict[str, Any]]:
        found: dict[str, dict[str, Any]] = {}
        self._initialise_endpoints()
        endpoints: Any = self.endpoints
        for path, pattern, method, callback in endpoints:
            view = self.create_view(callback, method)
            address = self.coerce_path(path, method, view)
            described = view.schema.get_operation(
                address, pattern, "^/", method, self.registry
            )
            if described is not None:
                found.setdefault(address, {}).setdefault(method.lower(), described)
        return found


def document(prefix: str) -> dict[str, Any]:
    """Return our document.

    Args:
        prefix: Where the API is included, as in `/api`.
    """
    # Here, because the addresses include the view that calls this.
    from hitl_approvals.api.urls import router

    written = Generator(patterns=router.urls).get_schema()
    return {**written, "servers": [{"url": prefix or "/"}]}
