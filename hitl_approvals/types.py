"""Frozen values that cross layers. Holds no behavior beyond construction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias
from uuid import UUID

if TYPE_CHECKING:
    from hitl_approvals.decisions import Decision
    from hitl_approvals.stores.base import InterruptRecord


class Person(Protocol):
    """What we need of a user; any swapped user model with permissions has it."""

    @property
    def pk(self) -> Any: ...

    @property
    def is_active(self) -> Any: ...

    def has_perm(self, perm: str, obj: Any = None) -> bool: ...

    def get_username(self) -> str: ...


@dataclass(frozen=True, slots=True)
class AgentPrincipal:
    """An agent client where a request has its user: nobody, with no right of a person.

    It is not active, so that what asks a user for an account, a right or a turn of its
    own finds none; what a client may do is asked by its `client_id`.
    """

    client_id: UUID
    name: str
    is_authenticated: ClassVar[bool] = True
    is_anonymous: ClassVar[bool] = False
    is_active: ClassVar[bool] = False
    is_staff: ClassVar[bool] = False
    is_superuser: ClassVar[bool] = False

    @property
    def pk(self) -> str:
        """What no user has: `None` would be whoever started a turn without a user."""
        return f"client:{self.client_id}"

    @property
    def id(self) -> str:
        return self.pk

    def has_perm(self, perm: str, obj: Any = None) -> bool:
        return False

    def has_perms(self, perm_list: Sequence[str], obj: Any = None) -> bool:
        return False

    def has_module_perms(self, app_label: str) -> bool:
        return False

    def get_username(self) -> str:
        return f"client {self.name}"

    def __str__(self) -> str:
        return self.get_username()


JSONValue: TypeAlias = (
    "bool | int | float | str | Sequence[JSONValue] | Mapping[str, JSONValue] | None"
)


@dataclass(frozen=True, slots=True)
class CallInfo:
    """One tool call as a policy predicate sees it."""

    tool_name: str
    description: str
    args: Mapping[str, Any]
    """Argument values coerced by the tool's signature; absent where a default applies."""
    agent: str
    turn_id: str
    thread_id: str
    trip: int
    """How many batches of calls this turn made before this one, from 0."""
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ActorInfo:
    """Who acted, as text that outlives the account."""

    user_id: str
    """Primary key of the user as text; empty for the system."""
    label: str
    via: str


@dataclass(frozen=True, slots=True)
class DecisionReceipt:
    """What the caller of `services.decide` is told."""

    interrupt_id: UUID
    turn_id: UUID | None
    decision: str
    revision: int
    replayed: bool = False
    """True when the same request was already stored and nothing was written now."""


@dataclass(frozen=True, slots=True)
class RaiseReceipt:
    """What a remote agent is told that asked for a decision."""

    interrupt_id: UUID
    status: str
    """Where the request stands: a repeat may find it decided already."""
    replayed: bool = False
    """True when the same request was already stored and nothing was written now."""


@dataclass(frozen=True, slots=True)
class ConsumedDecision:
    """A decision in the hands of the one process of a remote agent that fetched it."""

    interrupt_id: UUID
    decision: str
    """`approve`, `edit`, `reject`, `respond` or `expire`."""
    args: Mapping[str, Any] | None
    """The frozen arguments that may run, edited ones if edited; None: nothing may."""
    args_digest: str
    """Digest of `args`; empty where nothing may run."""
    value: JSONValue
    """The answer to a question."""
    reason: str
    decided_by: str
    decided_at: datetime
    execute_by: datetime | None
    """Until when an approval had to be fetched; None: at any time, or nothing may run."""
    outcome_due: datetime | None
    """Until when the outcome has to be reported; None where nothing may run."""
    status: str
    """Where the request stands now. Act on an approval only while this is `decided`."""
    replayed: bool = False
    """True when this key had fetched it before."""


@dataclass(frozen=True, slots=True)
class OutcomeReceipt:
    """What a remote agent is told that reported what came of its call."""

    interrupt_id: UUID
    status: str
    """`resolved`, `in_doubt` or `cancelled`: where the request stands now."""
    late: bool = False
    """True when somebody had dealt with it before; then the report is only noted."""
    replayed: bool = False
    """True when the same report was already stored and nothing was written now."""


@dataclass(frozen=True, slots=True)
class Applied:
    """A decision was recorded or claimed, and the agent ran as far as it could."""

    interrupt_id: str
    decision: Decision
    result: Any
    """What the agent returned; None while it is not completed."""
    status: str
    """The turn's status; over a store `completed`, `suspended`, `failed` or `claimed`."""
    waiting: int
    """How many interrupts the same turn or run waits for now."""
    error: Exception | None = None
    """Over a store: what the agent raised, or `InterruptSuspended`."""
    next_interrupt_id: str | None = None
    """Over a store: what the agent, run again, waits for now."""
    used: bool | None = None
    """Over a store: whether the agent asked for this very call again; None: it did not
    run here."""
    record: InterruptRecord | None = None
    """Over a store: the interrupt as it was claimed, for who applies it alone."""


@dataclass(frozen=True, slots=True)
class AlreadyResolved:
    """There was nothing left to decide: unknown, decided or withdrawn."""

    interrupt_id: str
