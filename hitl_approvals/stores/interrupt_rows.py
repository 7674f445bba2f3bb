"""What the store in the site's database does with rows; it is loaded on first use."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

from hitl_approvals import canonical, services
from hitl_approvals.decisions import Approve, Decision, Edit, Reject
from hitl_approvals.enums import DecisionType, InterruptStatus
from hitl_approvals.exceptions import (
    AlreadyConsumed,
    InterruptNotFound,
    KeyReused,
    PayloadRejected,
    TransitionNotAllowed,
)
from hitl_approvals.models import AgentClient, PendingInterrupt
from hitl_approvals.schemas import validate_against
from hitl_approvals.services import clients, raising, rows
from hitl_approvals.stores.base import (
    DECIDED,
    PENDING,
    TAKEN,
    ApprovalRequest,
    InterruptRecord,
    Records,
    conflict,
)
from hitl_approvals.text import storable
from hitl_approvals.types import Person

OVER = (InterruptStatus.RESOLVED, InterruptStatus.CANCELLED)
_NOBODY = "Nobody decided in time."


class InterruptRows:
    """The verbs of `DjangoInterruptStore`, for one client; see there."""

    def __init__(self, client: str, options: Mapping[str, Any]) -> None:
        self._client = client
        self._options = options

    def save(self, record: InterruptRecord) -> None:
        client = clients.ensure_client(self._client)
        if self._is_kept(client, record):
            return
        try:
            services.raise_remote(
                client,
                ref=record.interrupt_id,
                interrupt_id=_as_uuid(record.interrupt_id),
                **_columns(record.request),
                **self._options,
            )
        except KeyReused:
            # Made by another process just now, or by somebody else under this id.
            if not self._is_kept(client, record):
                raise conflict(record.interrupt_id) from None

    def load(self, interrupt_id: str) -> InterruptRecord | None:
        row = self._open(interrupt_id)
        return None if row is None else _record(row)

    def take(
        self, interrupt_id: str, *, key: str | None = None
    ) -> InterruptRecord | None:
        row = self._find(interrupt_id)
        if row is None or row.client is None:
            return None
        key = key or uuid4().hex
        try:
            answer = services.consume(row.pk, client=row.client, key=key)
        except TransitionNotAllowed:
            return None
        if answer.args is not None and answer.status in OVER:
            return None  # Somebody settled what became of it: nothing is left to run.
        # The row may keep a digest of the key; whoever took it needs the key itself.
        return replace(_record(rows.interrupts().get(pk=row.pk)), key=key)

    def release(self, interrupt_id: str, *, key: str) -> None:
        row = self._open(interrupt_id)
        if row is None or row.client is None:
            return
        with suppress(TransitionNotAllowed):
            services.give_back(row.pk, client=row.client, key=key)

    def delete(self, interrupt_id: str) -> None:
        row = self._open(interrupt_id)
        if row is None:
            return
        try:
            services.withdraw(row.pk, client=row.client)
        except AlreadyConsumed:
            raise
        except TransitionNotAllowed:
            if self._open(interrupt_id) is not None:
                raise

    def list(self, prefix: str = "") -> Records:
        client = clients.find(self._client)
        if client is None or not storable(prefix):
            return []
        found = rows.interrupts().filter(client=client, client_ref__startswith=prefix)
        # Databases compare texts by rules of their own, some without their case.
        kept = [
            row
            for row in found.exclude(status__in=OVER)
            if row.client_ref.startswith(prefix) and _is_ours(row)
        ]
        return [_record(row) for row in sorted(kept, key=lambda row: row.client_ref)]

    def decide(
        self,
        interrupt_id: str,
        decision: Decision,
        *,
        by: Person | None = None,
        via: str = "python",
    ) -> None:
        services.decide(self._known(interrupt_id).pk, decision, by=by, via=via)

    def report(
        self, interrupt_id: str, *, key: str, status: str, outcome: Any = None
    ) -> None:
        row = self._known(interrupt_id)
        told: dict[str, Any] = {"result": outcome, "error": _error(outcome)}
        try:
            self._report(row, key, status, told)
        except PayloadRejected as error:
            told = {"error": f"What came of it could not be stored: {error.detail}"}
            self._report(row, key, status, told)

    def _find(self, interrupt_id: str) -> PendingInterrupt | None:
        client = clients.find(self._client)
        row = None if client is None else _row(client, interrupt_id)
        return row if row is not None and _is_ours(row) else None

    def _open(self, interrupt_id: str) -> PendingInterrupt | None:
        row = self._find(interrupt_id)
        return None if row is None or row.status in OVER else row

    def _known(self, interrupt_id: str) -> PendingInterrupt:
        row = self._find(interrupt_id)
        if row is None:
            raise InterruptNotFound
        return row

    def _is_kept(self, client: AgentClient, record: InterruptRecord) -> bool:
        """Tell whether this very request has a row.

        Raises:
            InterruptConflict: The row under this id is of another request.
        """
        row = _row(client, record.interrupt_id)
        if row is None:
            return False
        if not _is_ours(row) or _record(row).content != record.content:
            raise conflict(record.interrupt_id)
        return True

    def _report(
        self, row: PendingInterrupt, key: str, status: Any, told: dict[str, Any]
    ) -> None:
        assert row.client is not None  # noqa: S101  found by its client
        services.report_outcome(
            row.pk, client=row.client, key=key, status=status, **told
        )


def _row(client: AgentClient, interrupt_id: str) -> PendingInterrupt | None:
    key = raising.dedupe_key(client, str(interrupt_id))
    return rows.interrupts().select_related("client").filter(dedupe_key=key).first()


def _is_ours(row: PendingInterrupt) -> bool:
    """Tell whether a store asked; a client may also ask by itself."""
    return isinstance(row.context, dict) and "request" in row.context


def _as_uuid(interrupt_id: str) -> UUID | None:
    """Return the id that the row can have itself: a UUID in its usual spelling."""
    try:
        known = UUID(interrupt_id)
    except ValueError:
        return None
    return known if str(known) == interrupt_id else None


def _columns(request: ApprovalRequest) -> dict[str, Any]:
    """Return a request by the names of `raise_remote`."""
    asked = request.to_json()
    schema = asked["args_schema"]
    if schema is not None and validate_against(schema, asked["args"]):
        # Of another dialect, or meant for what the tool makes of the arguments: a form
        # made from it would refuse what is about to run. The request keeps it.
        schema = None
    return {
        "tool_name": request.tool_name,
        "tool_call_id": request.tool_call_id,
        "tool_description": request.tool_description,
        "args": asked["args"],
        "args_schema": schema,
        "agent": request.agent,
        "thread_id": request.thread_id,
        "tags": asked["tags"],
        "why": request.why,
        "allowed_decisions": asked["allowed_decisions"],
        "fixed": asked["fixed"],
        "redact": asked["redact"],
        "check_hint": request.check_hint,
        "context": {
            "asked": asked["original_input"],
            "trip": request.trip,
            "messages": [],
            "metadata": {},
            "request": {
                name: value
                for name, value in asked.items()
                if name not in ("args", "interrupt_id", "original_input")
            },
        },
    }


def _record(row: PendingInterrupt) -> InterruptRecord:
    context: Any = row.context
    args: Any = canonical.stored(row.args_text)
    request = ApprovalRequest.from_json(
        {
            **context["request"],
            "args": args,
            "interrupt_id": row.client_ref,
            "original_input": context["asked"],
        }
    )
    status = DECIDED if row.decision else PENDING
    return InterruptRecord(
        interrupt_id=row.client_ref,
        request=request,
        status=status if row.consumed_at is None else TAKEN,
        saved_at=_moment(row.requested_at),
        decision=_decision(row),
        key=row.consume_key,
    )


def _decision(row: PendingInterrupt) -> Decision | None:
    if row.decision == DecisionType.APPROVE:
        return Approve()
    if row.decision == DecisionType.EDIT:
        edited: Any = canonical.stored(row.decision_args_text)
        return Edit(edited, reason=row.reason or None)
    if row.decision in (DecisionType.REJECT, DecisionType.EXPIRE):
        return Reject(row.reason or _NOBODY)
    return None


def _moment(at: datetime) -> str:
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _error(outcome: Any) -> str:
    told = outcome.get("error") if isinstance(outcome, dict) else None
    return "" if told is None else str(told)
