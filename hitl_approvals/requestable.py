"""Requestable: what lets a tool be asked for by code, without any agent."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar

from asgiref.sync import sync_to_async

if TYPE_CHECKING:
    from hitl_approvals.models import AgentTurn

P = ParamSpec("P")
R = TypeVar("R")


class Requestable(Generic[P, R]):
    """The part of a tool that asks for one call of it."""

    function: Callable[P, R]

    def request(self, *args: P.args, **kwargs: P.kwargs) -> AgentTurn:
        """Ask for one call of this tool: approve, and a worker runs it.

        Joins the caller's transaction. `request_call` takes options beside the
        arguments.

        Returns:
            The turn that was made for it: `suspended` with the call as its interrupt,
            or `ready` if the tool's policy lets the call run without a person.

        Raises:
            PayloadRejected: The arguments do not fit; nothing was stored.
            UnsafeContext: Inside a turn, whose replay would ask again and again.
        """
        bound = inspect.signature(self.function).bind(*args, **kwargs).arguments
        # By dotted path: this layer stands below the rows.
        home: Any = import_module("hitl_approvals.agents.request")
        turn: AgentTurn = home.request_call(self, dict(bound))
        return turn

    async def arequest(self, *args: P.args, **kwargs: P.kwargs) -> AgentTurn:
        """Await `request`.

        Raises:
            PayloadRejected: The arguments do not fit; nothing was stored.
            UnsafeContext: Inside a turn.
        """
        ask = sync_to_async(self.request, thread_sensitive=True)
        turn: AgentTurn = await ask(*args, **kwargs)
        return turn
