"""Reading a model's tool calls: shape, arguments, key, policy. Runs nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from hitl_approvals import canonical, results
from hitl_approvals.conf import hitl_settings
from hitl_approvals.enums import InterruptKind
from hitl_approvals.exceptions import PayloadRejected
from hitl_approvals.models import PendingInterrupt, TurnStep
from hitl_approvals.policies import Verdict, evaluate_policy
from hitl_approvals.registry import Tool
from hitl_approvals.services.requests import Request
from hitl_approvals.services.run import Run
from hitl_approvals.text import cleaned
from hitl_approvals.types import CallInfo


@dataclass(slots=True)
class Call:
    """One call of a batch, as far as it could be read."""

    id: str
    name: str
    key: str
    dedupe_key: str
    position: int = 0
    tool: Tool[Any, Any] | None = None
    args_text: str = "{}"
    """Canonical text of the arguments as the signature reads them: what may run."""
    requested_digest: str = ""
    """Digest of the model's own arguments."""
    problem: str = ""
    """What is wrong with the call, for the model; such a call never runs."""
    step: TurnStep | None = None
    interrupt: PendingInterrupt | None = None
    verdict: Verdict | None = None
    supersedes: UUID | None = None
    """The interrupt in whose place a person wanted this one."""

    @property
    def gated(self) -> bool:
        """True if a person has to decide, or has decided, whether it runs."""
        return self.interrupt is not None or (
            self.verdict is not None and self.verdict.gated
        )


def call_key(run: Run, origin: str, label: str, ordinal: int) -> str:
    """Return the key of a call: the reply it came from, its id or tool, and which one."""
    return run.key("call", origin, label, ordinal)


def read_args(call: Call, raw: Any) -> None:
    """Fill in the digest of what was asked and the text of what may run.

    The signature reads the arguments once, here: a reviewer then sees `1` where the model
    wrote `true` for a number, and nothing that the tool would drop.
    """
    limits = {
        "max_bytes": hitl_settings.max_payload_bytes,
        "max_depth": hitl_settings.max_depth,
    }
    try:
        if isinstance(raw, (str, bytes)):
            raw = canonical.loads(raw or "{}", **limits)
        if not isinstance(raw, Mapping):
            call.problem = results.does_not_fit(
                "The arguments must be an object of names to values.", ()
            )
            return
        call.args_text = canonical.dumps(raw, **limits)
        call.requested_digest = canonical.digest(call.args_text)
        if call.tool is not None:
            signature = call.tool.signature
            read = signature.dump_args(signature.coerce(raw))
            call.args_text = canonical.dumps(read, **limits)
    except PayloadRejected as error:
        call.problem = results.does_not_fit(error.detail, error.errors)


def coerced(tool: Tool[Any, Any], args_text: str) -> dict[str, Any]:
    """Return the Python values of canonical argument text.

    Raises:
        PayloadRejected: They do not fit the tool's signature.
    """
    args: Any = canonical.stored(args_text)
    return tool.signature.coerce(args)


def judge(run: Run, call: Call, *, trip: int) -> Verdict:
    """Ask the tool's policy, once, whether this call needs a person."""
    tool = call.tool
    assert tool is not None  # noqa: S101  only readable calls are judged
    return evaluate_policy(
        tool.requires_approval,
        CallInfo(
            tool_name=tool.name,
            description=tool.description,
            # Values of its own: a predicate that changes them changes nothing else.
            args=coerced(tool, call.args_text),
            agent=run.turn.agent,
            turn_id=str(run.turn.pk),
            thread_id=run.turn.thread_id,
            trip=trip,
            tags=tool.tags,
        ),
    )


def request_for(
    run: Run,
    call: Call,
    *,
    position: int,
    trip: int,
    messages: Sequence[Any] | None,
    reason: str,
) -> Request:
    """Freeze a call as the columns of its interrupt."""
    tool = call.tool
    assert tool is not None  # noqa: S101  only readable calls are asked for
    verdict = call.verdict or Verdict(gated=False, tags=(), why="no approval needed")
    tags = list(dict.fromkeys([*tool.tags, *verdict.tags]))
    context: dict[str, Any] = {
        "asked": run.turn.input,
        "trip": trip,
        "messages": excerpt(messages or ()),
        "agent_reason": reason[:4000],
        "metadata": run.metadata(),
    }
    repeat = _repeated(run, call)
    if repeat is not None:
        context["repeat_of"] = str(repeat.pk)
    return Request(
        key=call.key,
        kind=InterruptKind.TOOL_CALL,
        position=position,
        queue=tool.queue,
        expires_in=tool.expires_in,
        supersedes=call.supersedes,
        fields={
            "tool_name": tool.name,
            "tool_call_id": cleaned(call.id, 255),
            "tool_description": tool.description,
            "args_text": call.args_text,
            "args": canonical.filterable(canonical.stored(call.args_text)),
            "args_digest": canonical.digest(call.args_text),
            "requested_digest": call.requested_digest,
            "args_schema": tool.signature.args_schema,
            "schema_digest": tool.signature.schema_digest,
            "context": context,
            "tags": tags,
            "allowed_decisions": list(tool.allowed_decisions),
            "policy": {
                "gated": verdict.gated,
                "why": verdict.why,
                "tags": tags,
                **tool.declared(),
            },
        },
    )


def _repeated(run: Run, call: Call) -> PendingInterrupt | None:
    """Find an earlier interrupt of this turn for the very same call."""
    for row in run.interrupts.values():
        same = (row.tool_name, row.requested_digest) == (
            call.name,
            call.requested_digest,
        )
        if same and row.dedupe_key != call.dedupe_key:
            return row
    return None


def excerpt(messages: Sequence[Any]) -> list[Any]:
    """Return the last messages that fit the site's limit, in order, always JSON."""
    kept: list[Any] = []
    room = hitl_settings.max_context_bytes
    for message in reversed(messages):
        try:
            size = len(canonical.dumps(message, max_bytes=room))
        except PayloadRejected:
            break
        room -= size + 1
        kept.append(message)
        if room <= 0:
            break
    return kept[::-1]
