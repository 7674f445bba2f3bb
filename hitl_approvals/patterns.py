"""Searches text by somebody else's pattern in time that grows with the text, never faster.

Python's own `re` tries one way after the other, and there can be more ways than atoms;
here all ways go forward together. Knows no JSON and no schema.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from re import _constants as codes  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

MOST_STATES = 2000
"""How large a pattern may be, once its counted repeats are written out."""
Takes = Callable[[str], bool]
_CATEGORIES = {
    codes.CATEGORY_DIGIT: r"\d",
    codes.CATEGORY_NOT_DIGIT: r"\D",
    codes.CATEGORY_SPACE: r"\s",
    codes.CATEGORY_NOT_SPACE: r"\S",
    codes.CATEGORY_WORD: r"\w",
    codes.CATEGORY_NOT_WORD: r"\W",
}
_PLACES: dict[Any, Callable[[str, int], bool]] = {
    codes.AT_BEGINNING: lambda text, at: at == 0,
    codes.AT_BEGINNING_STRING: lambda text, at: at == 0,
    codes.AT_END: lambda text, at: text[at:] in ("", "\n"),
    codes.AT_END_STRING: lambda text, at: at == len(text),
    codes.AT_BOUNDARY: lambda text, at: _between_words(text, at),
    codes.AT_NON_BOUNDARY: lambda text, at: not _between_words(text, at),
}


class UnsupportedPatternError(ValueError):
    """A pattern looks around, refers back, sets flags, or is too large."""


class Pattern:
    """A pattern as states: each takes a character, asks for a place, or parts the way."""

    def __init__(self, text: str) -> None:
        """Read a pattern.

        Raises:
            re.error: It is none.
            UnsupportedPatternError: It cannot be searched for like this.
        """
        tree = parser.parse(text)
        self._flags = tree.state.flags
        if self._flags & ~(re.UNICODE | re.IGNORECASE | re.DOTALL):
            raise UnsupportedPatternError("a pattern that sets flags is not checked")
        self._takes: list[Takes | None] = [None]
        self._asks: list[Callable[[str, int], bool] | None] = [None]
        self._next: list[list[int]] = [[]]
        self._start = self._sequence(tree, 0)

    def found_in(self, text: str, spend: Callable[[int], None]) -> bool:
        """Tell whether `re.search` would find the pattern.

        Args:
            text: Where to look.
            spend: Is told of each step how many states it looks at; may raise.
        """
        states: set[int] = set()
        for at in range(len(text) + 1):
            states = self._reached({*states, self._start}, text, at)
            if 0 in states:
                return True
            spend(len(states) + 1)
            if at == len(text):
                break
            character = text[at]
            states = {
                following
                for state in states
                if (takes := self._takes[state]) is not None and takes(character)
                for following in self._next[state]
            }
        return False

    def _reached(self, states: Iterable[int], text: str, at: int) -> set[int]:
        """Return the states that are reached without taking a character."""
        found: set[int] = set()
        left = list(states)
        while left:
            state = left.pop()
            if state in found:
                continue
            found.add(state)
            asks = self._asks[state]
            if self._takes[state] is None and (asks is None or asks(text, at)):
                left += self._next[state]
        return found

    def _add(
        self,
        following: Sequence[int],
        *,
        takes: Takes | None = None,
        asks: Callable[[str, int], bool] | None = None,
    ) -> int:
        if len(self._next) >= MOST_STATES:
            raise UnsupportedPatternError("a pattern of this size is not checked")
        self._takes.append(takes)
        self._asks.append(asks)
        self._next.append(list(following))
        return len(self._next) - 1

    def _sequence(self, tree: Any, following: int) -> int:
        for operation, value in reversed(list(tree)):
            following = self._one(operation, value, following)
        return following

    def _one(self, operation: Any, value: Any, following: int) -> int:
        if operation is codes.BRANCH:
            return self._add([self._sequence(way, following) for way in value[1]])
        if operation is codes.SUBPATTERN and not (value[1] or value[2]):
            return self._sequence(value[3], following)
        if operation in (codes.MAX_REPEAT, codes.MIN_REPEAT):
            least, most, repeated = value
            return self._repeat(least, most, repeated, following)
        if operation is codes.AT and value in _PLACES:
            return self._add([following], asks=_PLACES[value])
        return self._add([following], takes=_taker(operation, value, self._flags))

    def _repeat(self, least: int, most: Any, tree: Any, following: int) -> int:
        if most is codes.MAXREPEAT:
            entry = self._add([following])
            self._next[entry].append(self._sequence(tree, entry))
        else:
            entry = following
            for _ in range(most - least):
                entry = self._add([self._sequence(tree, entry), following])
        for _ in range(least):
            entry = self._sequence(tree, entry)
        return entry


@lru_cache(maxsize=256)
def pattern(text: str) -> Pattern:
    """Return a pattern, read once.

    Raises:
        re.error: It is none.
        UnsupportedPatternError: It cannot be searched for like this.
    """
    return Pattern(text)


def _taker(operation: Any, value: Any, flags: int) -> Takes:
    """Return whether a character is one that an element of a pattern takes."""
    if operation is codes.ANY:
        return _anything if flags & re.DOTALL else "\n".__ne__
    if operation is codes.NOT_LITERAL:
        operation, value = codes.IN, [(codes.NEGATE, None), (codes.LITERAL, value)]
    if operation is codes.LITERAL:
        operation, value = codes.IN, [(codes.LITERAL, value)]
    if operation is not codes.IN:
        raise UnsupportedPatternError(
            "a pattern that looks around or refers back is not checked"
        )
    members = re.compile(f"[{''.join(_members(value))}]", flags & re.IGNORECASE)
    return lambda character: members.match(character) is not None


def _anything(_character: str) -> bool:
    return True


def _members(items: Any) -> Iterator[str]:
    """Yield a set of characters anew, in a spelling that means nothing else."""
    for operation, value in items:
        if operation is codes.NEGATE:
            yield "^"
        elif operation is codes.LITERAL:
            yield f"\\U{value:08x}"
        elif operation is codes.RANGE:
            yield f"\\U{value[0]:08x}-\\U{value[1]:08x}"
        else:
            yield _CATEGORIES[value]


def _between_words(text: str, at: int) -> bool:
    before = at > 0 and re.match(r"\w", text[at - 1]) is not None
    after = at < len(text) and re.match(r"\w", text[at]) is not None
    return before is not after
