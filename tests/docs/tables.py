"""Reads the tables of a page. Knows nothing of what they say."""

from __future__ import annotations

from pathlib import Path

Table = list[dict[str, str]]


def tables_of(page: Path) -> dict[str, Table]:
    """Return the first table under each heading, as one dict a row."""
    found: dict[str, Table] = {}
    heading, columns = "", []
    for line in page.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            heading, columns = line.lstrip("# ").strip(), []
        elif not line.startswith("|"):
            continue
        elif not columns:
            columns = _cells(line)
        elif not set(line) <= set("|-: "):
            row = dict(zip(columns, _cells(line), strict=True))
            found.setdefault(heading, []).append(row)
    return found


def code(cell: str) -> str:
    """Return the code that a cell holds.

    Raises:
        ValueError: It is not one piece of code.
    """
    if not (cell.startswith("`") and cell.endswith("`") and cell.count("`") == 2):
        raise ValueError(f"not one piece of code: {cell}")
    return cell[1:-1]


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split(" | ")]
