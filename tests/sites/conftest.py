"""What the sites' suites share with the other tests."""

from __future__ import annotations

from tests.support.fixtures import world  # noqa: F401  pytest finds it by name
