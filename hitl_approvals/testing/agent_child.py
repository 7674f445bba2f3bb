"""Runs turns in processes of their own, for the agent contract.

    python -m hitl_approvals.testing.agent_child my.tests:TestMyAgent

Needs `DJANGO_SETTINGS_MODULE`. Reads one line of JSON for each job, forks a process for
each of its runs, lets them all begin at the same moment, and answers with how they ended.
Forks, because importing a framework takes seconds: only this process does.
"""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, NoReturn

DATABASES = "HITL_CONTRACT_DATABASES"
"""Environment: the names of the test databases by alias, as JSON."""
SETTINGS = {"DISPATCHER": "worker"}
"""The site's `HITL_APPROVALS` meanwhile: a test says itself which process runs what."""
SECONDS = 60
"""What a run may take."""
POLL = 0.005
_READY = b"r"


def main(path: str) -> int:
    """Serve jobs until the other end is closed."""
    # What anybody prints goes to the log; the answers have a channel of their own.
    channel = os.dup(1)
    os.dup2(2, 1)
    contract = _prepared(path)
    for line in sys.stdin:
        ended = _play(contract, json.loads(line)["runs"])
        os.write(channel, f"{json.dumps(ended)}\n".encode())
    return 0


def found(path: str) -> Any:
    """Return the class that `module:name` names."""
    module, _, name = path.partition(":")
    at: Any = import_module(module)
    for part in name.split("."):
        at = getattr(at, part)
    return at


def _prepared(path: str) -> Any:
    import django
    from django.conf import settings

    for alias, name in json.loads(os.environ.get(DATABASES, "{}")).items():
        settings.DATABASES[alias]["NAME"] = name
    settings.HITL_APPROVALS = SETTINGS
    django.setup()
    contract = found(path)()
    for module in contract.preload:
        import_module(module)
    return contract


def _play(contract: Any, runs: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Fork a process for each run, let them begin together, and wait for all."""
    from django.db import connections

    # Two processes must not talk on one connection.
    connections.close_all()
    ready, go = os.pipe(), os.pipe()
    children: list[tuple[int, int]] = []
    for run in runs:
        told = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(go[1])
            _run(contract, run, ready=ready[1], go=go[0], told=told[1])
        os.close(told[1])
        children.append((pid, told[0]))
    os.close(ready[1])
    os.close(go[0])
    waiting = len(children)
    while waiting and (signs := os.read(ready[0], waiting)):
        waiting -= len(signs)
    os.close(ready[0])
    # Closed for all of them at once: that is the starting gun.
    os.close(go[1])
    return [_ended(pid, told) for pid, told in children]


def _ended(pid: int, told: int) -> dict[str, Any]:
    status = _waited(pid)
    outcome = os.read(told, 65_536).decode()
    os.close(told)
    killed = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else -1
    return {"pid": pid, "signal": killed, "code": code, "outcome": outcome}


def _waited(pid: int) -> int:
    deadline = time.monotonic() + SECONDS
    while True:
        found_pid, status = os.waitpid(pid, os.WNOHANG)
        if found_pid:
            return status
        if time.monotonic() > deadline:
            os.kill(pid, 6)  # so that the log shows an end that nobody planned
            return os.waitpid(pid, 0)[1]
        time.sleep(POLL)


def _run(
    contract: Any, run: Mapping[str, Any], *, ready: int, go: int, told: int
) -> NoReturn:
    code = 1
    try:
        os.environ.update(run["environment"])
        _declare(contract, run)
        os.write(ready, _READY)
        os.close(ready)
        os.read(go, 1)
        from hitl_approvals import engine

        os.write(told, engine.run_turn(run["turn"]).encode())
        code = 0
    except BaseException:  # noqa: BLE001  told in the log, and by the exit code
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def _declare(contract: Any, run: Mapping[str, Any]) -> None:
    """Register the agent as this run's release has it, and arm what is to kill it."""
    from hitl_approvals.testing import agent_contract_world as world
    from hitl_approvals.testing.failpoints import install_from_environment

    install_from_environment()
    if run["upgraded"]:
        world.upgrade()
    contract.declare(
        run["agent"],
        world.tools(run["tools"]),
        world.Script(run["script"]),
        version=run["version"],
        accepts=run["accepts"],
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
