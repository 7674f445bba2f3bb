"""What an interrupt store is, and the two values that it keeps. No ORM, no settings, no clock.

A store has to answer one question safely: who may apply this decision? `take` is the
answer, and it is atomic: the first key wins, and the same key is answered again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Protocol, TypeAlias, runtime_checkable

from hitl_approvals import canonical
from hitl_approvals.decisions import Decision, decision_body, parse_decision
from hitl_approvals.exceptions import InterruptConflict, PayloadRejected
from hitl_approvals.types import Person

PENDING, DECIDED, TAKEN = "pending", "decided", "taken"
"""Values of `InterruptRecord.status`; `decided` needs a store that records decisions."""

ALLOWED_DECISIONS = ("approve", "edit", "reject")
"""What a person may say to a tool call."""


@dataclass(frozen=True, slots=True)
class ApprovalRequest:
    """One gated call as a person is asked about it; plain JSON throughout."""

    interrupt_id: str
    tool_name: str
    args: Mapping[str, Any]
    """Exactly what would run if it is approved."""
    digest: str
    """Digest of the model's own arguments; a seeded decision answers these only."""
    tool_description: str = ""
    args_schema: Mapping[str, Any] | None = None
    tool_call_id: str = ""
    occurrence: int = 1
    """The how-manieth call of this tool with these arguments in its run."""
    gate: str = "human-approval"
    agent: str = ""
    thread_id: str = ""
    trip: int = 0
    """How many gated or free calls the run made before this one."""
    original_input: Any = None
    """What the agent was asked; a re-run asks it again."""
    input_kept: bool = True
    """False if there was no input, or none that JSON can carry."""
    tags: tuple[str, ...] = ()
    why: str = ""
    """The policy's one sentence on why a person is asked."""
    allowed_decisions: tuple[str, ...] = ALLOWED_DECISIONS
    fixed: tuple[str, ...] = ()
    """Names of arguments that an edit must leave alone."""
    redact: tuple[str, ...] = ()
    """Names of arguments that are not shown to everybody."""
    check_hint: str = ""
    """How a reviewer finds out whether a call in doubt happened."""
    requested_at: str = ""
    """UTC, ISO 8601 with a `Z`."""
    journal: tuple[Mapping[str, Any], ...] = ()
    """What became of the gated calls before this one; a re-run replays them."""

    def to_json(self) -> dict[str, Any]:
        """Return the request as exact dicts, lists and scalars.

        Raises:
            PayloadRejected: Something in it is not JSON.
        """
        plain = {each.name: getattr(self, each.name) for each in fields(self)}
        copied: Any = canonical.stored(
            canonical.dumps(plain, max_bytes=None, max_depth=None)
        )
        return dict(copied)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> ApprovalRequest:
        """Return the request that `to_json` wrote; what it does not know is left out.

        Raises:
            PayloadRejected: It is not one.
        """
        known = {each.name for each in fields(cls)}
        given = {name: item for name, item in value.items() if name in known}
        for name in ("tags", "allowed_decisions", "fixed", "redact", "journal"):
            if name in given:
                given[name] = tuple(given[name])
        try:
            return cls(**given)
        except TypeError as error:
            raise PayloadRejected(
                f"This is no approval request: {error}", reason="does_not_fit"
            ) from error


@dataclass(frozen=True, slots=True)
class InterruptRecord:
    """One interrupt as a store keeps it."""

    interrupt_id: str
    request: ApprovalRequest
    status: str = PENDING
    saved_at: str = ""
    """UTC, ISO 8601 with a `Z`."""
    decision: Decision | None = None
    """What was decided, in a store that records decisions."""
    key: str | None = field(default=None)
    """Whose claim took it; None while nobody has. What `take` returns holds the key
    itself; what `load` and `list` return may hold a digest of it."""

    @property
    def content(self) -> str:
        """Canonical text of what was asked: two records with the same are one request.

        Two things are left out: the time, because a handler that is called again tells
        another, and the journal, which is written by the gate.
        """
        asked = self.request.to_json()
        for name in ("journal", "requested_at"):
            del asked[name]
        return canonical.dumps(asked, max_bytes=None, max_depth=None)

    def to_text(self) -> str:
        """Return the record as canonical JSON text.

        Raises:
            PayloadRejected: Something in it is not JSON.
        """
        decision = None if self.decision is None else decision_body(self.decision)
        return canonical.dumps(
            {
                "interrupt_id": self.interrupt_id,
                "request": self.request.to_json(),
                "status": self.status,
                "saved_at": self.saved_at,
                "decision": decision,
                "key": self.key,
            },
            max_bytes=None,
            max_depth=None,
        )

    @classmethod
    def from_text(cls, text: str | bytes) -> InterruptRecord:
        """Return the record that `to_text` wrote.

        Raises:
            PayloadRejected: The text is no record.
        """
        value: Any = canonical.loads(text, max_bytes=None, max_depth=None)
        if not isinstance(value, dict) or not isinstance(value.get("request"), dict):
            raise PayloadRejected("This is no interrupt record.", reason="does_not_fit")
        decision = value.get("decision")
        return cls(
            interrupt_id=value["interrupt_id"],
            request=ApprovalRequest.from_json(value["request"]),
            status=value["status"],
            saved_at=value["saved_at"],
            decision=None if decision is None else parse_decision(decision),
            key=value["key"],
        )


