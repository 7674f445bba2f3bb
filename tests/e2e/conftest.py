"""The environment in which the example site runs on this run's own servers."""

from __future__ import annotations

import os

import pytest

from example_project.demo import pauses
from tests.e2e.databases import on_postgresql


@pytest.fixture
def environment(redis_url: str) -> dict[str, str]:
    """Names the database server that the suite runs on, and its broker."""
    named = {
        "DJANGO_SETTINGS_MODULE": "example_project.settings",
        "REDIS_URL": redis_url,
    }
    if on_postgresql():
        named["DATABASE_URL"] = (
            os.environ.get("HITL_TEST_POSTGRES_URL")
            or "postgresql://postgres@127.0.0.1:5432/postgres"
        )
    elsewhere = {"CELERY_BROKER_URL", "DATABASE_URL", "EXAMPLE_DATA", pauses.FILE}
    kept = {name: value for name, value in os.environ.items() if name not in elsewhere}
    return kept | named
