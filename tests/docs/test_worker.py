"""The README's Celery app, with a real worker and a real broker."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.docs.blocks import README, Block, blocks_of
from tests.docs.project import Site

_STOP_SECONDS = 20

BY_THE_WORKER = """
import time
from hitl_approvals import Approve, services
from hitl_approvals.models import AgentTurn, PendingInterrupt


def reach(status):
    until = time.monotonic() + 40
    while (now := AgentTurn.objects.get(pk=turn.pk).status) != status:
        assert time.monotonic() < until, f"still {now}"
        time.sleep(0.05)


reach("suspended")
services.decide(PendingInterrupt.objects.get().pk, Approve(), by=None, via="test")
reach("completed")
assert Order.objects.get(pk=7).refunded == 120
"""


@pytest.mark.e2e
def test_worker_that_is_started_as_the_readme_says_runs_the_refund(
    readme_site: Site, redis_url: str, tmp_path: Path
) -> None:
    site = readme_site.copy(tmp_path / "site", broker=redis_url)

    with _worker(site, tmp_path / "worker.log"):
        site.execute(
            [*blocks_of(README), Block("after the README", 1, "python", BY_THE_WORKER)]
        )


@contextmanager
def _worker(site: Site, log: Path) -> Iterator[None]:
    command = [sys.executable, "-m", "celery", "-A", "shop", "worker"]
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*command, "--concurrency=1", "--loglevel=WARNING"],
            cwd=site.folder,
            env=site.environment(),
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
                process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