Records: TypeAlias = list[InterruptRecord]
# By name, because the stores have a method that is called `list`.


def implements(store: object, protocol: type) -> bool:
    """Tell whether a store has every verb of a protocol, passed on or its own.

    Since Python 3.12 `isinstance` does not see what `__getattr__` passes on.
    """
    verbs = [name for name in dir(protocol) if not name.startswith("_")]
    return all(callable(getattr(store, name, None)) for name in verbs)


def conflict(interrupt_id: str) -> InterruptConflict:
    """Return the refusal of a second request under an id that is in use."""
    return InterruptConflict(
        f"The store holds another request under the id {interrupt_id!r}.",
        interrupt_id=interrupt_id,
    )


@runtime_checkable
class InterruptStore(Protocol):
    """Keeps interrupts between the process that asks and the one that resumes.

    `hitl_approvals.testing.InterruptStoreContract` tests whether a class is one.
    """

    def save(self, record: InterruptRecord) -> None:
        """Keep a new interrupt; the same id with the same content changes nothing.

        Raises:
            InterruptConflict: The id is in use for another request.
        """

    def load(self, interrupt_id: str) -> InterruptRecord | None:
        """Return an interrupt that is not settled yet, taken or not; else None."""

    def take(
        self, interrupt_id: str, *, key: str | None = None
    ) -> InterruptRecord | None:
        """Claim an interrupt, atomically; None if there is nothing to claim.

        The first key wins. The same key is answered again, so that a claim whose
        answer was lost on the way can be repeated; without a key, a new one is made.
        """

    def delete(self, interrupt_id: str) -> None:
        """Forget an interrupt; one that is not there is no error."""

    def list(self, prefix: str = "") -> Records:
        """Return what is not settled, ordered by id; the prefix of ids is literal."""

    def schema(self) -> str:
        """Return the reference DDL; empty where there is none to run."""

    async def asave(self, record: InterruptRecord) -> None: ...

    async def aload(self, interrupt_id: str) -> InterruptRecord | None: ...

    async def atake(
        self, interrupt_id: str, *, key: str | None = None
    ) -> InterruptRecord | None: ...

    async def adelete(self, interrupt_id: str) -> None: ...

    async def alist(self, prefix: str = "") -> Records: ...


@runtime_checkable
class ReleasingStore(InterruptStore, Protocol):
    """A store that can take a claim back whose decision was not used."""

    def release(self, interrupt_id: str, *, key: str) -> None:
        """Make an interrupt pending again if this key has it; else change nothing."""

    async def arelease(self, interrupt_id: str, *, key: str) -> None: ...


@runtime_checkable
class RecordingStore(InterruptStore, Protocol):
    """A store that also records who decided what, and what came of it.

    `resume` uses both where a store has them: the decision is on record before anything
    is claimed, and the outcome instead of a delete.
    """

    def decide(
        self,
        interrupt_id: str,
        decision: Decision,
        *,
        by: Person | None = None,
        via: str = "python",
    ) -> None:
        """Record a decision.

        Raises:
            InterruptNotFound: There is no such interrupt.
            TransitionNotAllowed: It is decided, expired or withdrawn already.
            HitlApprovalsError: The decision was refused; nothing was stored.
        """

    def report(
        self, interrupt_id: str, *, key: str, status: str, outcome: Any = None
    ) -> None:
        """Record what came of a taken call: `succeeded`, `failed` or `unknown`.

        `key` is the key that took it. `outcome` is JSON: the result, or what went wrong.
        """

    async def adecide(
        self,
        interrupt_id: str,
        decision: Decision,
        *,
        by: Person | None = None,
        via: str = "python",
    ) -> None: ...

    async def areport(
        self, interrupt_id: str, *, key: str, status: str, outcome: Any = None
    ) -> None: ...
