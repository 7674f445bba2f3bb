"""raise_remote(): a remote agent asks for a decision; its request is frozen as a row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import IntegrityError

from hitl_approvals import canonical, failpoints
from hitl_approvals.conf import hitl_settings
from hitl_approvals.enums import Door, EventType, InterruptKind, InterruptStatus
from hitl_approvals.exceptions import KeyReused
from hitl_approvals.models import (
    DEFAULT_QUEUE,
    AgentClient,
    PendingInterrupt,
    db_now_plus,
)
from hitl_approvals.services import client_limits, clients, queues, rows
from hitl_approvals.services.events import head, interrupt_event
from hitl_approvals.services.recording import record_event
from hitl_approvals.services.remote_requests import OFFERED, require_fits
from hitl_approvals.services.transactions import alias, run_atomic
from hitl_approvals.text import storable
from hitl_approvals.types import RaiseReceipt


def raise_remote(
    client: AgentClient,
    *,
    ref: str,
    kind: str = InterruptKind.TOOL_CALL,
    tool_name: str = "",
    args: Mapping[str, Any] | None = None,
    args_schema: Mapping[str, Any] | None = None,
    payload: Any = None,
    response_schema: Mapping[str, Any] | None = None,
    tool_call_id: str = "",
    tool_description: str = "",
    agent: str = "",
    thread_id: str = "",
    context: Mapping[str, Any] | None = None,
    tags: Sequence[str] = (),
    why: str = "",
    queue: str | None = None,
    priority: int = 0,
    allowed_decisions: Sequence[str] | None = None,
    fixed: Sequence[str] = (),
    redact: Sequence[str] = (),
    check_hint: str = "",
    expires_in: timedelta | None = None,
    execute_within: timedelta | None = None,
    outcome_within: timedelta | None = None,
    interrupt_id: UUID | None = None,
    submission: str = "",
    limited: bool = False,
    via: str = Door.PYTHON,
) -> RaiseReceipt:
    """Ask for a decision without a turn. The same `ref` with the same content is one row.

    Joins the caller's transaction. Arguments, schema and question are frozen as they
    come; nothing here runs the call.

    Args:
        client: Who asks, and who will fetch the decision.
        ref: The client's own name for this request: a repeat finds the row.
        kind: `tool_call`, or `question` with a `payload` and no tool.
        tool_name: What the client would run.
        args: With which arguments, as JSON.
        args_schema: JSON Schema of the arguments; an edit has to fit it too.
        payload: What is asked, as JSON; only for a question.
        response_schema: JSON Schema that an answer has to fit.
        tool_call_id: The model's id of the call.
        tool_description: What the tool does, for the reviewer.
        agent: Name of the agent; the client's name unless given.
        thread_id: The conversation.
        context: What the reviewer should know: `asked`, `messages`, `agent_reason` and
            `metadata` are shown.
        tags: Words to find and sort requests by.
        why: Why a person is asked.
        queue: Slug of the review queue; the client's own unless given. An unknown one
            becomes the default queue, and the reviewer is told.
        priority: Higher ones first.
        allowed_decisions: What to offer, if less than the kind allows.
        fixed: Names of arguments that an edit must leave alone.
        redact: Names of arguments that are hidden from reviewers.
        check_hint: How a person finds out whether the call happened.
        expires_in: Time to decide; the site's `EXPIRES_IN` unless given.
        execute_within: Time from approval to fetching it; else `EXECUTE_WITHIN`.
        outcome_within: Time from fetching to reporting; else `OUTCOME_WITHIN`.
        interrupt_id: Primary key for the row; a new one unless given.
        submission: The request to the letter as it came, to be given back like that.
        limited: Hold a new request to the client's limits. What was stored is found
            whatever they are.
        via: The door, for the audit trail.

    Raises:
        ClientNotAllowed: The client was revoked, or may not raise into that queue.
        TooManyOpen: The client has as many open requests as it may have.
        KeyReused: The `ref` stands for another request, or the id is taken.
        PayloadRejected: Something does not fit; nothing was stored.
    """
    owner = clients.active(client)
    sent = {
        "kind": str(kind),
        "tool_name": tool_name,
        "args": None if args is None else dict(args),
        "args_schema": None if args_schema is None else dict(args_schema),
        "payload": payload,
        "response_schema": None if response_schema is None else dict(response_schema),
        "tool_call_id": tool_call_id,
        "tool_description": tool_description,
        "agent": agent,
        "thread_id": thread_id,
        "context": None if context is None else dict(context),
        "tags": list(tags),
        "why": why,
        "queue": queue,
        "priority": priority,
        "allowed_decisions": list(
            OFFERED.get(kind, ()) if allowed_decisions is None else allowed_decisions
        ),
        "fixed": list(fixed),
        "redact": list(redact),
        "check_hint": check_hint,
        "expires_in": _seconds(expires_in),
        "execute_within": _seconds(execute_within),
        "outcome_within": _seconds(outcome_within),
    }
    require_fits(ref, sent)
    row = _row(owner, ref, sent)
    if interrupt_id is not None:
        row.pk = interrupt_id
    found = _found(row)
    if found is not None:
        return found
    event = interrupt_event(
        row,
        EventType.RAISED,
        actor=clients.actor_of_client(owner, via),
        at=owner.db_now,
        status=row.status,
        detail={"tool": row.tool_name, "queue": row.queue_id},
    )
    for name, value in head(event).items():
        setattr(row, name, value)
    row.submission = submission
    if limited:
        client_limits.require_queue(owner, queue)

    def work() -> None:
        if limited:
            client_limits.take_place(owner)
        row.save(using=alias(), force_insert=True)
        record_event(event)
        failpoints.reach("raise.before_commit")

    try:
        run_atomic(work)
        failpoints.reach("raise.after_commit")
    except IntegrityError as error:
        found = _found(row)
        if found is None:
            raise _taken() from error
        return found
    return RaiseReceipt(row.pk, InterruptStatus.PENDING)


def dedupe_key(client: AgentClient, ref: str) -> str:
    """Return the unique key of a client's request."""
    return canonical.key_digest("interrupt", "client", str(client.pk), ref)


