"""Request: one call or question as it will stand on its row. Writes nothing."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import UUID

from hitl_approvals import canonical
from hitl_approvals.enums import InterruptKind


@dataclass(slots=True)
class Request:
    """One call or question as it will stand on its row."""

    key: str
    """Key of the call or question within its turn, as `Run.key` makes it."""
    kind: InterruptKind
    position: int = 0
    queue: str | None = None
    expires_in: timedelta | None = None
    fields: dict[str, Any] = field(default_factory=dict)
    """The remaining columns, by name."""
    supersedes: UUID | None = None
    """The interrupt in whose place a person wanted a new one."""


def dedupe_key(turn_id: UUID, kind: InterruptKind, key: str) -> str:
    """Return what makes the interrupt of a call or question unique among all turns."""
    return canonical.key_digest("interrupt", str(turn_id), kind.value, key)
