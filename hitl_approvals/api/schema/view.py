"""`GET /schema/`: our OpenAPI document, as it holds where it is asked for."""

from __future__ import annotations

from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from hitl_approvals.api.schema.document import document
from hitl_approvals.api.views import ApprovalsViewSet
from hitl_approvals.models import PendingInterrupt


class SchemaViewSet(ApprovalsViewSet[PendingInterrupt]):
    """The description of this API."""

    queryset = PendingInterrupt.objects.none()

    def list(self, request: Request, **kwargs: Any) -> Response:
        """Describe this API as an OpenAPI 3.1 document."""
        here = request.path.removesuffix("/").rpartition("/")[0]
        return Response(document(here))
