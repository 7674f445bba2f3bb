"""Asking a person: through a handler, through a store, or both."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeAlias

from uuid_utils.compat import uuid7

from hitl_approvals.approvals.outcomes import (
    ToolResult,
    failed_result,
    suspended_result,
)
from hitl_approvals.approvals.runs import Run, is_inside_gated_call
from hitl_approvals.approvals.steps import Step, Steps, of_store
from hitl_approvals.decisions import Decision, parse_decision
from hitl_approvals.exceptions import (
    ApprovalRejected,
    HitlConfigurationError,
    InterruptSuspended,
)
from hitl_approvals.stores.base import (
    ALLOWED_DECISIONS,
    ApprovalRequest,
    InterruptRecord,
    InterruptStore,
    implements,
)

if TYPE_CHECKING:
    from hitl_approvals.approvals.gate import Asked

Answer: TypeAlias = Decision | Mapping[str, Any]
Handler: TypeAlias = Callable[[ApprovalRequest], Answer | Awaitable[Answer]]
"""Returns a decision, or raises `InterruptSuspended`."""


class Asker:
    """Asks about one call, and says what a person decided, or that the run waits."""

    def __init__(
        self,
        handler: Handler | None,
        store: InterruptStore | None,
        allowed: tuple[str, ...],
        *,
        gate: str,
    ) -> None:
        if handler is None and store is None:
            raise TypeError("approval() needs handler=, store= or both; got neither.")
        if handler is not None and not callable(handler):
            raise TypeError(
                f"handler= must be a function; got a {type(handler).__name__}."
            )
        if store is not None and not implements(store, InterruptStore):
            raise TypeError(
                f"store= must be an interrupt store; a {type(store).__name__} lacks "
                "some of save, load, take, delete, list, schema and their async twins."
            )
        wrong = [one for one in allowed if one not in ALLOWED_DECISIONS]
        if wrong or not allowed:
            raise HitlConfigurationError(
                f"Gate `{gate}`: allowed_decisions may hold "
                f"{', '.join(ALLOWED_DECISIONS)}; got {list(allowed)!r}."
            )
        self._handler = handler
        self._store = store
        self._allowed = allowed

    def request(self, run: Run, asked: Asked, *, gate: str) -> ApprovalRequest:
        """Return what a person is asked about a call."""
        target = asked.target
        verdict = asked.verdict
        allowed = target.allowed_decisions
        return ApprovalRequest(
            interrupt_id=str(uuid7()),
            tool_name=target.name,
            tool_description=target.description,
            args=dict(asked.args),
            args_schema=target.args_schema,
            digest=asked.key.digest,
            tool_call_id=asked.call_id,
            occurrence=asked.key.occurrence,
            gate=gate,
            agent=run.agent,
            thread_id=run.thread_id,
            trip=asked.trip,
            original_input=run.input,
            input_kept=run.has_input,
            tags=tuple(
                dict.fromkeys((*target.tags, *(verdict.tags if verdict else ())))
            ),
            why=verdict.why if verdict else "",
            allowed_decisions=tuple(
                one for one in self._allowed if allowed is None or one in allowed
            ),
            fixed=target.fixed,
            redact=target.redact,
            check_hint=target.check_hint,
            requested_at=utc_now(),
            journal=tuple(dict(entry) for entry in run.journal.values()),
        )

    def ask(
        self, request: ApprovalRequest, run: Run
    ) -> Steps[tuple[str, Decision] | ToolResult]:
        """Return the id and the decision, or the result of a call that waits.

        Raises:
            TypeError: The handler returned no decision, or one that is not offered.
            Exception: Whatever else the handler raised.
        """
        if self._handler is None:
            return (yield from self._suspend(request, run))
        # A copy: what a handler changes must not be what is kept and matched.
        shown = ApprovalRequest.from_json(request.to_json())
        try:
            answer = yield Step(self._handler, (shown,))
            return request.interrupt_id, self._decision(answer, request)
        except InterruptSuspended as suspended:
            if str(suspended.interrupt_id) != request.interrupt_id:
                run.bug = TypeError(
                    "A handler must raise InterruptSuspended(request.interrupt_id); "
                    f"got {suspended.interrupt_id!r}."
                )
                raise run.bug from suspended
        except Exception as error:
            run.bug = error
            raise
        return (yield from self._suspend(request, run))

    def _decision(self, answer: Any, request: ApprovalRequest) -> Decision:
        if answer is None:
            raise TypeError(
                "A handler must return a decision or raise InterruptSuspended; "
                "it returned None."
            )
        decision = parse_decision(answer)
        if decision.type not in request.allowed_decisions:
            raise TypeError(
                f"A handler returned the decision {decision.type!r}; for "
                f"{request.tool_name} it may be "
                f"{', '.join(request.allowed_decisions) or 'none'}."
            )
        return decision

    def _suspend(self, request: ApprovalRequest, run: Run) -> Steps[ToolResult]:
        """Make sure that the request is kept, and stop the run at it."""
        interrupt_id = request.interrupt_id
        if is_inside_gated_call():
            # A re-run would have to run the outer call a second time to get here.
            if self._store is not None:
                yield of_store(self._store, "delete", interrupt_id)
            why = (
                "It needs approval of its own, and it was called by a call that runs "
                "under an approval. Call it from the agent."
            )
            return failed_result(ApprovalRejected(request.tool_name, why), interrupt_id)
        if self._store is not None:
            record = InterruptRecord(interrupt_id, request, saved_at=utc_now())
            try:
                yield of_store(self._store, "save", record)
            except Exception as error:  # noqa: BLE001  the store's; the call must not run
                run.broken = error
                return failed_result(error, interrupt_id)
        waits_for = run.suspend(interrupt_id)
        if waits_for != interrupt_id and self._store is not None:
            # A task and a thread of one run asked at once; this one is asked again later.
            yield of_store(self._store, "delete", interrupt_id)
        return suspended_result(waits_for)


def utc_now() -> str:
    """Return the time as requests and records keep it."""
    return datetime.now(UTC).isoformat().replace("+00:00", "Z")
