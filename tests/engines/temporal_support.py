"""A Temporal server and workers of a test's own. Imports the SDK only when it is used."""

from __future__ import annotations

import asyncio
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.engines.forwarding import ServerHarness
from tests.engines.processes import free_port, until
from tests.servers.bound import bound

READY = 60
"""Seconds that a server may take."""
PAUSING = "frontend.WorkflowPauseEnabled=true"
"""Lets an operator pause workflows, which servers do not let them by themselves yet."""


def binary() -> str:
    """Return the server, which is its own command line too."""
    beside = Path(sys.executable).with_name("temporal")
    return str(beside if beside.exists() else shutil.which("temporal"))


class Server:
    """The dev server, on the loopback, with a file that outlives its process."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self.address = f"127.0.0.1:{self.port}"
        self.file = folder / "temporal.db"
        self.log = folder / "temporal.log"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                bound(
                    [
                        *(binary(), "server", "start-dev", "--headless"),
                        *("--ip", "127.0.0.1", "--port", str(self.port)),
                        *("--db-filename", str(self.file), "--log-level", "error"),
                        *("--dynamic-config-value", PAUSING),
                    ]
                ),
                stdout=log,
                stderr=log,
            )
        until(self.answers, seconds=READY)

    def answers(self) -> bool:
        from temporalio.client import Client

        async def ask() -> bool:
            with suppress(RuntimeError):
                client = await Client.connect(self.address)
                return bool(await client.service_client.check_health())
            return False

        return asyncio.run(ask())

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def send(self, number: int) -> None:
        """Send a signal that does not end it."""
        assert self.process is not None
        self.process.send_signal(number)


class WorkflowWorker:
    """Performs the test's workflows in a thread, in the SDK's sandbox."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.started = threading.Event()
        self.loop = asyncio.new_event_loop()
        self.over: asyncio.Event | None = None
        self.thread = threading.Thread(target=self._run, name="temporal-worker")

    def start(self) -> None:
        self.thread.start()
        assert self.started.wait(READY)

    def stop(self) -> None:
        assert self.over is not None
        self.loop.call_soon_threadsafe(self.over.set)
        self.thread.join()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_until_complete(self._serve())
        self.loop.close()

    async def _serve(self) -> None:
        from temporalio.client import Client
        from temporalio.worker import Worker

        from tests.engines import temporal_workflows as ours

        client = await Client.connect(self.address)
        self.over = asyncio.Event()
        worker = Worker(
            client,
            task_queue=ours.QUEUE,
            workflows=ours.WORKFLOWS,
            activities=[ours.ask_model, ours.play_script],
        )
        async with worker:
            self.started.set()
            await self.over.wait()


class TemporalHarness(ServerHarness):
    """The server and a worker."""

    name = "Temporal"

    def __init__(self, folder: Path) -> None:
        from tests.engines import temporal_workflows as ours

        self.server = Server(folder)
        self.server.start()
        self.model_calls = ours.model_calls
        self.start_worker()

    def close(self) -> None:
        self.stop_worker()
        self.server.stop()

    def stop_server(self) -> None:
        self.server.stop()

    def start_server(self) -> None:
        self.server.start()

    def freeze_server(self) -> None:
        self.server.send(signal.SIGSTOP)

    def thaw_server(self) -> None:
        self.server.send(signal.SIGCONT)

    def stop_worker(self) -> None:
        self.worker.stop()

    def start_worker(self) -> None:
        self.worker = WorkflowWorker(self.server.address)
        self.worker.start()

    def deliver(self, workflow: str, answer: Any) -> None:
        from hitl_approvals.agents.base import load
        from hitl_approvals.registry import registry
        from tests.engines.forwarding import AGENT

        engine = load(registry.agents[AGENT]).engine  # type: ignore[attr-defined]

        async def send() -> None:
            async with engine.link() as link:
                await link.deliver(workflow, answer)

        asyncio.run(send())

    def deliveries(self, workflow: str) -> int:
        async def count(client: Any) -> int:
            history = await client.get_workflow_handle(workflow).fetch_history()
            kinds = (
                "workflow_execution_update_accepted_event_attributes",
                "workflow_execution_signaled_event_attributes",
            )
            return sum(
                any(event.HasField(kind) for kind in kinds) for event in history.events
            )

        return self.ask(count)

    def cancel(self, workflow: str) -> None:
        async def cancel(client: Any) -> None:
            await client.get_workflow_handle(workflow).cancel()

        self.ask(cancel)

    def pause(self, workflow: str, *, again: bool = False) -> None:
        """Pause a workflow, or let it go on again, as an operator does."""
        verb = "unpause" if again else "pause"
        command = [binary(), "workflow", verb, "--workflow-id", workflow]
        command += ["--address", self.server.address]
        subprocess.run(command, check=True, capture_output=True)

    def reset(self, workflow: str, *, reapplied: bool) -> None:
        """Begin a workflow anew, as an operator does; with the answers it got or without."""
        from temporalio.api.common.v1 import WorkflowExecution
        from temporalio.api.enums.v1 import ResetReapplyExcludeType
        from temporalio.api.workflowservice.v1 import ResetWorkflowExecutionRequest

        async def reset(client: Any) -> None:
            history = await client.get_workflow_handle(workflow).fetch_history()
            kind = "workflow_task_completed_event_attributes"
            first = next(one for one in history.events if one.HasField(kind))
            excluded = ResetReapplyExcludeType.RESET_REAPPLY_EXCLUDE_TYPE_UPDATE
            request = ResetWorkflowExecutionRequest(
                namespace="default",
                workflow_execution=WorkflowExecution(workflow_id=workflow),
                reason="a test",
                request_id=workflow,
                workflow_task_finish_event_id=first.event_id,
                reset_reapply_exclude_types=[] if reapplied else [excluded],
            )
            await client.workflow_service.reset_workflow_execution(request)

        self.ask(reset)

    def is_over(self, workflow: str) -> bool:
        async def status(client: Any) -> str:
            described = await client.get_workflow_handle(workflow).describe()
            return str(described.status.name)

        return until(lambda: self.ask(status) != "RUNNING")

    def ask(self, question: Callable[[Any], Coroutine[Any, Any, Any]]) -> Any:
        """Ask the server by a client of the test's own."""
        from temporalio.client import Client

        async def work() -> Any:
            return await question(await Client.connect(self.server.address))

        return asyncio.run(work())
