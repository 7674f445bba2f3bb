"""An agent that runs elsewhere, as it calls over REST with its token."""

from __future__ import annotations

import json
from typing import Any

from rest_framework.test import APIClient

from hitl_approvals import services
from hitl_approvals.models import AgentClient
from tests.api import scenes

CALL = {"tool_name": "refund", "args": {"order": "7", "amount": 120}}


class Agent:
    """One client of the API, by its own token."""

    def __init__(self, name: str = "billing", **options: Any) -> None:
        self.client: AgentClient
        self.client, self.token = services.create_client(name, by=None, **options)
        self.http = APIClient(enforce_csrf_checks=True)
        self.http.credentials(HTTP_AUTHORIZATION=f"Bearer {self.token}")

    def get(self, url: str, **query: Any) -> Any:
        return self.http.get(url, query)

    def post(self, url: str, key: str | None = None, **body: Any) -> Any:
        headers = {} if key is None else {"Idempotency-Key": key}
        # REST framework's own client does not send half of a pair of surrogates.
        text, kind = json.dumps(body), "application/json"
        return self.http.generic("POST", url, text, content_type=kind, headers=headers)

    def ask(self, key: str | None = "ref", **changes: Any) -> Any:
        return self.post(scenes.LIST, key, **{**CALL, **changes})

    def raised(self, key: str = "ref", **changes: Any) -> str:
        """Return the address of a new request."""
        answer = self.ask(key, **changes)
        assert answer.status_code == 201, answer.content
        return str(answer.json()["url"])

    def consume(self, url: str, key: str | None = "k") -> Any:
        return self.post(f"{url}consume/", key)

    def report(
        self, url: str, key: str | None = "k", status: str = "succeeded", **body: Any
    ) -> Any:
        return self.post(f"{url}outcome/", key, status=status, **body)

    def give_back(self, url: str, key: str | None = "k", **body: Any) -> Any:
        return self.post(f"{url}give-back/", key, **body)

    def cancel(self, url: str, **body: Any) -> Any:
        return self.post(f"{url}cancel/", **body)
