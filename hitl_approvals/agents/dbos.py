"""The DBOS forwarder: a workflow there owns the loop, its gated calls run here."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from typing import Any

from hitl_approvals.agents.dbos_database import EXTRA, REPLY, Database, place_of
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
from hitl_approvals.engines import DBOSWorkflow
from hitl_approvals.engines.rounds import DECIDE, PENDING
from hitl_approvals.registry import AgentDefinition


class DBOSEngine(Engine):
    """A system database of DBOS."""

    name = "DBOS"
    maker = Maker(framework="dbos", distribution="dbos", adapter=1)

    def __init__(self, address: DBOSWorkflow) -> None:
        self.sdk = imported("dbos", extra=EXTRA)
        self.errors = self.sdk.error
        self.sql = imported("sqlalchemy.exc", extra=EXTRA)
        self.address = address
        self.where = place_of(address.database)
        self.patience = address.patience

    def link(self) -> AbstractAsyncContextManager[Link]:
        """Connect for one run."""
        return self._link()

    @asynccontextmanager
    async def _link(self) -> AsyncIterator[Link]:
        database = Database(self.address.database)
        try:
            client = await self.asked(database, self._client, database)
            try:
                yield DBOSLink(self, database, client)
            finally:
                await asyncio.to_thread(client.destroy)
        finally:
            await asyncio.to_thread(database.close)

    def _client(self, database: Database) -> Any:
        return self.sdk.DBOSClient(
            **{
                **database.options,
                # Waiting for a database is the turn's business, and it is visible there.
                "retry_connection_errors": False,
                **self.address.client_options,
            }
        )

    async def asked(
        self, database: Database, work: Callable[..., Any], /, *args: Any
    ) -> Any:
        """Return what a synchronous question to the database comes to.

        Raises:
            EngineAway: It does not answer, or not in time.
        """
        question = asyncio.ensure_future(asyncio.to_thread(work, *args))
        silent = False
        while not (await asyncio.wait({question}, timeout=REPLY))[0]:
            # A thread cannot be stopped, but what it waits for can.
            silent = True
            database.hang_up()
        with self._reached(silent=silent):
            return question.result()

    @contextmanager
    def _reached(self, *, silent: bool) -> Iterator[None]:
        """Turn what the database's absence raises into `EngineAway`.

        So is a database without DBOS's tables: the application has yet to be launched.
        """
        try:
            yield
        except (OSError, self.sql.SQLAlchemyError) as error:
            why = text_of(error).partition("\n")[0]
            if silent:
                why = f"It takes connections, and says nothing for {REPLY} seconds."
            raise EngineAway(why) from error


class DBOSLink(Link):
    """A client. It is synchronous, and would hold up the heartbeat of other coroutines."""

    def __init__(self, engine: DBOSEngine, database: Database, client: Any) -> None:
        self.engine = engine
        self.database = database
        self.client = client

    async def look(self, workflow: str) -> Seen:
        """Read the workflow's row, and the event by which it shows what it waits for."""
        seen: Seen = await self._asked(self._look, workflow)
        return seen

    async def start(self, workflow: str, given: Any) -> None:
        """Enqueue the workflow; DBOS keeps the first of its id."""
        await self._enqueue(workflow, self.engine.address.queue, given)

    async def forestall(self, workflow: str) -> bool:
        """Enqueue a workflow of this id where nobody listens; cancel it after that."""
        await self._enqueue(workflow, NOBODY)
        return True

    async def deliver(self, workflow: str, answer: Mapping[str, Any]) -> None:
        """Send the answer under its key; DBOS keeps the first of a key."""
        try:
            await self._asked(
                self.client.send,
                workflow,
                dict(answer),
                f"{DECIDE}-{answer['round']}",
                answer["key"],
            )
        except self.engine.errors.DBOSNonExistentWorkflowError:
            return

    async def cancel(self, workflow: str) -> None:
        """Cancel the workflow: it stops at its next step."""
        await self._asked(self.client.cancel_workflow, workflow)

    async def _enqueue(self, workflow: str, queue: str, *given: Any) -> None:
        address = self.engine.address
        options = {
            **address.options,
            "workflow_id": workflow,
            # A start that is repeated is no fault.
            "workflow_id_reuse_policy": "return-existing",
            "workflow_name": address.workflow,
            "queue_name": queue,
        }
        try:
            await self._asked(self.client.enqueue, options, *given)
        except self.engine.errors.DBOSConflictingWorkflowError:
            # Nor is one that was started when the address named another workflow.
            return

    async def _asked(self, work: Callable[..., Any], *args: Any) -> Any:
        return await self.engine.asked(self.database, work, *args)

    def _look(self, workflow: str) -> Seen:
        try:
            row = self.client.retrieve_workflow(workflow).get_status()
        except self.engine.errors.DBOSNonExistentWorkflowError:
            return Absent()
        if row.status == "SUCCESS":
            return Ended(row.output)
        if row.status in {"ENQUEUED", "DELAYED"}:
            return Working("Nobody has taken it from its queue yet.")
        if row.status == "PENDING":
            pending = self.client.get_event(workflow, PENDING, timeout_seconds=0)
            return asking(pending) or Working()
        how = row.status.lower().replace("_", " ")
        why = "" if row.error is None else f": {_said(row.error)}"
        return Broken(f"The DBOS workflow {workflow} ended with {how}{why}")


def _said(error: Any) -> str:
    return text_of(error) if isinstance(error, BaseException) else str(error)


__all__ = ["CAPABILITIES", "make"]


def make(definition: AgentDefinition) -> ForwarderAgent:
    """Return the agent that follows the workflow a function names.

    Raises:
        HitlConfigurationError: It names none.
        MissingExtra: `dbos` is not installed.
    """
    address = address_of(definition, DBOSWorkflow)
    return ForwarderAgent(definition, DBOSEngine(address))
