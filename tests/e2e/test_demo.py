"""`manage.py demo` as a person sees it: up, explained, and gone after Ctrl-C."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from http.client import HTTPConnection
from pathlib import Path

import pytest

from example_project.demo.client import Client
from example_project.demo.stage import HOST, free_port, wait_until
from tests.e2e.databases import once
from tests.node.agents import curl_is_here
from tests.workspace import ROOT

SECONDS = 30

pytestmark = [
    once,
    pytest.mark.e2e,
    pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs /proc"),
]


def processes_of(folder: Path) -> set[int]:
    """Return the ids of all processes that work for the site in this folder."""
    found = set()
    mark = f"EXAMPLE_DATA={folder}".encode()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (process / "environ").read_bytes().split(b"\0"):
                found.add(int(process.name))
        except (FileNotFoundError, PermissionError, ProcessLookupError):
            continue
    return found


def refund_from_outside(told: str, port: int) -> str:
    """Start the agent as the demo says it, approve as rita, and return what it says."""
    lines = re.findall(r"^ +(export .+|sh .+)$", told, re.MULTILINE)
    token = re.search(r"Token (\w+)'", told)
    assert token is not None
    rita = Client(port, token[1])
    with subprocess.Popen(
        ["sh", "-c", "\n".join(lines)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as agent:
        try:
            wait_until(lambda: bool(rita.of_tool("refund")), seconds=SECONDS)
            rita.approve(rita.of_tool("refund")[0]["id"])
            return agent.communicate(timeout=SECONDS)[0]
        finally:
            agent.kill()


def test_demo_explains_itself_and_leaves_nothing_behind(
    environment: dict[str, str], tmp_path: Path
) -> None:
    port = free_port()
    # The broker is one of the things that must not stay.
    del environment["REDIS_URL"]
    environment["EXAMPLE_DATA"] = str(tmp_path)

    with subprocess.Popen(
        [sys.executable, "manage.py", "demo", f"--port={port}"],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as demo:
        try:
            assert demo.stdout is not None
            told = ""
            for line in demo.stdout:
                told += line
                if "kept for the next time" in line:
                    break
            # Else it has ended by itself, and what it said is why.
            assert "kept for the next time" in told, told
            page = HTTPConnection(HOST, port, timeout=SECONDS)
            page.request("GET", "/")
            status = page.getresponse().status
            page.close()
            refunded = refund_from_outside(told, port) if curl_is_here() else ""
            running = processes_of(tmp_path)
            # As the terminal does it: to everybody in the foreground.
            os.killpg(demo.pid, signal.SIGINT)
            told += demo.communicate(timeout=SECONDS)[0]
        finally:
            demo.terminate()

    assert status == 200
    assert "succeeded" in refunded or not curl_is_here()
    assert re.search(r"rita +rita", told), told
    assert len(running) >= 5, running  # demo, broker, web, worker and its pool
    assert demo.returncode == 0, told
    assert "stopped" in told
    assert processes_of(tmp_path) == set()
