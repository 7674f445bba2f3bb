"""Describes our viewsets to drf-spectacular, in our document and in a site's own."""

from __future__ import annotations

import inspect
from copy import deepcopy
from typing import Any, cast

from drf_spectacular.openapi import AutoSchema
from drf_spectacular.plumbing import ComponentRegistry, ResolvedComponent
from drf_spectacular.settings import spectacular_settings
from rest_framework.routers import BaseRouter
from rest_framework.viewsets import GenericViewSet

from hitl_approvals.api.schema import examples, older, parameters, security
from hitl_approvals.api.schema.operations import OPERATIONS, Operation, answer_of
from hitl_approvals.api.schema.shapes import Shape, ref
from hitl_approvals.api.schema.tables import needed
from hitl_approvals.api.views import ApprovalsViewSet


class ApprovalsSchema(AutoSchema):
    """Writes an operation from our tables: our bodies are read by no serializer."""

    @property
    def served(self) -> ApprovalsViewSet[Any]:
        """Return the view: one of ours, for one action."""
        return cast("ApprovalsViewSet[Any]", self.view)

    def get_operation(
        self,
        path: str,
        path_regex: str,
        path_prefix: str,
        method: str,
        registry: ComponentRegistry,
    ) -> Shape | None:
        """Return the operation; None for what the tables do not know."""
        self.registry, self.path, self.method = registry, path, method.upper()
        known = OPERATIONS.get((self.served.basename, self.served.action))
        if known is None:
            return None
        operation = deepcopy(self._operation(known))
        old = not spectacular_settings.OAS_VERSION.startswith("3.1")
        old = old and not isinstance(registry, NewRegistry)
        register(registry, operation, old=old)
        if old:
            operation = older.shape(operation)
        if requirements := self._security():
            operation["security"] = requirements
        return operation

    def _operation(self, known: Operation) -> Shape:
        summary, _, more = _doc(self.served).partition("\n")
        operation: Shape = {
            "operationId": known.id,
            "tags": [known.tag],
            "summary": summary.rstrip("."),
        }
        if more.strip():
            operation["description"] = more.strip()
        if found := self._parameters(known):
            operation["parameters"] = found
        if known.body is not None:
            content: Shape = {"schema": ref(known.body)}
            if "body" in (shown := examples.of(known.id)):
                content["example"] = shown["body"]
            operation["requestBody"] = {
                "content": {"application/json": content},
                "required": known.needed,
            }
        operation["responses"] = {
            **{str(status): answer_of(known, status) for status in known.answers},
            **{
                str(status): ref(f"Refused{status}", "responses")
                for status in known.statuses()
            },
        }
        return operation

    def _parameters(self, known: Operation) -> list[Shape]:
        found = [ref("Id", "parameters")] if "{id}" in self.path else []
        found += [ref(name, "parameters") for name in known.parameters]
        if self.served.action == "retrieve":
            found += parameters.of_waiting(self.served)
        if self.served.action != "list":
            return found
        if filterset := getattr(self.served, "filterset_class", None):
            found += parameters.of_filters(filterset)
        if paginator := self.served.paginator:
            described = paginator.get_schema_operation_parameters(self.served)
            found += parameters.of_paging(described)
        return found

    def _security(self) -> list[dict[str, list[str]]]:
        offered = self.get_auth()
        found = security.for_caller(offered, self.served, writes=self.method == "POST")
        if any(security.CSRF in one for one in found):
            _register(self.registry, "securitySchemes", security.CSRF, security.csrf())
        return found


class NewRegistry(ComponentRegistry):
    """The registry of our own document, which is OpenAPI 3.1 whatever the site's is."""


def describe(router: BaseRouter) -> None:
    """Let drf-spectacular read our tables, in place of guessing, for what a router serves."""
    for _, viewset, _ in router.registry:
        assert issubclass(viewset, GenericViewSet)  # noqa: S101  all of ours are
        viewset.schema = ApprovalsSchema()


def register(registry: ComponentRegistry, node: Shape, *, old: bool = False) -> None:
    """Bring in the components that something refers to."""
    for kind, name, shape in needed(node):
        _register(registry, kind, name, older.shape(shape) if old else shape)


def _register(registry: ComponentRegistry, kind: str, name: str, shape: Shape) -> None:
    # A copy: whoever writes a document may change what is in it, and hooks do.
    copy = deepcopy(shape)
    component = ResolvedComponent(name=name, type=kind, schema=copy, object=name)
    registry.register_on_missing(component)


def _doc(view: Any) -> str:
    return inspect.getdoc(getattr(view, view.action)) or ""
