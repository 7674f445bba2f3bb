"""How a run ends before its batch does: errors, visible stops, a turn that was taken."""

from __future__ import annotations

from tests.model.explore import SYSTEM, TROUBLE, Move
from tests.model.turn import labels
from tests.model.turn.rules import Rules
from tests.model.turn.state import NEEDS_ATTENTION, Draft, State


def raises(rules: Rules, state: State, number: int) -> Move[State]:
    """Let an error end the run: the turn is ready again, after a while."""
    draft = Draft(state)
    draft.oddities -= 1
    return _gives_back(rules, draft, number, TROUBLE, labels.RAISES)


def puts_off(rules: Rules, state: State, number: int, label: str) -> Move[State]:
    """End a run that cannot achieve more now."""
    return _gives_back(rules, Draft(state), number, SYSTEM, label)


def _gives_back(
    rules: Rules, draft: Draft, number: int, kind: str, label: str
) -> Move[State]:
    rules.flush(draft, number)
    draft.stop(number)
    rules.release(draft)
    return Move(kind, label, f"w{number}", rules.sealed(draft))


def closes(
    rules: Rules, state: State, number: int, status: str, label: str
) -> Move[State]:
    """End the turn early, because the agent's own code says so."""
    draft = Draft(state)
    draft.oddities -= 1
    rules.close(draft, number, status)
    return Move(TROUBLE, label, f"w{number}", rules.sealed(draft))


def needs_attention(
    rules: Rules, state: State, number: int, label: str, *, oddities: int = 0
) -> Move[State]:
    """Stop the turn where only a person moves it; decisions are kept."""
    draft = Draft(state)
    draft.oddities -= oddities
    rules.flush(draft, number)
    draft.stop(number)
    draft.turn = NEEDS_ATTENTION
    kind = TROUBLE if oddities else SYSTEM
    return Move(kind, label, f"w{number}", rules.sealed(draft))


def stops(
    rules: Rules, state: State, number: int, label: str = labels.STOPS
) -> Move[State]:
    """End a run that must not write any more; the lease, if it holds one, lapses."""
    draft = Draft(state)
    draft.stop(number)
    return Move(SYSTEM, label, f"w{number}", rules.sealed(draft))
