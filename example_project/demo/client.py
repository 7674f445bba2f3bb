"""The few calls of the REST API that the demonstration makes, with nothing but Python."""

from __future__ import annotations

import json
from http.client import HTTPConnection
from typing import Any

from example_project.demo.stage import HOST

SECONDS = 10


class AnswerError(RuntimeError):
    """The site answered with something else than success."""


class Client:
    """Somebody's way to the API."""

    def __init__(self, port: int, token: str) -> None:
        self._port = port
        self._token = token

    def start_turn(self, prompt: str, *, key: str) -> str:
        """Ask the support agent and return the turn's id."""
        body = {"agent": "support", "input": prompt}
        return str(self._call("POST", "/api/turns/", body, key=key)["id"])

    def turn(self, turn_id: str) -> dict[str, Any]:
        """Return a turn."""
        return self._call("GET", f"/api/turns/{turn_id}/")

    def pending(self, turn_id: str) -> list[dict[str, Any]]:
        """Return the interrupts of a turn that wait for a person."""
        path = f"/api/interrupts/?turn={turn_id}&status=pending"
        found: list[dict[str, Any]] = self._call("GET", path)["results"]
        return found

    def of_tool(self, name: str) -> list[dict[str, Any]]:
        """Return the calls of a tool that wait for a person."""
        path = f"/api/interrupts/?tool={name}&status=pending"
        found: list[dict[str, Any]] = self._call("GET", path)["results"]
        return found

    def approve(self, interrupt_id: str) -> None:
        """Approve an interrupt."""
        self._call("POST", f"/api/interrupts/{interrupt_id}/approve/", {})

    def _call(
        self, method: str, path: str, body: Any = None, *, key: str = ""
    ) -> dict[str, Any]:
        """Make a call and return its answer.

        Raises:
            AnswerError: It was refused or failed.
        """
        headers = {"Authorization": f"Token {self._token}"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        if key:
            headers["Idempotency-Key"] = key
        connection = HTTPConnection(HOST, self._port, timeout=SECONDS)
        try:
            content = None if body is None else json.dumps(body)
            connection.request(method, path, content, headers)
            response = connection.getresponse()
            text = response.read().decode(errors="replace")
        finally:
            connection.close()
        if response.status not in {200, 201, 202}:
            raise AnswerError(f"{method} {path}: {response.status} {text[:1000]}")
        answer: dict[str, Any] = json.loads(text)
        return answer
