"""What the tests of a checkpoint store stand on: hooks, threads and processes."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from uuid import uuid4

import pytest

from hitl_approvals.exceptions import RunDiverged
from hitl_approvals.executor import DurableExecutor, ExecutionResult
from hitl_approvals.registry import registry
from hitl_approvals.stores.checkpoints import CheckpointStore

THREADS = 4
_SECONDS = 60


class CheckpointStoreHarness:
    """Override `make_store`; the rest as far as the store differs."""

    derived: bool = False
    """True for a store that shows what an engine wrote, and takes nothing itself."""
    outlives_its_process: bool = True
    """False for a store whose checkpoints end with the object that keeps them."""

    def make_store(self) -> CheckpointStore:
        """Return a store; a second one sees what the first one keeps."""
        raise NotImplementedError

    def in_another_process(self) -> str:
        """Return Python that makes the same store as `store`, in a fresh process."""
        raise NotImplementedError

    def after_a_crash(self) -> None:
        """Do what notices that a process is gone, where somebody has to."""

    def leave_thread(self) -> None:
        """Close what a thread of these tests has opened."""

    @pytest.fixture
    def store(self) -> CheckpointStore:
        return self.make_store()

    @pytest.fixture(autouse=True)
    def _no_graph_stays(self) -> Iterator[None]:
        before = dict(registry.agents)
        yield
        registry.agents.clear()
        registry.agents.update(before)

    def graph(
        self, store: CheckpointStore, *nodes: tuple[str, Any], name: str = ""
    ) -> DurableExecutor:
        """Return an executor of these nodes over the store."""
        return DurableExecutor(nodes, store=store, name=name or f"g-{uuid4().hex[:8]}")

    def forget(self, name: str) -> None:
        """Let a graph of this name be declared again, as other code would."""
        registry.agents.pop(name, None)

    def stopped(self, work: Callable[[], ExecutionResult]) -> str:
        """Return how a run says that it stopped: an error here, a status on rows."""
        if not self.derived:
            with pytest.raises(RunDiverged) as stop:
                work()
            return stop.value.detail
        result = work()
        assert result.status == "needs_attention"
        return result.error

    def python(self, program: str) -> str:
        """Run a program that finds this store as `store`; return what it printed."""
        done = self.process(program)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def process(self, program: str) -> subprocess.CompletedProcess[str]:
        """Run a program that finds this store as `store`, however it ends."""
        source = f"{self.in_another_process()}\n{program}"
        return subprocess.run(  # noqa: S603  the test's own interpreter
            [sys.executable, "-c", source],
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )

    def together(self, *verbs: Callable[[], Any]) -> list[Any]:
        """Run every verb at the same moment; a raised exception is that verb's result."""
        barrier = threading.Barrier(len(verbs))
        results: list[Any] = [None] * len(verbs)

        def run(number: int, verb: Callable[[], Any]) -> None:
            try:
                barrier.wait(timeout=_SECONDS)
                results[number] = verb()
            except Exception as error:  # noqa: BLE001  a loser's error is the result
                results[number] = error
            finally:
                self.leave_thread()

        threads = [threading.Thread(target=run, args=pair) for pair in enumerate(verbs)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=_SECONDS)
        assert not any(thread.is_alive() for thread in threads), (
            "a verb never came back"
        )
        return results


def errors(results: Sequence[Any]) -> list[Exception]:
    """Return the exceptions among the results."""
    return [one for one in results if isinstance(one, Exception)]
