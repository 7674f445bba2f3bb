"""What one look at the site comes to: a line with a level, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from enum import IntEnum
from typing import Any


class Level(IntEnum):
    """How bad it is; the number is an exit code."""

    OK = 0
    WARN = 1
    """Somebody should look when there is time."""
    FAIL = 2
    """Turns do not go on, or will not."""


@dataclass(frozen=True, slots=True)
class Line:
    """One thing that was looked at."""

    name: str
    level: Level
    text: str
    advice: str = ""
    """What to do; empty when all is well."""
    facts: dict[str, Any] = field(default_factory=dict)
    """The numbers behind the text, as JSON, for programs."""

    def as_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "level": self.level.name,
            "text": self.text,
            "advice": self.advice,
            "facts": self.facts,
        }


def worst(lines: Iterable[Line]) -> Level:
    """Return the level of the worst line; without any, all is well."""
    return max((line.level for line in lines), default=Level.OK)


def spoken(span: timedelta) -> str:
    """Return a duration as people say it, in its one or two largest units."""
    seconds = max(int(span.total_seconds()), 0)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    parts = [(days, "d"), (hours, "h"), (minutes, "min"), (seconds, "s")]
    said = [f"{number} {unit}" for number, unit in parts if number]
    return " ".join(said[:2]) or "0 s"


def counted(number: int, one: str, many: str) -> str:
    """Return a number with its noun; none is spelled out."""
    return f"{number or 'No'} {one if number == 1 else many}"
