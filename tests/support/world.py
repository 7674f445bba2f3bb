"""What tools did, how often the model was asked, and what the next call will meet."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable
from typing import Any

Body = Callable[..., Any]


class Crash(BaseException):
    """The process died here: no `except Exception` sees it, nothing is recorded."""


class World:
    """Outside of every transaction, like the world itself."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.effects: list[tuple[str, dict[str, Any]]] = []
        self.model_calls: list[str] = []
        self.keys: list[str] = []
        self.plans: dict[str, deque[Body]] = defaultdict(deque)
        self.found: Any = "unknown"
        self.looked_up: list[str] = []
        self.policy: Callable[[Any], Any] = lambda call: True
        self.policy_calls: list[Any] = []

    def act(self, tool: str, **args: Any) -> Any:
        """Do what the test planned for this call, else have the effect and return."""
        if self.plans[tool]:
            return self.plans[tool].popleft()(tool, args)
        return self.affect(tool, args)

    def affect(self, tool: str, args: dict[str, Any]) -> Any:
        self.effects.append((tool, args))
        return {"effect": len(self.effects)}

    def plan(self, tool: str, *bodies: Body) -> None:
        """Say what the next calls of a tool meet, one body each."""
        self.plans[tool].extend(bodies)

    def names(self) -> list[str]:
        """Return the names of the tools that had an effect, in order."""
        return [name for name, _args in self.effects]


world = World()


def raises(error: BaseException) -> Body:
    """Plan a call that fails before it has any effect."""

    def body(tool: str, args: dict[str, Any]) -> Any:
        raise error

    return body


def acts_then_raises(error: BaseException) -> Body:
    """Plan a call that has its effect and then fails."""

    def body(tool: str, args: dict[str, Any]) -> Any:
        world.affect(tool, args)
        raise error

    return body


def acts_then(work: Callable[[], Any]) -> Body:
    """Plan a call during which something else happens after its effect."""

    def body(tool: str, args: dict[str, Any]) -> Any:
        result = world.affect(tool, args)
        work()
        return result

    return body


def returns(value: Any) -> Body:
    """Plan a call with this result."""

    def body(tool: str, args: dict[str, Any]) -> Any:
        world.affect(tool, args)
        return value

    return body
