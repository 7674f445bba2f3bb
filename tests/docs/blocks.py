"""Reads the code blocks of a page and what its comments say about them. Runs nothing.

A comment directly above a block says what it is for:

    <!-- file: shop/agents.py -->       the block is (appended to) this file of the site
    <!-- test: skip why -->             the block is compiled only
    <!-- test: output -->               the block is what the Python block above it prints

A comment may hold code that readers are not shown:

    <!-- test: hidden                   Python that runs between the blocks
    assert ...
    -->
    <!-- hidden file: shop/llm.py
    ...
    -->
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
DOCS = ROOT / "docs"
README = ROOT / "README.md"

_FENCE = re.compile(r"^(?P<fence>`{3,})(?P<language>[\w{}-]*)(?:\s.*)?$")
_WORD = re.compile(r"^<!-- (?P<what>file|test): (?P<rest>.+?) -->$")
_HIDDEN = re.compile(r"^<!-- (?P<what>test: hidden|hidden file: (?P<path>\S+))$")


@dataclass(frozen=True, slots=True)
class Block:
    """One block of code on a page."""

    page: str
    line: int
    """Where its first line of code stands."""
    language: str
    text: str
    file: str = ""
    """The file of the site that it belongs to, if it is a file's content."""
    skip: str = ""
    """Why it is not run, if it is not."""
    is_output: bool = False

    @property
    def runs(self) -> bool:
        return self.language == "python" and not self.file and not self.skip


def pages() -> list[Path]:
    """Return every page that people read, the README first."""
    found = [path for path in DOCS.rglob("*.md") if "_build" not in path.parts]
    return [README, *sorted(found)]


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def blocks_of(page: Path) -> list[Block]:
    """Return the blocks of a page in their order."""
    return parse(page.read_text(encoding="utf-8"), name_of(page))


def parse(text: str, page: str) -> list[Block]:
    """Return the blocks of a page's text.

    Raises:
        ValueError: A block or a hidden comment does not end.
    """
    lines = text.splitlines()
    found: list[Block] = []
    word: re.Match[str] | None = None
    at = 0
    while at < len(lines):
        line = lines[at]
        if fence := _FENCE.match(line):
            body = _body(lines, at, fence["fence"], page)
            found.append(_block(page, at, fence["language"], body, word))
            at += len(body) + 1
        elif hidden := _HIDDEN.match(line):
            body = _body(lines, at, "-->", page)
            code = "\n".join(body)
            path = hidden["path"] or ""
            found.append(Block(page, at + 2, "python", code, file=path))
            at += len(body) + 1
        if line.strip():
            word = _WORD.match(line)
        at += 1
    return found


def _body(lines: list[str], start: int, end: str, page: str) -> list[str]:
    for at in range(start + 1, len(lines)):
        if lines[at].rstrip() == end:
            return lines[start + 1 : at]
    raise ValueError(f"{page}:{start + 1}: nothing ends what begins here")


def _block(
    page: str, at: int, language: str, body: list[str], word: re.Match[str] | None
) -> Block:
    block = Block(page, at + 2, language, "\n".join(body))
    if word is None:
        return block
    rest = word["rest"]
    if word["what"] == "file":
        return Block(page, at + 2, language, block.text, file=rest)
    if rest == "output":
        return Block(page, at + 2, language, block.text, is_output=True)
    if rest.startswith("skip "):
        return Block(page, at + 2, language, block.text, skip=rest[5:])
    raise ValueError(f"{page}:{at}: no such instruction: {rest}")
