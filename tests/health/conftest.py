"""What the doctor's tests share with those of the services."""

from __future__ import annotations

from tests.support.fixtures import (  # noqa: F401
    make_agent,
    make_user,
    reviewer,
    world,
)
