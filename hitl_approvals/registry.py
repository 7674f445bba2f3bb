"""What this process knows to run: agents and tools, by name. No ORM, no clock."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import timedelta
from functools import update_wrapper
from typing import Any, Generic, ParamSpec, Protocol, TypeVar, cast, overload

from asgiref.sync import sync_to_async

from hitl_approvals.awaiting import awaited
from hitl_approvals.conf import hitl_settings
from hitl_approvals.enums import DecisionType, ToolMode
from hitl_approvals.exceptions import (
    HitlConfigurationError,
    NotInTurn,
    ToolFailed,
)
from hitl_approvals.requestable import Requestable
from hitl_approvals.schemas import ToolSignature
from hitl_approvals.text import storable

P = ParamSpec("P")
R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Any])

Seconds = float | int | timedelta


class CallGate(Protocol):
    """What a running turn offers to a tool that is called as a plain function."""

    def call_function(self, tool: Tool[Any, Any], args: dict[str, Any]) -> Any: ...


current_gate: ContextVar[CallGate | None] = ContextVar("hitl_gate", default=None)
"""The turn that is running in this context, so that third-party loops are gated too."""


class Tool(Requestable[P, R], Generic[P, R]):
    """A registered tool: its declaration, and the guarded function itself."""

    def __init__(self, function: Callable[P, R], **declared: Any) -> None:
        self.function = function
        self.name: str = declared.pop("name") or function.__name__
        self.requires_approval: Any = declared.pop("requires_approval")
        self.queue: str | None = declared.pop("queue")
        self.effect = _mode(self.name, declared.pop("effect"))
        self.effect_declared: bool = declared.pop("effect_declared")
        self.retention = _delta(declared.pop("retention"))
        self.lookup: Callable[..., Any] | None = declared.pop("lookup")
        self.timeout = _delta(declared.pop("timeout"))
        self.clean_errors: tuple[type[Exception], ...] = (
            ToolFailed,
            *declared.pop("clean_errors"),
        )
        self.precondition: Callable[..., Any] | None = declared.pop("precondition")
        self.allowed_decisions = _decisions(
            self.name, declared.pop("allowed_decisions")
        )
        self.fixed: tuple[str, ...] = tuple(declared.pop("fixed"))
        self.redact: tuple[str, ...] = tuple(declared.pop("redact"))
        self.check_hint: str = declared.pop("check_hint")
        self.expires_in = _delta(declared.pop("expires_in"))
        self.execute_within = _delta(declared.pop("execute_within"))
        self.tags: tuple[str, ...] = tuple(declared.pop("tags"))
        self.signature = ToolSignature.of(function, name=self.name)
        self._refuse_nonsense()
        update_wrapper(self, function)

    @property
    def is_async(self) -> bool:
        """Whether the function has to be awaited."""
        return inspect.iscoroutinefunction(self.function)

    @property
    def description(self) -> str:
        """What the tool does, from its docstring."""
        return self.signature.description

    def declared(self) -> dict[str, Any]:
        """Return what an interrupt keeps of the declaration, as JSON."""
        return {
            "mode": str(self.effect),
            "timeout": _seconds(self.timeout or hitl_settings.timeout),
            "expires_in": _seconds(self.expires_in),
            "execute_within": _seconds(self.execute_within),
            "fixed": list(self.fixed),
            "redact": list(self.redact),
            "check_hint": self.check_hint,
            # The stored schema sorts its properties; people read the signature.
            "order": list(self.signature.parameters),
        }

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run the tool through the gate of the turn that is running here.

        Raises:
            NotInTurn: There is no turn, and the tool is gated.
            ApprovalRejected: A reviewer refused the call.
        """
        gate = current_gate.get()
        if gate is None:
            if self.requires_approval is False:
                return self.function(*args, **kwargs)
            raise NotInTurn(
                f"`{self.name}` needs approval, and no turn is running here. Call it "
                f"from an agent, or `{self.name}.unguarded(...)` if you mean to run "
                "it without anybody's approval."
            )
        bound = dict(inspect.signature(self.function).bind(*args, **kwargs).arguments)
        if self.is_async:
            # The caller awaits what an async function returns, the gate's own as well.
            pending: Any = sync_to_async(gate.call_function)(self, bound)
            return cast("R", pending)
        result: R = gate.call_function(self, bound)
        return result

    def unguarded(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run the function itself: no gate, no ledger, no approval."""
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<Tool {self.name}>"

    def _refuse_nonsense(self) -> None:
        _refuse_name("Tool", self.name, 128)
        if self.is_async and self.effect == ToolMode.TRANSACTIONAL:
            raise HitlConfigurationError(
                f"Tool `{self.name}` is async and transactional; a transaction cannot "
                "span an await. Make it a plain function."
            )
        if (self.effect == ToolMode.LOOKUP) != (self.lookup is not None):
            raise HitlConfigurationError(
                f'Tool `{self.name}`: effect="lookup" and lookup=fn go together.'
            )
        if self.effect == ToolMode.IDEMPOTENT and self.retention is None:
            raise HitlConfigurationError(
                f'Tool `{self.name}`: effect="idempotent" needs retention=, the time '
                "for which the other side honors a key."
            )
        known = set(self.signature.args_schema.get("properties", {}))
        for option in ("fixed", "redact"):
            unknown = sorted(set(getattr(self, option)) - known)
            if unknown:
                raise HitlConfigurationError(
                    f"Tool `{self.name}`: {option}= names {', '.join(unknown)}, which "
                    "the function does not take."
                )


@dataclass(frozen=True, slots=True)
class AgentDefinition:
    """A registered agent: a name, its versions and what performs its turns."""

    name: str
    target: Any
    kind: str = "function"
    version: str = "1"
    accepts: tuple[str, ...] = ()
    tools: dict[str, Tool[Any, Any]] = field(default_factory=dict)

    @property
    def versions(self) -> tuple[str, ...]:
        """Versions of turns that this definition may run."""
        return (self.version, *self.accepts)


class Registry:
    """Names to definitions. A name means one thing; a second meaning is refused."""

    def __init__(self) -> None:
        self.agents: dict[str, AgentDefinition] = {}
        self.tools: dict[str, Tool[Any, Any]] = {}

    def add_agent(self, definition: AgentDefinition) -> None:
        """Register an agent.

        Raises:
            HitlConfigurationError: The name is taken by another function.
        """
        _refuse_other("agent", self.agents.get(definition.name), definition)
        self.agents[definition.name] = definition

    def add_tool(self, tool: Tool[Any, Any]) -> None:
        """Register a tool.

        Raises:
            HitlConfigurationError: The name is taken by another function.
        """
        _refuse_other("tool", self.tools.get(tool.name), tool)
        self.tools[tool.name] = tool

    def runnable(self) -> list[tuple[str, str]]:
        """Return the pairs of agent and version that this process may claim."""
        return [
            (name, version)
            for name, definition in self.agents.items()
            for version in definition.versions
        ]


registry = Registry()


def _refuse_other(what: str, old: Any, new: Any) -> None:
    if old is None:
        return
    before, now = (getattr(one, "target", None) or one.function for one in (old, new))
    if (before.__module__, before.__qualname__) != (now.__module__, now.__qualname__):
        raise HitlConfigurationError(
            f"Two {what}s are called `{new.name}`: {before.__module__}."
            f"{before.__qualname__} and {now.__module__}.{now.__qualname__}."
        )


_DEFAULTS: dict[str, Any] = {
    "name": None,
    "requires_approval": True,
    "queue": None,
    "effect": None,
    "retention": None,
    "lookup": None,
    "timeout": None,
    "clean_errors": (),
    "precondition": None,
    "allowed_decisions": ("approve", "edit", "reject"),
    "fixed": (),
    "redact": (),
    "check_hint": "",
    "expires_in": None,
    "execute_within": None,
    "tags": (),
}


@overload
def tool(function: Callable[P, R], /) -> Tool[P, R]: ...
@overload
def tool(
    *,
    name: str | None = None,
    requires_approval: Any = True,
    queue: str | None = None,
    effect: str | None = None,
    retention: Seconds | None = None,
    lookup: Callable[..., Any] | None = None,
    timeout: Seconds | None = None,
    clean_errors: Iterable[type[Exception]] = (),
    precondition: Callable[..., Any] | None = None,
    allowed_decisions: Sequence[str] = ("approve", "edit", "reject"),
    fixed: Iterable[str] = (),
    redact: Iterable[str] = (),
    check_hint: str = "",
    expires_in: Seconds | None = None,
    execute_within: Seconds | None = None,
    tags: Iterable[str] = (),
) -> Callable[[Callable[P, R]], Tool[P, R]]: ...


def tool(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Register a function as a tool that agents may call.

    Args:
        function: The function, when used without brackets.
        **options: `name`; `requires_approval` (True, False or a policy; a tool without
            it is gated); `queue` slug; `effect` (a `ToolMode`, default `unsafe`);
            `retention`, `timeout`, `expires_in`, `execute_within` in seconds or as
            timedelta; `lookup`; `clean_errors` (exceptions that mean nothing
            happened); `precondition`; `allowed_decisions`; `fixed` and `redact`
            (argument names); `check_hint`; `tags`.

    Raises:
        HitlConfigurationError: The declaration contradicts itself.
    """
    unknown = sorted(set(options) - set(_DEFAULTS))
    if unknown:
        raise HitlConfigurationError(f"@tool takes no {', '.join(unknown)}.")
    declared = {**_DEFAULTS, **options}
    declared["effect_declared"] = declared["effect"] is not None

    def register(target: Callable[..., Any]) -> Tool[Any, Any]:
        made: Tool[Any, Any] = Tool(target, **declared)
        registry.add_tool(made)
        return made

    return register if function is None else register(function)


def unregistered(function: Callable[[], Any], *, name: str) -> Tool[[], Any]:
    """Return a free, unsafe tool around a function that has no name of its own."""

    def body() -> Any:
        return awaited(function)

    declared = {**_DEFAULTS, "name": name, "requires_approval": False}
    return Tool(body, **declared, effect_declared=True)


def agent(
    name: str,
    *,
    tools: Iterable[Tool[Any, Any]] = (),
    version: str = "1",
    accepts: Iterable[str] = (),
    kind: str = "function",
) -> Callable[[F], F]:
    """Register what performs the turns of the agent `name`.

    Args:
        name: The agent's name in rows, API and admin.
        tools: The tools that it may call.
        version: Version of new turns; declared, never computed.
        accepts: Older versions whose turns this code may still run.
        kind: The module of `hitl_approvals.agents` that runs it.

    Raises:
        HitlConfigurationError: The name is taken, or something is not a tool.
    """
    _refuse_name("Agent", name, 100)
    given: list[Any] = list(tools)
    wrong = [one for one in given if not isinstance(one, Tool)]
    if wrong:
        raise HitlConfigurationError(
            f"Agent `{name}`: {wrong[0]!r} is not a tool; decorate it with @tool."
        )

    def register(target: F) -> F:
        registry.add_agent(
            AgentDefinition(
                name=name,
                target=target,
                kind=kind,
                version=str(version),
                accepts=tuple(str(one) for one in accepts),
                tools={one.name: one for one in given},
            )
        )
        return target

    return register


def _refuse_name(what: str, name: str, limit: int) -> None:
    if not name.strip() or len(name) > limit or not storable(name):
        raise HitlConfigurationError(
            f"{what} name {name!r}: use 1 to {limit} printable characters."
        )


def _mode(name: str, effect: str | None) -> ToolMode:
    try:
        return ToolMode(effect or ToolMode.UNSAFE)
    except ValueError:
        raise HitlConfigurationError(
            f"Tool `{name}`: effect={effect!r} is none of {', '.join(ToolMode.values)}."
        ) from None


def _decisions(name: str, allowed: Sequence[str]) -> tuple[str, ...]:
    offered = {DecisionType.APPROVE, DecisionType.EDIT, DecisionType.REJECT}
    wrong = [one for one in allowed if one not in offered]
    if wrong or not allowed:
        raise HitlConfigurationError(
            f"Tool `{name}`: allowed_decisions may hold approve, edit and reject; "
            f"got {list(allowed)!r}."
        )
    return tuple(str(one) for one in allowed)


def _seconds(value: timedelta | None) -> float | None:
    return None if value is None else value.total_seconds()


def _delta(value: Seconds | None) -> timedelta | None:
    if value is None or isinstance(value, timedelta):
        return value
    return timedelta(seconds=value)
