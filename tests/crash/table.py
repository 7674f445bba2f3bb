"""The matrix as a table, and its last line. Judges nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from tests.crash.cases import DATABASES, PHASES, SIGNALS, TRANSPORTS, Case
from tests.crash.verdict import Verdict

Judged = tuple[Case, Verdict]
COLUMNS = [(d, t, s) for d in DATABASES for t in TRANSPORTS for s in SIGNALS]
WIDTH = 13


def lines(judged: Iterable[Judged]) -> list[str]:
    """Return the table: a line for point and mode, a column for the rest."""
    rows: dict[tuple[str, str, str], dict[tuple[str, str, str], str]] = {}
    for case, verdict in judged:
        column = (case.database, case.transport, case.signal)
        rows.setdefault(case.row, {})[column] = verdict.word
    told = []
    for phase, about in PHASES.items():
        found = {row: cells for row, cells in rows.items() if row[0] == phase}
        if not found:
            continue
        told += ["", f"{phase}: {about}", *_head()]
        for (_phase, point, mode), cells in sorted(found.items(), key=_order):
            words = "".join(f"{cells.get(one, '-'):<{WIDTH}}" for one in COLUMNS)
            told.append(f"{point:<38}{mode:<15}{words}".rstrip())
    return told


def last_line(judged: Iterable[Judged]) -> str:
    """Return the line that the command ends with."""
    counts: Counter[str] = Counter()
    for _case, verdict in judged:
        counts["cases"] += 1
        for name in ("lost", "doubled", "wrong"):
            counts[name] += bool(getattr(verdict, name))
    return (
        f"crash matrix: cases={counts['cases']} lost={counts['lost']} "
        f"doubled={counts['doubled']} wrong={counts['wrong']}"
    )


def complaint(case: Case, verdict: Verdict) -> str:
    """Say what is wrong with a case, with the end of its processes' log."""
    faults = [
        f"  {name}: {text}"
        for name in ("lost", "doubled", "wrong")
        for text in getattr(verdict, name)
    ]
    return "\n".join([f"*** {case.name}", *faults, verdict.log])


def _head() -> list[str]:
    short = {"postgresql": "PostgreSQL", "sqlite": "SQLite"}
    first, second = "", ""
    for database, transport, number in COLUMNS:
        name = short[database] if (transport, number) == ("celery", "kill") else ""
        first += f"{name:<{WIDTH}}"
        second += f"{transport[:6]} {number:<{WIDTH - 7}}"
    pad = " " * 53
    return [(pad + first).rstrip(), (pad + second).rstrip()]


def _order(item: tuple[tuple[str, str, str], object]) -> tuple[int, str, str]:
    from hitl_approvals.failpoints import POINTS

    (_phase, point, mode), _cells = item
    name = point.partition(" ")[0]
    return POINTS.index(name) if name in POINTS else 0, point, mode
