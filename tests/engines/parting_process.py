"""Cancels a turn, ends what one has left, or starts a workflow, and is killed on the way.

    python -m tests.engines.parting_process cancel|leave|start TURN

`cancel` is killed once the cancellation is committed; it knows no agent. `leave` is
killed once the engine was told, before that is on record. `start` is frozen between its
look at the lease and the start of the workflow, and killed right after that.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any, NoReturn

from tests.servers.bound import bound
from tests.workspace import ROOT

ENGINE = "HITL_TEST_ENGINE"
"""Environment: kind and address of the agent, as JSON."""


def killed(what: str, turn_id: Any) -> subprocess.CompletedProcess[str]:
    """Do it in a process of its own, and return how that ended."""
    process = _begun(what, turn_id)
    output, errors = process.communicate()
    return subprocess.CompletedProcess(process.args, process.returncode, output, errors)


@contextmanager
def frozen_before_its_start(turn_id: Any) -> Iterator[None]:
    """Run a turn in a process that is frozen where it was about to start a workflow.

    At the end it goes on: it starts the workflow, and is killed.
    """
    process = _begun("start", turn_id)
    try:
        _, status = os.waitpid(process.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status), process.communicate()
        yield
        process.send_signal(signal.SIGCONT)
        _, errors = process.communicate()
        assert process.returncode == -signal.SIGKILL, errors
    finally:
        process.kill()


def _begun(what: str, turn_id: Any) -> subprocess.Popen[str]:
    from django.conf import settings
    from django.db import connections

    from hitl_approvals.registry import registry
    from tests.engines.forwarding import AGENT

    connections.close_all()
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": settings.SETTINGS_MODULE}
    if what != "cancel":
        definition = registry.agents[AGENT]
        given = {"kind": definition.kind, "address": asdict(definition.target())}
        environment[ENGINE] = json.dumps(given)
    return subprocess.Popen(
        bound([sys.executable, "-m", __name__, what, str(turn_id)]),
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def die(*args: object) -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


def cancel(turn_id: str) -> None:
    from hitl_approvals import dispatchers, services

    # Whoever cancels announces it after the commit: here nobody hears of it any more.
    dispatchers.wake = die
    services.cancel(turn_id, by=None, via="test")


def leave(turn_id: str) -> None:
    from hitl_approvals import run_turn
    from hitl_approvals.services import partings

    register()
    partings.settle = partings.put_off = die
    run_turn(turn_id)


def start(turn_id: str) -> None:
    from hitl_approvals import run_turn
    from hitl_approvals.agents.links import Link

    register()
    [link] = Link.__subclasses__()
    begin = link.start

    async def late(*args: Any) -> None:
        os.kill(os.getpid(), signal.SIGSTOP)
        await begin(*args)
        die()

    link.start = late  # type: ignore[method-assign]
    run_turn(turn_id)


def register() -> None:
    from hitl_approvals import engines
    from hitl_approvals.agents.base import load
    from hitl_approvals.registry import AgentDefinition, registry
    from tests.engines.forwarding import AGENT

    given = json.loads(os.environ[ENGINE])
    kinds = {
        "temporal": engines.TemporalWorkflow,
        "dbos": engines.DBOSWorkflow,
        "restate": engines.RestateWorkflow,
    }
    address = kinds[given["kind"]](**given["address"])
    registry.agents[AGENT] = AgentDefinition(
        name=AGENT, target=lambda: address, kind=given["kind"]
    )
    # Its module is imported now, and no other engine's.
    load(registry.agents[AGENT])


if __name__ == "__main__":
    import django

    django.setup()
    {"cancel": cancel, "leave": leave, "start": start}[sys.argv[1]](sys.argv[2])
