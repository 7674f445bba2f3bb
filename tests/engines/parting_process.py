"""Cancels a turn, or ends what one has left, in a process that is killed on the way.

    python -m tests.engines.parting_process cancel|leave TURN

`cancel` is killed once the cancellation is committed; it knows no agent. `leave` is
killed once the engine was told, before that is on record.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import asdict
from typing import Any, NoReturn

from tests.workspace import ROOT

ENGINE = "HITL_TEST_ENGINE"
"""Environment: kind and address of the agent, as JSON."""


def killed(what: str, turn_id: Any) -> subprocess.CompletedProcess[str]:
    """Do it in a process of its own, and return how that ended."""
    from django.conf import settings
    from django.db import connections

    from hitl_approvals.registry import registry
    from tests.engines.forwarding import AGENT

    connections.close_all()
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": settings.SETTINGS_MODULE}
    if what == "leave":
        definition = registry.agents[AGENT]
        given = {"kind": definition.kind, "address": asdict(definition.target())}
        environment[ENGINE] = json.dumps(given)
    return subprocess.run(
        [sys.executable, "-m", __name__, what, str(turn_id)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
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
    from hitl_approvals import engines, run_turn
    from hitl_approvals.registry import AgentDefinition, registry
    from hitl_approvals.services import partings
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
    partings.settle = partings.put_off = die
    run_turn(turn_id)


if __name__ == "__main__":
    import django

    django.setup()
    {"cancel": cancel, "leave": leave}[sys.argv[1]](sys.argv[2])
