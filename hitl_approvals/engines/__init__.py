"""Where the workflows of durable engines are found. Imports no engine.

The modules beside this one are for the code of the workflows themselves: each needs its
engine's SDK, and neither Django nor settings.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

PATIENCE = 10.0
"""Seconds that a worker waits for a workflow before it takes another turn."""


@dataclass(frozen=True, kw_only=True)
class TemporalWorkflow:
    """A workflow that a Temporal worker of yours performs."""

    workflow: str
    """Name of the workflow's type."""
    task_queue: str
    """Where the workflow's workers listen."""
    client: str | Callable[[], Awaitable[Any]] = "127.0.0.1:7233"
    """Address of the server, or an async function that returns a connected client."""
    namespace: str = "default"
    """Only with an address."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """What `Client.start_workflow` takes besides, such as `execution_timeout`."""
    signals: bool = False
    """Deliver by signal, for a server that knows no updates."""
    patience: float = PATIENCE


@dataclass(frozen=True, kw_only=True)
class DBOSWorkflow:
    """A workflow that a DBOS application of yours performs."""

    workflow: str
    """Name of the workflow, as it is registered."""
    queue: str
    """A queue that the application listens to."""
    database: str = field(repr=False)
    """URL of the system database."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """What `DBOSClient.enqueue` takes besides, such as `workflow_timeout`."""
    client_options: Mapping[str, Any] = field(default_factory=dict)
    """What `DBOSClient` takes besides, such as `serializer`."""
    patience: float = PATIENCE


@dataclass(frozen=True, kw_only=True)
class RestateWorkflow:
    """A workflow that a Restate service of yours performs."""

    workflow: str
    """Name of the workflow, as it is registered."""
    ingress: str = "http://127.0.0.1:8080"
    """Address of the server's ingress."""
    admin: str | None = None
    """Address of the server's admin API; only to cancel workflows."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Sent with every request, for instance for a server that wants a token."""
    patience: float = PATIENCE


__all__ = ["DBOSWorkflow", "RestateWorkflow", "TemporalWorkflow"]
