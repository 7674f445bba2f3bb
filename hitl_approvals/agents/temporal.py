"""The Temporal forwarder: a workflow there owns the loop, its gated calls run here."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from datetime import timedelta
from functools import cache, partial
from typing import Any

from hitl_approvals.agents.extras import imported
from hitl_approvals.agents.forwarder import (
    CAPABILITIES,
    ForwarderAgent,
    address_of,
)
from hitl_approvals.agents.links import (
    NOBODY,
    Absent,
    Broken,
    Ended,
    Engine,
    EngineAway,
    Link,
    Seen,
    Working,
    asking,
    text_of,
)
from hitl_approvals.agents.snapshots import Maker
from hitl_approvals.engines import TemporalWorkflow
from hitl_approvals.engines.rounds import DECIDE, PENDING, AnswerRefused
from hitl_approvals.registry import AgentDefinition

EXTRA = "temporal"
REPLY = timedelta(seconds=5)
"""How long one question to the server may take."""
NO_WORKER = "No worker of the workflow answers."
UNKNOWN_STATUS = "It may be paused: it has a status that this SDK does not know."
TOO_LARGE = "larger than max"
"""What the server says of a message that it will not take in any other try."""
STUCK = "Workflow Task in failed state"
"""What it says, as a condition that is not met, while the workflow's own code fails."""
NOT_PERFORMED = "Its turn was cancelled or restarted before it was started."

_clients: dict[tuple[int, str, str], Any] = {}
"""The client of each process, address and namespace.

One that is let go keeps its socket until the garbage collector finds it, so that one for
every run would use up what a process may open.
"""

UNREACHED = (
    "ABORTED",
    "CANCELLED",
    "DEADLINE_EXCEEDED",
    "INTERNAL",
    # Of a workflow this is asked about before; else it is the namespace that is missing.
    "NOT_FOUND",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "UNAUTHENTICATED",
    "UNAVAILABLE",
    "UNKNOWN",
)
"""Statuses that say nothing about the workflow: somebody has to mend the server first."""


@cache
def _own_runtime(process: int) -> Any:
    """Return what connects the clients of a process that cannot use its parent's."""
    runtime = imported("temporalio.runtime", extra=EXTRA)
    return runtime.Runtime(telemetry=runtime.TelemetryConfig())


class TemporalEngine(Engine):
    """A Temporal server."""

    name = "Temporal"
    maker = Maker(framework="temporal", distribution="temporalio", adapter=1)

    def __init__(self, address: TemporalWorkflow) -> None:
        self.client = imported("temporalio.client", extra=EXTRA)
        self.service = imported("temporalio.service", extra=EXTRA)
        self.address = address
        named = isinstance(address.client, str)
        self.where = str(address.client) if named else "its own client's address"
        self.patience = address.patience

    def link(self) -> AbstractAsyncContextManager[Link]:
        """Connect for one run."""
        return self._link()

    @asynccontextmanager
    async def _link(self) -> AsyncIterator[Link]:
        yield TemporalLink(self, await self._connected())

    async def _connected(self) -> Any:
        given = self.address.client
        if not isinstance(given, str):
            client = await self._answered(given())
            self.where = client.service_client.config.target_host
            return client
        # No fork may use its parent's.
        key = (os.getpid(), given, self.address.namespace)
        known = _clients.get(key)
        if known is None:
            _clients[key] = await self._answered(self._new(given))
            return _clients[key]
        # What connecting asks too: one that is gone is noticed at once, since this is
        # not tried again and again as the other questions are.
        api = imported("temporalio.api.workflowservice.v1", extra=EXTRA)
        try:
            await self._answered(
                known.workflow_service.get_system_info(api.GetSystemInfoRequest())
            )
        except EngineAway:
            _clients.pop(key, None)
            raise
        return known

    async def _new(self, address: str) -> Any:
        """Return another client of this process."""
        connect = partial(
            self.client.Client.connect, address, namespace=self.address.namespace
        )
        try:
            return await connect()
        except AssertionError:
            # A parent used the SDK before it forked: what connects by default is its.
            return await connect(runtime=_own_runtime(os.getpid()))

    async def _answered(self, question: Awaitable[Any]) -> Any:
        """Return what the server answers to a first question.

        Raises:
            EngineAway: Nothing, or not in time.
        """
        try:
            return await asyncio.wait_for(question, REPLY.total_seconds())
        except (OSError, RuntimeError, TimeoutError, self.service.RPCError) as error:
            # What the SDK raises for a server that is not there is a plain RuntimeError.
            raise EngineAway(text_of(error)) from error


