"""What a modeled turn asks for, and which guard a mutant leaves out."""

from __future__ import annotations

from dataclasses import dataclass, field

TRANSACTIONAL, IDEMPOTENT, LOOKUP, UNSAFE, QUESTION = "TILUQ"
MAX_ATTEMPTS = 2


@dataclass(frozen=True)
class World:
    """One configuration: a script, and how much may go wrong in one history.

    A script is a row of batches divided by `|`. A letter is a gated call of a mode
    (transactional, idempotent, look-up, unsafe) or a question; a small letter is a call
    that nobody has to approve, and those stand first in their batch.

    In a strict world nobody sleeps past a hard deadline and people answer doubts
    truthfully. In a loose one workers may wake up after every deadline, and people err.
    """

    script: str
    strict: bool = False
    crashes: int = 1
    zombies: int = 1
    """Leases that a living worker outlives."""
    reopenings: int = 1
    """Approvals that lapse, and doubts answered by "run it again"."""
    oddities: int = 1
    """Errors, refusals to start, turns that nobody claims."""
    forgeries: int = 0
    edits: bool = False
    started_here: bool = False
    """Whether turns also start claimed, or with a request and no agent."""
    sleepers: bool = False
    """Whether processes are followed that have lost their turn and can do no harm."""
    without: str = ""
    """The guards that are left out, by name."""

    @property
    def name(self) -> str:
        parts = [self.script, "strict" if self.strict else "loose"]
        parts += [
            f"{letter}{count}"
            for letter, count in (
                ("c", self.crashes),
                ("z", self.zombies),
                ("r", self.reopenings),
                ("o", self.oddities),
                ("f", self.forgeries),
            )
            if count
        ]
        parts += ["edits"] * self.edits + ["here"] * self.started_here
        parts += ["sleepers"] * self.sleepers
        parts += [f"without {self.without}"] * bool(self.without)
        return " ".join(parts)


@dataclass(frozen=True)
class Script:
    """A script, read: what may be asked of its calls by number."""

    text: str
    modes: str = field(init=False)
    free: tuple[bool, ...] = field(init=False)
    batch_of: tuple[int, ...] = field(init=False)
    """For each call its batch; one past the last is the end of the script."""
    begins: tuple[int, ...] = field(init=False)
    ends: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        batches = self.text.split("|")
        letters = "".join(batches)
        batch_of: list[int] = []
        begins, ends = [], []
        for number, batch in enumerate(batches):
            begins.append(len(batch_of))
            batch_of += [number] * len(batch)
            ends.append(len(batch_of))
        put = object.__setattr__
        put(self, "modes", letters.upper())
        put(self, "free", tuple(letter.islower() for letter in letters))
        put(self, "batch_of", (*batch_of, len(batches)))
        put(self, "begins", (*begins, len(batch_of)))
        put(self, "ends", tuple(ends))

    @property
    def count(self) -> int:
        """How many calls and questions there are."""
        return len(self.modes)
