"""A decision needs the database only: the broker may be away when it is made."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from example_project.demo.client import Client
from example_project.demo.fresh_database import fresh_database
from example_project.demo.stage import HOST, Stage, free_port, valkey, wait_until
from tests.workspace import ROOT

SECONDS = 5
"""What "a few seconds" means to somebody who has pressed a button."""

SET_UP = """
import json, django
django.setup()
from django.core.management import call_command
from example_project.demo.people import seed_people
from example_project.shop.seeds import seed_orders
call_command("migrate", verbosity=0)
seed_orders()
print(json.dumps(seed_people()))
"""

pytestmark = [pytest.mark.e2e, pytest.mark.chaos]


@contextmanager
def silent(port: int) -> Iterator[None]:
    """Accept connections and never answer, as a broker behind a broken network does."""
    with socket.create_server((HOST, port)):
        yield


def test_decision_without_a_broker_is_stored_at_once_and_applied_later(
    environment: dict[str, str], tmp_path: Path
) -> None:
    port = free_port()
    with fresh_database(environment.get("DATABASE_URL")) as database:
        stage = Stage(
            tmp_path,
            free_port(),
            **{**environment, **database},
            CELERY_BROKER_URL=f"redis://{HOST}:{port}/0",
        )
        tokens = json.loads(
            subprocess.run(
                [sys.executable, "-c", SET_UP],
                cwd=ROOT,
                env=stage.environment,
                check=True,
                capture_output=True,
            ).stdout
        )
        sam, rita = (Client(stage.port, tokens[name]) for name in ("sam", "rita"))

        def statuses() -> list[str]:
            return [sam.turn(turn)["status"] for turn in turns]

        with stage.start_web() as web:
            with valkey(port, tmp_path / "broker"), stage.start_worker() as worker:
                wait_until(stage.is_up, web)
                turns = [
                    sam.start_turn(f"Refund {amount} EUR for A-1003.", key=f"k{amount}")
                    for amount in (100, 200)
                ]
                wait_until(
                    lambda: statuses() == ["suspended", "suspended"], web, worker
                )
                asked = [rita.pending(turn)[0]["id"] for turn in turns]

            took = []
            started = time.monotonic()
            rita.approve(asked[0])
            took.append(time.monotonic() - started)
            with silent(port):
                started = time.monotonic()
                rita.approve(asked[1])
                took.append(time.monotonic() - started)
            decided = statuses()

            with valkey(port, tmp_path / "broker"), stage.start_worker() as worker:
                wait_until(
                    lambda: statuses() == ["completed", "completed"], web, worker
                )
                answers = [sam.turn(turn)["output"] for turn in turns]

    assert decided == ["ready", "ready"]
    assert max(took) < SECONDS, took
    assert ["100" in answers[0], "200" in answers[1]] == [True, True], answers
