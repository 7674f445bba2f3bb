"""What the writes of the API were told where they met, as one table. Judges nothing."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from tests.concurrency.doors import Answer

_told: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
"""By situation and verb."""


def note(situation: str, verbs: Sequence[str], answers: Sequence[Answer]) -> None:
    """Remember what the two of a meeting were told."""
    for verb, answer in zip(verbs, answers, strict=True):
        _told[situation, verb][answer.word.strip()] += 1


def lines() -> Iterator[str]:
    """Yield a line for each verb in each situation, with how often it was told what."""
    before = ""
    for (situation, verb), counted in _told.items():
        if situation != before:
            yield f"\n{situation}"
            before = situation
        told = ", ".join(f"{word} x{number}" for word, number in counted.most_common())
        yield f"  {verb:12}  {told}"
    if _told:
        sides = sum(counted.total() for counted in _told.values())
        yield f"\nraces over HTTP: situations={len({s for s, _ in _told})} meetings={sides // 2}"
