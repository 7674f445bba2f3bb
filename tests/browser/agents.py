"""Found by the server's and the worker's process: what the tests' agents may call."""

from __future__ import annotations

from tests.admin import agents_for_admin  # noqa: F401  registers agents and tools