def _seconds(span: timedelta | None) -> float | None:
    return None if span is None else span.total_seconds()


def _taken() -> KeyReused:
    return KeyReused("This id belongs to another request; nothing was stored.")


def _found(row: PendingInterrupt) -> RaiseReceipt | None:
    """Return the receipt of the row that this very request made before.

    Raises:
        KeyReused: The row was made by another request.
    """
    before = rows.interrupts().filter(dedupe_key=row.dedupe_key).first()
    if before is None:
        return None
    if before.policy.get("request") != row.policy["request"]:
        raise KeyReused(
            "This ref stands for another request; use a new one. Nothing was stored.",
            interrupt_id=str(before.pk),
        )
    return RaiseReceipt(before.pk, before.status, replayed=True)


def _row(owner: AgentClient, ref: str, sent: Mapping[str, Any]) -> PendingInterrupt:
    text = canonical.dumps(sent, max_bytes=None, max_depth=None)
    policy: dict[str, Any] = {
        "gated": True,
        "why": sent["why"] or "a remote agent asks",
        "request": canonical.digest(text),
        **{
            name: sent[name]
            for name in (
                "tags",
                "fixed",
                "redact",
                "check_hint",
                "expires_in",
                "execute_within",
                "outcome_within",
            )
        },
    }
    schema = sent["args_schema"]
    if schema is not None and isinstance(schema.get("properties"), dict):
        # The stored schema sorts its properties; people read the given order.
        policy["order"] = list(schema["properties"])
    queue = str(sent["queue"] or owner.queue_id)
    if not storable(queue) or queue not in queues.known([queue]):
        policy["queue_unknown"] = queue
        queue = DEFAULT_QUEUE
    row = PendingInterrupt(
        client_id=owner.pk,
        client_ref=ref,
        dedupe_key=dedupe_key(owner, ref),
        kind=sent["kind"],
        agent=sent["agent"] or owner.name,
        context=sent["context"] or {"messages": [], "metadata": {}},
        queue_id=queue,
        policy=policy,
        **{
            name: sent[name]
            for name in (
                "tool_name",
                "tool_call_id",
                "tool_description",
                "thread_id",
                "tags",
                "priority",
                "allowed_decisions",
                "payload",
                "response_schema",
            )
        },
    )
    wait = hitl_settings.expires_in
    if sent["expires_in"] is not None:
        wait = timedelta(seconds=sent["expires_in"])
    if wait is not None:
        row.expires_at = db_now_plus(wait)
    if sent["kind"] == InterruptKind.TOOL_CALL:
        _freeze(row, sent["args"], schema)
    return row


def _freeze(row: PendingInterrupt, args: Any, schema: Any) -> None:
    text = canonical.dumps(args, max_bytes=None, max_depth=None)
    row.args_text = text
    row.args = canonical.filterable(canonical.stored(text))
    row.args_digest = row.requested_digest = canonical.digest(text)
    if schema is not None:
        row.args_schema = schema
        row.schema_digest = canonical.digest(
            canonical.dumps(schema, max_bytes=None, max_depth=None)
        )
