"""DurableExecutor: one face for graphs on Django's rows and on a store of one's own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from asgiref.sync import sync_to_async

from hitl_approvals.exceptions import HitlConfigurationError
from hitl_approvals.executor.outcome import NO_VALUE, ExecutionResult
from hitl_approvals.executor.plain import PlainExecution
from hitl_approvals.graphs import Graph, NodeFunction
from hitl_approvals.registry import Tool, agent
from hitl_approvals.stores.base import implements
from hitl_approvals.stores.checkpoints import Checkpoint, CheckpointStore
from hitl_approvals.stores.django_checkpoints import DjangoCheckpointStore
from hitl_approvals.types import Person

if TYPE_CHECKING:
    from hitl_approvals.executor.on_rows import RowsExecution


class DurableExecutor:
    """Runs nodes in their order; any of them may pause for a person, for days.

    By default a thread lives in Django's rows: its graph is registered as an agent, its
    questions wait in the review queue, and a worker may go on with it. That needs a
    name, and a module that every process imports, such as an app's `agents.py`. With a
    store of its own it runs in the calling process only.

    Args:
        nodes: Pairs of name and function. A node takes `(input, ctx)` or `(input)`,
            may be async, and returns JSON, which is the input of the next one.
        store: Where checkpoints are kept; None is Django's rows.
        name: The graph's name as an agent. Required on Django's rows.
        tools: What `ctx.call_tools` may call. On Django's rows only.
        version: Version of new turns; see `@agent`.
        accepts: Older versions whose turns this code may still run.

    Raises:
        HitlConfigurationError: A node or the name cannot work, or the name is taken.
    """

    def __init__(
        self,
        nodes: Iterable[tuple[str, NodeFunction]],
        store: CheckpointStore | None = None,
        name: str | None = None,
        *,
        tools: Iterable[Tool[Any, Any]] = (),
        version: str = "1",
        accepts: Iterable[str] = (),
    ) -> None:
        self.graph = Graph(nodes, name=name or "unnamed")
        self.name = name
        self._plain: PlainExecution | None = None
        if store is not None and not isinstance(store, DjangoCheckpointStore):
            _require_store(store, tools)
            self._plain = PlainExecution(self.graph, store)
            return
        if name is None:
            raise HitlConfigurationError(
                "A DurableExecutor on Django's rows needs a name, by which a worker "
                'finds the graph: DurableExecutor(nodes=[...], name="transfer") in an '
                "app's agents.py. To keep everything in this process instead, pass "
                "store=MemoryCheckpointStore()."
            )
        register: Any = agent(
            name, tools=tools, version=version, accepts=accepts, kind="graph"
        )
        register(self.graph)

    def run(
        self,
        input: Any = None,  # noqa: A002  the word of the design
        thread_id: str | None = None,
        *,
        key: str | None = None,
        requested_by: Person | None = None,
        execute_options: Any = None,
    ) -> ExecutionResult:
        """Run the graph on an input here, to its first pause or its end.

        Args:
            input: What the first node gets, as JSON.
            thread_id: Name of the thread; None makes a new one.
            key: Idempotency key. On Django's rows only.
            requested_by: On whose behalf; that person may not decide. Likewise.
            execute_options: Passed to the nodes as `ctx.execute_options`. Likewise.

        Raises:
            UnsafeContext: A transaction is open.
            ThreadBusy: The thread has a run that is not over, and does not queue.
            PayloadRejected: The input is not JSON.
            TypeError: An option that this store cannot honor.
        """
        options = _given(
            key=key, requested_by=requested_by, execute_options=execute_options
        )
        return self._execution.run(input, thread_id, **options)

    def resume(
        self,
        thread_id: str,
        value: Any = NO_VALUE,
        *,
        interrupt_id: str | None = None,
        by: Person | None = None,
        via: str | None = None,
    ) -> ExecutionResult:
        """Answer what the thread waits for, and run it here to its next pause or end.

        Args:
            thread_id: The thread.
            value: The answer: any JSON value, `None`, `False`, `0` and `""` included,
                or `Reject(reason)`. For a gated tool call a decision. Left out, the
                thread goes on if it waits for nobody, as after a crash or a fork.
            interrupt_id: Answer this one and no later one; from the result.
            by: Who answers, whose rights are checked; None is trusted code. On
                Django's rows only.
            via: The door, for the audit trail; `python` if not given. Likewise.

        Raises:
            AlreadyDecided: Somebody answered before: who, when.
            TypeError: The thread waits for an answer and none was given.
            TransitionNotAllowed: The thread waits for nobody.
            PayloadRejected: The answer does not fit; nothing was stored.
            TurnNotFound: There is no such thread.
            InterruptNotFound: The thread has no such interrupt.
            UnsafeContext: A transaction is open.
            HitlApprovalsError: The decision was refused for another reason.
        """
        options = _given(by=by, via=via)
        return self._execution.resume(thread_id, value, interrupt_id, **options)

    def fork(
        self,
        thread_id: str,
        checkpoint_id: str | None = None,
        *,
        by: Person | None = None,
        via: str | None = None,
    ) -> str:
        """Copy a checkpoint into a new thread and return the new thread's id.

        What was asked there is pending again in the fork. Nothing that is recorded up
        to there runs again.

        Args:
            thread_id: The origin; it may be finished.
            checkpoint_id: From `list_checkpoints`; None is the last pause, or the end.
            by: Who forks; None is trusted code. On Django's rows only.
            via: The door, for the audit trail; `python` if not given. Likewise.

        Raises:
            TurnNotFound: There is no such thread.
            InterruptNotFound: The thread has no such checkpoint.
            HitlApprovalsError: The fork was refused.
        """
        options = _given(by=by, via=via)
        return self._execution.fork(thread_id, checkpoint_id, **options)

    def list_checkpoints(self, thread_id: str) -> list[Checkpoint]:
        """Return every pause and every finished node of a thread, oldest first."""
        return self._execution.list_checkpoints(thread_id)

    def result(self, thread_id: str) -> ExecutionResult:
        """Return where a thread stands, whoever ran it last.

        Raises:
            TurnNotFound: There is no such thread.
        """
        return self._execution.result(thread_id)

    async def arun(self, *args: Any, **kwargs: Any) -> ExecutionResult:
        """Await `run`."""
        return await sync_to_async(self.run, thread_sensitive=True)(*args, **kwargs)

    async def aresume(self, *args: Any, **kwargs: Any) -> ExecutionResult:
        """Await `resume`."""
        return await sync_to_async(self.resume, thread_sensitive=True)(*args, **kwargs)

    async def afork(self, *args: Any, **kwargs: Any) -> str:
        """Await `fork`."""
        return await sync_to_async(self.fork, thread_sensitive=True)(*args, **kwargs)

    async def alist_checkpoints(self, thread_id: str) -> list[Checkpoint]:
        """Await `list_checkpoints`."""
        found = sync_to_async(self.list_checkpoints, thread_sensitive=True)
        return await found(thread_id)

    async def aresult(self, thread_id: str) -> ExecutionResult:
        """Await `result`."""
        return await sync_to_async(self.result, thread_sensitive=True)(thread_id)

    @property
    def _execution(self) -> PlainExecution | RowsExecution:
        if self._plain is not None:
            return self._plain
        # Needs loaded models, so not before something runs.
        from hitl_approvals.executor.on_rows import RowsExecution

        return RowsExecution(self.graph.name)


def _require_store(store: Any, tools: Iterable[Any]) -> None:
    """Refuse what is no store, and what a store cannot honor.

    Raises:
        HitlConfigurationError: The text says what to do instead.
    """
    if isinstance(store, type) or not implements(store, CheckpointStore):
        raise HitlConfigurationError(
            f"store={store!r} is no checkpoint store: it needs the methods save, load, "
            "load_by_id, list and delete, as in MemoryCheckpointStore()."
        )
    if list(tools):
        raise HitlConfigurationError(
            "tools= needs Django's rows, where people decide on calls; leave out store=."
        )


def _given(**options: Any) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}
