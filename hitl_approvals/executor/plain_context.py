"""What a node is handed by the in-process loop: questions and effects, on record."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from pydantic import TypeAdapter

from hitl_approvals import canonical
from hitl_approvals.agents.graph_context import call_node
from hitl_approvals.awaiting import awaited
from hitl_approvals.exceptions import (
    ApprovalRejected,
    InterruptSuspended,
    NotInTurn,
    PayloadRejected,
    RunDiverged,
    ToolFailed,
    ToolNotStarted,
)
from hitl_approvals.frozen import freeze, thaw
from hitl_approvals.graphs import Node
from hitl_approvals.schemas import check_schema

CLEAN = (ToolFailed, ToolNotStarted)
"""Nothing happened."""

Record = dict[str, Any]
Save = Callable[[Record], None]


class PlainContext:
    """The same verbs as a `GraphContext`, without rows: a store keeps the record."""

    def __init__(
        self,
        thread_id: str,
        node: str,
        state: Mapping[str, Any],
        record: Mapping[str, Any],
        save: Save,
    ) -> None:
        self.thread_id = thread_id
        self.node = node
        self.state: Mapping[str, Any] = freeze(state)
        self.record: Record = thaw(record)
        self.asked: Record | None = None
        """The question that nobody has answered yet."""
        self.stopped: Exception | None = None
        self.id = self.execute_options = self.deadline = None
        self._save = save
        self._seen: Counter[str] = Counter()

    def interrupt(
        self,
        payload: Any,
        *,
        response_schema: Mapping[str, Any] | None = None,
        key: str | None = None,
    ) -> Any:
        """Ask a person and return the answer.

        Raises:
            InterruptSuspended: Nobody has answered yet. Let it pass.
            ApprovalRejected: A person refused to answer.
            RunDiverged: At this place another question was asked before.
            PayloadRejected: The question or its schema is not JSON.
        """
        self._require_going()
        asked = _plain(payload)
        if response_schema is not None and (wrong := check_schema(response_schema)):
            raise PayloadRejected("response_schema is no JSON schema.", errors=wrong)
        label = self._ordinal("question") if key is None else f"key {key}"
        answer = self.record.get("answers", {}).get(label)
        if answer is None:
            schema = None if response_schema is None else _plain(dict(response_schema))
            self.asked = {"label": label, "payload": asked, "schema": schema}
            self._stop(InterruptSuspended())
        if key is None and answer["payload"] != asked:
            self._stop(
                RunDiverged(
                    f"The {label} of node `{self.node}` was {answer['payload']!r} and "
                    f"is {asked!r} now. Pass key= to `interrupt` so that the answer "
                    "finds its question."
                )
            )
        if "refused" in answer:
            raise ApprovalRejected("question", answer["refused"])
        return thaw(answer["value"])

    def step(
        self,
        name: str,
        fn: Callable[..., Any],
        /,
        *args: Any,
        result_type: Any = None,
        **kwargs: Any,
    ) -> Any:
        """Run `fn` and return its result; recorded with the node's next move."""
        self._require_going()
        adapter = None if result_type is None else TypeAdapter(result_type)
        steps = self.record.setdefault("steps", {})
        label = self._ordinal(f"step {name}")
        if label not in steps:
            value = awaited(fn, *args, **kwargs)
            if adapter is not None:
                value = adapter.dump_python(value, mode="json")
            steps[label] = _plain(value)
        read = thaw(steps[label])
        return read if adapter is None else adapter.validate_python(read)

    def once(self, key: str, fn: Callable[[], Any]) -> Any:
        """Have an effect at most once in the life of this node; return its result.

        Raises:
            RunDiverged: A process began it and did not say how it ended.
            ApprovalRejected: It failed with nothing done.
        """
        self._require_going()
        effects = self.record.setdefault("effects", {})
        done = effects.get(key)
        if done is None:
            self._begin(key, fn)
            done = effects[key]
        if done["status"] == "begun":
            self._stop(
                RunDiverged(
                    f"Whether `{key}` of node `{self.node}` happened is not known: its "
                    "process ended in it, and it is not repeated in silence. Find out, "
                    "then fork the thread: in the fork it has not been done."
                )
            )
        if done["status"] == "failed":
            raise ApprovalRejected(f"once:{key}", done["result"])
        return thaw(done["result"])

    def call_tools(self, *args: Any, **kw: Any) -> NoReturn:
        """Gated calls need rows that people can decide.

        Raises:
            NotInTurn: Always.
        """
        raise NotInTurn(
            "Gated tool calls need the review queue: leave out store=, and give the "
            "executor a name=, so that it runs on Django's rows."
        )

    call_tool = call_tools

    def _begin(self, key: str, fn: Callable[[], Any]) -> None:
        effects = self.record["effects"]
        effects[key] = {"status": "begun"}
        self._save(self.record)
        try:
            result = awaited(fn)
        except CLEAN as error:
            if isinstance(error, ToolNotStarted):
                del effects[key]
                self._save(self.record)
                raise
            effects[key] = {"status": "failed", "result": str(error)}
        else:
            effects[key] = {"status": "done", "result": _plain(result)}
        self._save(self.record)

    def _ordinal(self, what: str) -> str:
        self._seen[what] += 1
        return f"{what} {self._seen[what]}"

    def _require_going(self) -> None:
        if self.stopped is not None:
            raise self.stopped

    def _stop(self, reason: Exception) -> NoReturn:
        """End the node, so that its own `except` cannot swallow the reason."""
        self.stopped = reason
        raise reason


def run_node(node: Node, given: Any, context: PlainContext) -> Any:
    """Run a node's function; a stop that it swallowed is raised again."""
    output = None
    try:
        output = call_node(node, given, context)
    except Exception:
        if context.stopped is None:
            raise
    if context.stopped is not None:
        raise context.stopped
    return output


def _plain(value: Any) -> Any:
    """Return a copy of a JSON value.

    Raises:
        PayloadRejected: It is none.
    """
    return canonical.loads(canonical.dumps(value))
