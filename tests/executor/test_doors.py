"""A paused graph is answered in the admin, over REST or in Python, and run by a worker."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from celery import Celery
from django.contrib.auth.models import User
from django.test import Client
from rest_framework.test import APIClient

from hitl_approvals import Respond, services
from hitl_approvals.models import AgentTurn, PendingInterrupt, TurnStep
from hitl_approvals.testing import run_owed
from hitl_approvals.testing.checkpoint_graphs import noted
from tests.admin import scenes
from tests.executor.worker_graph import executor
from tests.workspace import ROOT

pytestmark = pytest.mark.django_db(transaction=True)

SECONDS = 60


COLOR = {
    "type": "object",
    "properties": {"color": {"enum": ["red", "blue"]}},
    "required": ["color"],
}


def ask(given, ctx):
    answer = ctx.interrupt({"question": "Which one?"}, response_schema=COLOR)
    return answer["color"]


@pytest.fixture
def boss() -> User:
    return User.objects.create_superuser("boss")


def test_a_question_of_a_node_is_answered_over_rest(graph, boss):
    asking = graph(("ask", ask))
    paused = asking.run("x")
    client = APIClient()
    client.force_authenticate(boss)
    url = f"/api/interrupts/{paused.interrupt_id}/"

    body = client.get(url).json()
    assert (body["kind"], body["payload"]) == ("question", {"question": "Which one?"})
    assert body["context"]["metadata"] == {"node": "ask"}
    assert (
        client.post(
            f"{url}respond/", {"value": {"color": "green"}}, format="json"
        ).status_code
        == 400
    )
    assert (
        client.post(
            f"{url}respond/", {"value": {"color": "blue"}}, format="json"
        ).status_code
        == 200
    )

    assert run_owed() == ["completed"]
    assert asking.result(paused.thread_id).output == "blue"
    again = client.post(f"{url}respond/", {"value": {"color": "red"}}, format="json")
    assert (again.status_code, again.json()["code"]) == (409, "already_decided")


def test_a_question_of_a_node_is_answered_in_the_admin(graph, boss):
    asking = graph(("ask", ask))
    paused = asking.run("x")
    client = Client()
    client.force_login(boss)
    row = PendingInterrupt.objects.get(pk=paused.interrupt_id)

    assert "Which one?" in client.get(scenes.url(row)).content.decode()
    assert scenes.send(client, row, "respond", f0="1").status_code == 302

    assert run_owed() == ["completed"]
    assert asking.result(paused.thread_id).output == "blue"
    row.refresh_from_db()
    assert (row.decided_by_label, row.decided_via) == ("boss", "admin")


@pytest.fixture
def worker_environment(
    redis_url: str, settings: Any, celery_app: Celery
) -> dict[str, str]:
    """What a worker process needs to be one of this test's site."""
    queue = f"graphs-{uuid4().hex}"
    settings.HITL_APPROVALS = {"DISPATCHER": "celery", "CELERY_QUEUE": queue}
    celery_app.conf.broker_url = redis_url
    return {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "tests.executor.worker_settings",
        "HITL_TEST_BASE_SETTINGS": os.environ["DJANGO_SETTINGS_MODULE"],
        "HITL_TEST_QUEUE": queue,
        "HITL_TEST_BROKER": redis_url,
    }


@contextmanager
def worker(environment: dict[str, str], log: Path) -> Iterator[None]:
    """A worker process of the site, which is asked to end afterwards."""
    command = [sys.executable, "-m", "celery", "-A", "tests.executor.worker_site"]
    options = ["worker", "--pool=solo", "--loglevel=INFO"]
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*command, *options, "-Q", environment["HITL_TEST_QUEUE"]],
            cwd=ROOT,
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        try:
            yield
        except BaseException as error:
            error.add_note(f"The worker said:\n{log.read_text(errors='replace')}")
            raise
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def reach(turn: AgentTurn, status: str) -> None:
    until = time.monotonic() + SECONDS
    while (now := AgentTurn.objects.get(pk=turn.pk).status) != status:
        assert time.monotonic() < until, f"still {now}"
        time.sleep(0.05)


def answer_by_services(interrupt_id: str, boss: User) -> None:
    services.decide(interrupt_id, Respond(0), by=None, via="test")


def answer_over_rest(interrupt_id: str, boss: User) -> None:
    client = APIClient()
    client.force_authenticate(boss)
    url = f"/api/interrupts/{interrupt_id}/respond/"
    answer = client.post(url, {"value": 0}, format="json")
    assert answer.status_code == 200, answer.content


@pytest.mark.e2e
def test_a_real_worker_goes_on_with_graphs_that_were_answered(
    boss: User, worker_environment: dict[str, str], tmp_path: Path
) -> None:
    doors = [answer_by_services, answer_over_rest]
    effects = [tmp_path / door.__name__ for door in doors]
    paused = [executor.run({"effects": str(path)}) for path in effects]
    turns = [AgentTurn.objects.get(thread_id=one.thread_id) for one in paused]
    here = str(os.getpid())
    assert [noted(path) for path in effects] == [[f"prepare:{here}"]] * 2

    with worker(worker_environment, tmp_path / "worker.log"):
        for door, one in zip(doors, paused, strict=True):
            door(one.interrupt_id, boss)
        for turn in turns:
            reach(turn, "completed")

    for path, turn in zip(effects, turns, strict=True):
        result = executor.result(turn.thread_id)
        assert result.output == [0, ["ask", "prepare"]]
        prepared, finished = noted(path)
        assert prepared == f"prepare:{here}"
        assert finished.startswith("finish:")
        assert finished != f"finish:{here}"
        nodes = TurnStep.objects.filter(turn=turn, kind="node")
        assert sorted(one.name for one in nodes) == ["ask", "finish", "prepare"]
