"""The Temporal forwarder: a workflow there owns the loop, its gated calls run here."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from datetime import timedelta
from typing import Any

from hitl_approvals.agents.extras import imported
from hitl_approvals.agents.forwarder import (
    CAPABILITIES,
    ForwarderAgent,
    address_of,
)
from hitl_approvals.agents.links import (
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
        if isinstance(given, str):
            connecting = self.client.Client.connect(
                given, namespace=self.address.namespace
            )
        else:
            connecting = given()
        try:
            client = await asyncio.wait_for(connecting, REPLY.total_seconds())
        except (OSError, RuntimeError, TimeoutError) as error:
            # What the SDK raises for a server that is not there is a plain RuntimeError.
            raise EngineAway(text_of(error)) from error
        if not isinstance(given, str):
            self.where = client.service_client.config.target_host
        return client


class TemporalLink(Link):
    """A connected client."""

    def __init__(self, engine: TemporalEngine, client: Any) -> None:
        self.engine = engine
        self.client = client

    async def look(self, workflow: str) -> Seen:
        """Ask the server for the status, and a worker for what is waited for."""
        handle = self.client.get_workflow_handle(workflow)
        with self._reached(NOT_FOUND=None) as missing:
            described = await handle.describe(rpc_timeout=REPLY)
        if missing:
            return self._missing(missing[0])
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
        common = imported("temporalio.common", extra=EXTRA)
        exceptions = imported("temporalio.exceptions", extra=EXTRA)
        address = self.engine.address
        try:
            with self._reached():
                await self.client.start_workflow(
                    address.workflow,
                    given,
                    **{
                        "id_reuse_policy": common.WorkflowIDReusePolicy.REJECT_DUPLICATE,
                        "rpc_timeout": REPLY,
                        **address.options,
                        "id": workflow,
                        "task_queue": address.task_queue,
                    },
                )
        except exceptions.WorkflowAlreadyStartedError:
            return

    async def deliver(self, workflow: str, answer: Mapping[str, Any]) -> None:
        """Send the answer as an update under its key, or as a signal."""
        handle = self.client.get_workflow_handle(workflow)
        if self.engine.address.signals:
            await self._signal(handle, answer)
            return
        client = self.engine.client
        try:
            with self._reached(NOT_FOUND=None, UNIMPLEMENTED=None) as failed:
                update = handle.execute_update(
                    DECIDE, dict(answer), id=answer["key"], rpc_timeout=REPLY
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
            if (
                failed
                and failed[0].status == self.engine.service.RPCStatusCode.UNIMPLEMENTED
            ):
                await self._signal(handle, answer)

    async def cancel(self, workflow: str) -> None:
        """Request the workflow's cancellation; its own code decides how it ends."""
        with self._reached(NOT_FOUND=None):
            await self.client.get_workflow_handle(workflow).cancel(rpc_timeout=REPLY)

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
            elif error.status.name in UNREACHED:
                raise EngineAway(text_of(error)) from error
            else:
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
