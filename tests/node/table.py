"""What an agent that was killed at one place comes to, once it has been started again.

The page on agents in any language shows this table, and every line of it is played.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.node.gate import Moment, Step


@dataclass(frozen=True)
class End:
    """What is there when the job is over."""

    refunds: int
    status: str


@dataclass(frozen=True)
class Line:
    """A place where it is killed, what it finds of itself, and what comes of it."""

    step: Step
    moment: Moment
    knows: tuple[str, ...]
    """The facts that are on disk when it is killed."""
    honoured: End
    """Where the payment system honours an Idempotency-Key."""
    alone: End
    """Where it does not, and nobody can be asked."""


ONCE = End(1, "resolved")
LINES = (
    Line("raise", "before", (), ONCE, ONCE),
    Line("raise", "after", (), ONCE, ONCE),
    Line("wait", "before", (), ONCE, ONCE),
    Line("wait", "after", (), ONCE, ONCE),
    Line("consume", "before", ("key",), ONCE, ONCE),
    Line("consume", "after", ("key",), ONCE, ONCE),
    Line("act", "before", ("key", "acting"), ONCE, End(0, "in_doubt")),
    Line("act", "after", ("key", "acting"), ONCE, End(1, "in_doubt")),
    Line("report", "before", ("key", "acting", "outcome"), ONCE, ONCE),
    Line("report", "after", ("key", "acting", "outcome"), ONCE, ONCE),
)
