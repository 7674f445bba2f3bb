"""Sends every model to the one database that the site has."""

from __future__ import annotations

from typing import Any


class Approvals:
    def db_for_read(self, model: Any, **hints: Any) -> str:
        return "approvals"

    def db_for_write(self, model: Any, **hints: Any) -> str:
        return "approvals"

    def allow_relation(self, one: Any, other: Any, **hints: Any) -> bool:
        return True

    def allow_migrate(self, db: str, app_label: str, **hints: Any) -> bool:
        return db == "approvals"
