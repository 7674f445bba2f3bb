"""Runs scripts in forks of a process that has imported what others wrote.

    python nursery.py

Most of a script's time would go into importing Django and its like anew. Nothing of
this package is imported beforehand, nor any settings: each fork does that by itself, in
the order that its script has it. Reads jobs line by line, answers with exit codes.
"""

from __future__ import annotations

import gc
import json
import os
import runpy
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

BEFOREHAND = (
    "celery",
    "django.contrib.admin",
    "django.core.management",
    "django.db.backends.sqlite3.base",
    "django.db.migrations.executor",
    "django.test",
    "jsonschema",
    "kombu.transport.memory",
    "pydantic",
    "rest_framework.serializers",
)
"""None of them asks for a setting while it is imported."""
_SECONDS = 60
"""A script that takes longer is killed."""


class Nursery:
    """The process that forks, as long as it is entered."""

    def __init__(self) -> None:
        environment = {**os.environ}
        environment.pop("DJANGO_SETTINGS_MODULE", None)
        self._process = subprocess.Popen(
            [sys.executable, __file__],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Nursery:
        return self

    def __exit__(self, *_error: object) -> None:
        self._process.communicate(timeout=_SECONDS)

    def run(
        self, *arguments: str, folder: Path, environment: Mapping[str, str]
    ) -> tuple[int, str]:
        """Run a script in a folder; return its exit code and all that it printed."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with tempfile.NamedTemporaryFile("r", encoding="utf-8") as output:
            job = {
                "arguments": arguments,
                "folder": str(folder),
                "environment": dict(environment),
                "output": output.name,
            }
            self._process.stdin.write(json.dumps(job) + "\n")
            self._process.stdin.flush()
            answer = self._process.stdout.readline()
            return int(answer), output.read()


def main() -> int:
    """Fork for every job until there are no more; each fork leaves with its own code."""
    for module in BEFOREHAND:
        import_module(module)
    gc.collect()
    gc.freeze()
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            play(**json.loads(line))
            return 0
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)
    return 0


def play(
    arguments: Sequence[str], folder: str, environment: dict[str, Any], output: str
) -> None:
    """Be `python arguments...` in that folder from here on."""
    for stream, path, mode in (
        (0, os.devnull, os.O_RDONLY),
        (1, output, os.O_WRONLY | os.O_APPEND),
        (2, output, os.O_WRONLY | os.O_APPEND),
    ):
        opened = os.open(path, mode)
        os.dup2(opened, stream)
        os.close(opened)
    signal.alarm(_SECONDS)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = list(arguments)
    script = Path(folder, arguments[0])
    sys.path[:1] = [str(script.parent), *environment["PYTHONPATH"].split(os.pathsep)]
    runpy.run_path(str(script), run_name="__main__")


if __name__ == "__main__":
    sys.exit(main())
