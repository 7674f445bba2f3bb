"""The three state machines as tables, and the docs page drawn from them. Touches no row.

A table maps each status to those that may follow it; the empty status stands for a row
that does not exist yet. Staying in a status (a lease renewed, a step started again under
a new fence) is no transition.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TypeAlias

from hitl_approvals.enums import OPEN_TURN, InterruptStatus, StepStatus, TurnStatus
from hitl_approvals.exceptions import TransitionNotAllowed

Table: TypeAlias = Mapping[str, frozenset[str]]

BIRTH = ""
"""The status of a row before its first one."""


def _table(rows: Mapping[str, Iterable[str]]) -> Table:
    return MappingProxyType(
        {str(status): frozenset(map(str, after)) for status, after in rows.items()}
    )


TURN: Table = _table(
    {
        # Running when it was started here; suspended when a call was asked for without
        # an agent, so that its turn begins with the question.
        BIRTH: (TurnStatus.READY, TurnStatus.RUNNING, TurnStatus.SUSPENDED),
        TurnStatus.READY: (
            TurnStatus.RUNNING,
            TurnStatus.SUSPENDED,  # an approval lapsed
            TurnStatus.NEEDS_ATTENTION,  # no worker takes it
            TurnStatus.CANCELLED,
        ),
        TurnStatus.RUNNING: (
            TurnStatus.READY,  # an agent's error with backoff, or a lapsed lease
            TurnStatus.SUSPENDED,
            TurnStatus.COMPLETED,
            TurnStatus.NEEDS_ATTENTION,
            TurnStatus.FAILED,
            TurnStatus.CANCELLED,
        ),
        TurnStatus.SUSPENDED: (
            TurnStatus.READY,  # everything is decided
            TurnStatus.CANCELLED,
        ),
        TurnStatus.COMPLETED: (),
        # A person retries or restarts; open doubts are asked first.
        TurnStatus.NEEDS_ATTENTION: (
            TurnStatus.READY,
            TurnStatus.SUSPENDED,
            TurnStatus.CANCELLED,
        ),
        TurnStatus.FAILED: (TurnStatus.READY, TurnStatus.SUSPENDED),
        TurnStatus.CANCELLED: (),
    }
)
"""What an agent turn may do next."""

INTERRUPT: Table = _table(
    {
        # In doubt when an ungated call's fate is unknown: it gets its row then. Resolved
        # or cancelled when it is a copy in a fork, of what its origin was told.
        BIRTH: (
            InterruptStatus.PENDING,
            InterruptStatus.IN_DOUBT,
            InterruptStatus.RESOLVED,
            InterruptStatus.CANCELLED,
        ),
        InterruptStatus.PENDING: (InterruptStatus.DECIDED, InterruptStatus.CANCELLED),
        InterruptStatus.DECIDED: (
            InterruptStatus.PENDING,  # the approval lapsed or the world changed
            InterruptStatus.IN_DOUBT,
            InterruptStatus.RESOLVED,
            InterruptStatus.CANCELLED,
        ),
        InterruptStatus.IN_DOUBT: (
            InterruptStatus.DECIDED,  # run it again
            InterruptStatus.RESOLVED,  # it happened
            InterruptStatus.CANCELLED,  # give up
        ),
        InterruptStatus.RESOLVED: (),
        InterruptStatus.CANCELLED: (),
    }
)
"""What a request for a decision may do next."""

STEP: Table = _table(
    {
        # A finished step with no start before it: model replies, nodes, reading tools.
        BIRTH: (StepStatus.STARTED, StepStatus.SUCCEEDED, StepStatus.FAILED),
        StepStatus.STARTED: (
            StepStatus.SUCCEEDED,
            StepStatus.FAILED,
            StepStatus.NOT_STARTED,
            StepStatus.UNKNOWN,
        ),
        StepStatus.NOT_STARTED: (StepStatus.STARTED,),
        StepStatus.UNKNOWN: (StepStatus.SUCCEEDED,),  # a person says it happened
        StepStatus.SUCCEEDED: (),
        StepStatus.FAILED: (),
    }
)
"""What a recorded step may do next."""


def check_transition(table: Table, from_: str, to: str) -> None:
    """Accept a transition that the table knows.

    Raises:
        TransitionNotAllowed: If it does not, or one of the statuses is unknown.
    """
    if to not in table.get(from_, ()):
        start = f'from "{from_}"' if from_ else "at the start"
        raise TransitionNotAllowed(
            f'A change {start} to "{to}" is not allowed.', from_=str(from_), to=str(to)
        )


def is_open(status: str) -> bool:
    """Return whether a turn in this status may still move by itself or be cancelled."""
    return status in OPEN_TURN


def mermaid(table: Table) -> str:
    """Return the table as the text of a mermaid state diagram."""
    lines = ["stateDiagram-v2"]
    for status, after in table.items():
        lines += [
            f"    {status or '[*]'} --> {other}" for other in table if other in after
        ]
        if not after:
            lines.append(f"    {status} --> [*]")
    return "\n".join(lines)


def page() -> str:
    """Return the reference page of the docs that shows all three diagrams."""
    parts = [
        "# States",
        "These diagrams are drawn from `hitl_approvals/transitions.py`, the tables that "
        "the code itself\nasks, by `python -m hitl_approvals.transitions`. A change that "
        "has no arrow here is refused with\n`transition_not_allowed`. Staying in a status "
        "is not drawn: a step that is `started` again under a new\nfence stays `started`.",
    ]
    for title, table in (
        ("Turn", TURN),
        ("Interrupt", INTERRUPT),
        ("Step", STEP),
    ):
        parts += [f"## {title}", f"```mermaid\n{mermaid(table)}\n```"]
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    sys.stdout.write(page())
