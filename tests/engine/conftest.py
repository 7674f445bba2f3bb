"""The shared fixtures of the core's tests."""

from __future__ import annotations

from tests.support.fixtures import (  # noqa: F401  pytest finds them by name
    make_agent,
    make_user,
    world,
)
