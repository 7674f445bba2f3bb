"""The example's refund by each framework: the same queue, and the money goes back once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from example_project.demo.fresh_database import fresh_database
from example_project.demo.stage import START_SECONDS, free_port
from tests.e2e.databases import on_postgresql
from tests.workspace import ROOT

pytestmark = pytest.mark.engines

KINDS = ("function", "langgraph", "pydantic_ai", "openai_agents")
ELSEWHERE = {"CELERY_BROKER_URL", "DATABASE_URL", "SHOP_MODEL"}
SECONDS = 300


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[dict[str, str]]:
    """Name a site of the test's own, on the database that the suite runs on."""
    url = None
    if on_postgresql():
        url = (
            os.environ.get("HITL_TEST_POSTGRES_URL")
            or "postgresql://postgres@127.0.0.1:5432/postgres"
        )
    kept = {name: value for name, value in os.environ.items() if name not in ELSEWHERE}
    with fresh_database(url) as named:
        yield {
            **kept,
            **named,
            "DJANGO_SETTINGS_MODULE": "example_project.settings",
            "EXAMPLE_DATA": str(tmp_path),
            # Nobody listens there: turns are run by the story itself.
            "REDIS_URL": "redis://127.0.0.1:1/0",
        }


def play(part: str, file: Path, environment: dict[str, str]) -> Any:
    """Play a part of the story in a process of its own."""
    subprocess.run(
        [sys.executable, "-m", "tests.engines.example_story", part, str(file)],
        cwd=ROOT,
        env=environment,
        check=True,
        timeout=SECONDS,
    )
    return json.loads(file.read_text())


@pytest.mark.parametrize("kind", KINDS)
def test_every_framework_asks_in_the_same_queue_and_refunds_once(
    kind: str, environment: dict[str, str], tmp_path: Path
) -> None:
    environment["SHOP_AGENT"] = kind
    file = tmp_path / "told.json"

    begun = play("begin", file, environment)

    assert begun["kind"] == kind
    gated = {"approve": "240.00", "edit": "100.00", "reject": "200.00"}
    assert begun["status"] == {**dict.fromkeys(gated, "suspended"), "free": "completed"}
    assert begun["rows"]["free"] == []
    for wanted, amount in gated.items():
        (row,) = begun["rows"][wanted]
        assert (row["tool"], row["args"]["amount"]) == ("issue_refund", amount)
        assert (row["queue"], row["status"]) == ("refunds", "pending")
        assert row["reason"].endswith(f"I would give {amount} EUR back.")
        assert row["pk"] in begun["queue"]
    assert begun["refunds"] == [["A-1001", "9.90"]]
    (told,) = begun["told"]
    assert told.endswith(
        "An e-mail, and a refund above the limit, wait for a reviewer."
    )
    assert "<td>Where is my parcel?</td><td>ready</td>" in begun["start"]

    ended = play("end", file, environment)

    assert set(ended["status"].values()) == {"completed"}, ended["errors"]
    assert ended["refunds"] == [
        ["A-1001", "9.90"],
        ["A-1002", "240.00"],
        ["A-1003", "80.00"],
    ]
    assert "Refund 2: 240.00 EUR for order A-1002." in ended["output"]["approve"]
    assert 'amount from "100.00" to "80.00"' in ended["output"]["edit"]
    assert "Scratches are no defect." in ended["output"]["reject"]
    assert {row["status"] for rows in ended["rows"].values() for row in rows} == {
        "resolved"
    }


def test_a_name_that_is_unknown_stops_the_site_with_a_clear_text(
    environment: dict[str, str],
) -> None:
    environment["SHOP_AGENT"] = "langraph"

    done = subprocess.run(
        [sys.executable, "manage.py", "check"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )

    assert done.returncode != 0
    assert done.stderr.strip().endswith(
        "SHOP_AGENT='langraph' is unknown. Choose one of function, langgraph, "
        "pydantic_ai, openai_agents."
    )


@pytest.mark.parametrize("kind", [one for one in KINDS if one != "function"])
def test_a_worker_that_is_killed_twice_refunds_once_all_the_same(
    kind: str, environment: dict[str, str], redis_url: str
) -> None:
    done = subprocess.run(
        [sys.executable, "manage.py", "demo", "--check"],
        cwd=ROOT,
        env={**environment, "SHOP_AGENT": kind, "REDIS_URL": redis_url},
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )

    told = done.stdout.splitlines()[-1]
    assert told.startswith("demo check: effects=1 resolved=1 kills=2"), done.stdout
    assert done.returncode == 0


NOBODY = {"SHOP_AGENT": "pydantic_ai", "SHOP_MODEL": "nobody:no-model"}
"""An agent that cannot be made, as where a provider's package is missing."""


def test_a_check_of_an_agent_that_cannot_be_made_ends_at_once_and_says_why(
    environment: dict[str, str], redis_url: str
) -> None:
    done = subprocess.run(
        [sys.executable, "manage.py", "demo", "--check"],
        cwd=ROOT,
        env={**environment, **NOBODY, "REDIS_URL": redis_url},
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )

    assert "FAILED: TurnStuckError: The turn is needs_attention: " in done.stdout
    assert "nobody:no-model" in done.stdout.partition("---")[0]
    assert "TimeoutError" not in done.stdout
    assert done.stdout.splitlines()[-1].startswith("demo check: effects=0 resolved=0")
    assert done.returncode == 1


def test_a_demo_of_an_agent_that_cannot_be_made_stays_up_and_says_why(
    environment: dict[str, str], redis_url: str
) -> None:
    told = ""
    with subprocess.Popen(
        [sys.executable, "manage.py", "demo", f"--port={free_port()}"],
        cwd=ROOT,
        env={**environment, **NOBODY, "REDIS_URL": redis_url},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as demo:
        assert demo.stdout is not None
        for line in demo.stdout:
            told += line
            if "kept for the next time" in line:
                break
        demo.terminate()
        told += demo.communicate(timeout=START_SECONDS)[0]

    assert "The support agent is of the kind pydantic_ai" in told
    assert "The agent asks for nothing: its turn is needs attention." in told
    assert "nobody:no-model" in told
    assert "The agent waits with a refund" not in told
    assert demo.returncode == 0