class TemporalLink(Link):
    """A connected client."""

    def __init__(self, engine: TemporalEngine, client: Any) -> None:
        self.engine = engine
        self.client = client
        self.runs: dict[str, str] = {}
        """The run in which each workflow was seen last."""

    async def look(self, workflow: str) -> Seen:
        """Ask the server for the status, and a worker for what is waited for."""
        handle = self.client.get_workflow_handle(workflow)
        try:
            with self._reached(NOT_FOUND=None) as missing:
                described = await handle.describe(rpc_timeout=REPLY)
        except ValueError as error:
            return Working(f"{UNKNOWN_STATUS} {text_of(error)}")
        if missing:
            return self._missing(missing[0])
        self.runs[workflow] = described.run_id
        status = self.engine.client.WorkflowExecutionStatus
        if described.status == status.RUNNING:
            return await self._pending(handle)
        if described.status == status.CONTINUED_AS_NEW:
            return Working()
        try:
            with self._reached():
                return Ended(await handle.result(rpc_timeout=REPLY))
        except self.engine.client.WorkflowFailureError as failed:
            how = described.status.name.lower().replace("_", " ")
            why = text_of(failed.cause)
            return Broken(f"The Temporal workflow {workflow} is {how}: {why}")

    async def start(self, workflow: str, given: Any) -> None:
        """Start the workflow, unless it was started before, also if it is over by now."""
        address = self.engine.address
        options = {**address.options, "task_queue": address.task_queue}
        await self._started(workflow, given, **options)

    async def forestall(self, workflow: str) -> bool:
        """Start a workflow of this id where no worker listens, and terminate it.

        One that is not terminated, since this process dies, runs out of time.
        """
        taken = await self._started(
            workflow, None, task_queue=NOBODY, execution_timeout=REPLY
        )
        if taken is not None:
            with self._reached(NOT_FOUND=None):
                await taken.terminate(reason=NOT_PERFORMED, rpc_timeout=REPLY)
        return True

    async def _started(self, workflow: str, given: Any, **options: Any) -> Any:
        """Return the handle of the workflow, or None if its id was used before."""
        common = imported("temporalio.common", extra=EXTRA)
        exceptions = imported("temporalio.exceptions", extra=EXTRA)
        try:
            with self._reached():
                return await self.client.start_workflow(
                    self.engine.address.workflow,
                    given,
                    **{
                        "rpc_timeout": REPLY,
                        **options,
                        "id": workflow,
                        # A start that is repeated must not be a second one.
                        "id_reuse_policy": common.WorkflowIDReusePolicy.REJECT_DUPLICATE,
                    },
                )
        except exceptions.WorkflowAlreadyStartedError:
            return None

    async def deliver(self, workflow: str, answer: Mapping[str, Any]) -> None:
        """Send the answer as an update under its key, or as a signal.

        To the run that asked: where that is over, another look tells what is asked now.
        """
        handle = self.client.get_workflow_handle(
            workflow, run_id=self.runs.get(workflow)
        )
        try:
            if self.engine.address.signals or not await self._update(handle, answer):
                await self._signal(handle, answer)
        except self.engine.service.RPCError as error:
            # The server itself will not have it, in no other try either.
            raise AnswerRefused(text_of(error)) from error

    async def cancel(self, workflow: str) -> None:
        """Request the workflow's cancellation; its own code decides how it ends."""
        with self._reached(NOT_FOUND=None):
            await self.client.get_workflow_handle(workflow).cancel(rpc_timeout=REPLY)

    async def _update(self, handle: Any, answer: Mapping[str, Any]) -> bool:
        """Send the answer as an update; tell whether the server knows updates."""
        client = self.engine.client
        try:
            with self._reached(NOT_FOUND=None, UNIMPLEMENTED=None) as failed:
                # A reset hands the answers of the run before to the new one, which may
                # not have asked yet. An id that was refused so is of no use any more.
                id_ = f"{answer['key']}-{handle.run_id or ''}"
                update = handle.execute_update(
                    DECIDE, dict(answer), id=id_, rpc_timeout=REPLY
                )
                # Each request has its time; so has the answer, should it be long.
                await asyncio.wait_for(update, 2 * REPLY.total_seconds())
        except client.WorkflowUpdateFailedError as refused:
            # Decided already: by this turn, whose run died before it heard of that.
            if getattr(refused.cause, "type", None) != "HitlAlreadyDecided":
                raise AnswerRefused(text_of(refused.cause)) from refused
        except (TimeoutError, client.WorkflowUpdateRPCTimeoutOrCancelledError) as late:
            raise EngineAway(NO_WORKER) from late
        else:
            return not any(error.status.name == "UNIMPLEMENTED" for error in failed)
        return True

    async def _signal(self, handle: Any, answer: Mapping[str, Any]) -> None:
        with self._reached(NOT_FOUND=None):
            await handle.signal(DECIDE, dict(answer), rpc_timeout=REPLY)

    async def _pending(self, handle: Any) -> Seen:
        client = self.engine.client
        try:
            with self._reached(
                CANCELLED=None,
                DEADLINE_EXCEEDED=None,
                FAILED_PRECONDITION=None,
                NOT_FOUND=None,
            ) as failed:
                pending = await handle.query(PENDING, rpc_timeout=REPLY)
        except client.WorkflowQueryFailedError as error:
            return Working(f"It does not show what it waits for: {text_of(error)}")
        except client.WorkflowQueryRejectedError:
            return Working()
        if failed:
            return Working(NO_WORKER)
        return asking(pending) or Working()

    def _missing(self, error: Any) -> Seen:
        """Tell a workflow that is missing from a namespace that is."""
        if "namespace" in str(error).lower():
            raise EngineAway(text_of(error)) from error
        return Absent()

    @contextmanager
    def _reached(self, **expected: None) -> Iterator[list[Any]]:
        """Turn what the server's absence raises into `EngineAway`.

        Yields what was raised with one of the expected statuses, which ends the block.
        """
        found: list[Any] = []
        try:
            yield found
        except self.engine.service.RPCError as error:
            if error.status.name in expected:
                found.append(error)
                return
            text = str(error)
            if STUCK in text or (
                error.status.name in UNREACHED and TOO_LARGE not in text
            ):
                raise EngineAway(text_of(error)) from error
            raise


__all__ = ["CAPABILITIES", "make"]


def make(definition: AgentDefinition) -> ForwarderAgent:
    """Return the agent that follows the workflow a function names.

    Raises:
        HitlConfigurationError: It names none.
        MissingExtra: `temporalio` is not installed.
    """
    address = address_of(definition, TemporalWorkflow)
    return ForwarderAgent(definition, TemporalEngine(address))
