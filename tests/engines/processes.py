"""Ports for servers of a test's own, and waiting for them."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from contextlib import suppress


def free_port() -> int:
    """Return a port of the loopback that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def listens(port: int) -> bool:
    """Tell whether somebody listens on a port of the loopback."""
    with suppress(OSError):
        socket.create_connection(("127.0.0.1", port), 1).close()
        return True
    return False


def until(condition: Callable[[], object], *, seconds: float = 20) -> bool:
    """Wait until something is so; tell whether it came to be."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.05)
    return False
