"""A worker of its own for one turn of the scripted agent, which may die in a tool.

python -m tests.engines.pydantic_ai_process <turn> <file of effects> [<tool to die in>]
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

MODULE = "tests.engines.pydantic_ai_process"


def start(turn_id: Any, effects: Path, die_in: str = "") -> subprocess.Popen[str]:
    """Start it; the caller waits for it."""
    return subprocess.Popen(
        [sys.executable, "-m", MODULE, str(turn_id), str(effects), die_in],
        env=dict(os.environ),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def finish(process: subprocess.Popen[str]) -> str:
    """Wait for its end and return what it printed last."""
    try:
        output, _ = process.communicate(timeout=60)
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()
    return output


def done(effects: Path) -> list[list[str]]:
    """Return the effects that such processes had: tool and idempotency key."""
    if not effects.exists():
        return []
    return [json.loads(line) for line in effects.read_text().splitlines()]


def _recorded(
    affect: Callable[[str, Any], Any], effects: Path, die_in: str
) -> Callable[[str, Any], Any]:
    from hitl_approvals import current_call

    def act(tool: str, args: dict[str, Any]) -> Any:
        underway = current_call()
        key = "" if underway is None else underway.idempotency_key
        with effects.open("a") as file:
            file.write(json.dumps([tool, key]) + "\n")
            file.flush()
            os.fsync(file.fileno())
        if tool == die_in:
            os.kill(os.getpid(), signal.SIGKILL)
        return affect(tool, args)

    return act


def main(turn_id: str, effects: str, die_in: str) -> None:
    import django

    django.setup()
    from hitl_approvals import run_turn
    from tests.engines import pydantic_ai_scripts
    from tests.support.world import world

    pydantic_ai_scripts.register()
    world.affect = _recorded(world.affect, Path(effects), die_in)  # type: ignore[method-assign]
    outcome = run_turn(turn_id)
    print(f"{outcome} after {len(world.model_calls)} replies")


if __name__ == "__main__":
    main(*sys.argv[1:4])
