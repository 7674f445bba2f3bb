"""A tool as the gate sees it: a name, a signature that reads arguments, a body.

Our tools and typed functions read through pydantic, other functions through their plain
signature. Either way the arguments are JSON before anybody is asked about them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from hitl_approvals import canonical
from hitl_approvals.coercion import as_json, does_not_fit
from hitl_approvals.exceptions import (
    HitlConfigurationError,
    PayloadRejected,
    ToolFailed,
    ToolNotStarted,
)
from hitl_approvals.registry import Tool
from hitl_approvals.schemas import ToolSignature

_ADAPTERS = 256
"""How many signatures are kept; agents have a few dozen tools."""


@dataclass(frozen=True, slots=True)
class Target:
    """What a call would run."""

    name: str
    description: str
    function: Callable[..., Any]
    typed: ToolSignature | None
    """None for a function whose parameters have no types that JSON can carry."""
    tags: tuple[str, ...] = ()
    allowed_decisions: tuple[str, ...] | None = None
    """What the tool's own declaration allows; None if it has none."""
    fixed: tuple[str, ...] = ()
    redact: tuple[str, ...] = ()
    check_hint: str = ""
    clean_errors: tuple[type[Exception], ...] = (ToolFailed, ToolNotStarted)
    """What these say: nothing happened. Of any other exception, nobody knows."""

    @classmethod
    def of(cls, tool: Any) -> Target:
        """Return the target of one of our tools, or of any function.

        Raises:
            TypeError: It is neither.
        """
        if isinstance(tool, Tool):
            return cls(
                name=tool.name,
                description=tool.description,
                function=tool.function,
                typed=tool.signature,
                tags=tool.tags,
                allowed_decisions=tool.allowed_decisions,
                fixed=tool.fixed,
                redact=tool.redact,
                check_hint=tool.check_hint,
                clean_errors=(*tool.clean_errors, ToolNotStarted),
            )
        if not callable(tool):
            raise TypeError(
                f"A tool is a function or made by @tool; got a {type(tool).__name__}."
            )
        name = getattr(tool, "__name__", None) or type(tool).__name__
        typed = _typed(tool, name)
        described = inspect.getdoc(tool) if typed is None else typed.description
        return cls(name, described or "", tool, typed)

    @property
    def args_schema(self) -> dict[str, Any] | None:
        """JSON schema of the arguments, where the types say one."""
        return None if self.typed is None else self.typed.args_schema

    def named(self, args: tuple[Any, ...], options: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments of a plain call by their names.

        Raises:
            TypeError: They do not fit the signature.
        """
        signature = inspect.signature(self.function)
        named = dict(signature.bind(*args, **options).arguments)
        if extra := _of_kind(signature, inspect.Parameter.VAR_KEYWORD):
            named.update(named.pop(extra, {}))
        return named

    def read(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments as JSON, as the tool's own validation reads them.

        Raises:
            PayloadRejected: They do not fit, or are not JSON.
        """
        if self.typed is not None:
            plain: Any = self.typed.dump_args(self.typed.coerce(args))
        else:
            plain = as_json(dict(args))
            self._bound(plain)
        canonical.dumps(plain)  # for its limits
        return dict(plain)

    def values(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """Return what `read` returned as the values that the function takes."""
        return dict(args) if self.typed is None else self.typed.coerce(args)

    def prepared(
        self, args: Mapping[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return positional and keyword arguments for the function."""
        if self.typed is not None:
            return (), self.typed.coerce(args)
        bound = self._bound(args)
        return bound.args, bound.kwargs

    def result_as_json(self, value: Any) -> Any:
        """Return a result as JSON, within the limits of what is kept.

        Raises:
            PayloadRejected: It is not JSON, too large or too deep.
        """
        plain = as_json(value) if self.typed is None else self.typed.dump_result(value)
        canonical.dumps(plain)
        return plain

    def result_from_json(self, value: Any) -> Any:
        """Return a kept result as the type that the function declares."""
        return value if self.typed is None else self.typed.load_result(value)

    def _bound(self, args: Mapping[str, Any]) -> inspect.BoundArguments:
        """Fit named arguments to a signature without types.

        Raises:
            PayloadRejected: They do not fit.
        """
        signature = inspect.signature(self.function)
        kinds = {
            name: parameter.kind for name, parameter in signature.parameters.items()
        }
        extra = _of_kind(signature, inspect.Parameter.VAR_KEYWORD)
        known = {name: args[name] for name in kinds if name in args and name != extra}
        bound = inspect.BoundArguments(signature, known)
        rest = {name: value for name, value in args.items() if name not in known}
        try:
            return signature.bind(*bound.args, **{**bound.kwargs, **rest})
        except TypeError as error:
            text = canonical.printable(str(error))
            raise does_not_fit(
                f"the arguments of {self.name}", [{"loc": "", "message": text}]
            ) from error


def _of_kind(signature: inspect.Signature, kind: Any) -> str | None:
    return next(
        (name for name, one in signature.parameters.items() if one.kind is kind), None
    )


def _typed(function: Callable[..., Any], name: str) -> ToolSignature | None:
    try:
        return _read(function, name)
    except TypeError:  # not hashable: read anew each time
        return _read.__wrapped__(function, name)


@lru_cache(maxsize=_ADAPTERS)
def _read(function: Callable[..., Any], name: str) -> ToolSignature | None:
    try:
        return ToolSignature.of(function, name=name)
    except (HitlConfigurationError, PayloadRejected, ValueError):
        return None
