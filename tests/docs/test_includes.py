"""A reader has what stands on the page: files that it shows in part must do by that part."""

from __future__ import annotations

import ast
import builtins
import re
from collections import defaultdict
from pathlib import Path

import pytest

from tests.docs.blocks import name_of, pages

_INCLUDE = re.compile(
    r"^```\{literalinclude\} (?P<file>\S+\.py)\n"
    r":language: python\n"
    r':start-after: "(?P<start>.+)"\n'
    r':end-before: "(?P<end>.+)"\n'
    r"```$",
    re.MULTILINE,
)


def shown(page: Path) -> dict[str, str]:
    """Return what a page shows of each file, in the page's order."""
    found: dict[str, str] = defaultdict(str)
    for include in _INCLUDE.finditer(page.read_text(encoding="utf-8")):
        text = (page.parent / include["file"]).read_text(encoding="utf-8")
        _, start, rest = text.partition(f"{include['start']}\n")
        part, end, _ = rest.partition(include["end"])
        assert start, include["start"]
        assert end, include["end"]
        found[include["file"]] += part
    return found


def unknown_names(code: str) -> set[str]:
    """Return the names that a piece of code reads and that nothing in it defines."""
    read, defined = set(), set(dir(builtins))
    for node in ast.walk(ast.parse(code)):
        match node:
            case ast.Name(id=name, ctx=ast.Load()):
                read.add(name)
            case ast.Name(id=name):
                defined.add(name)
            case ast.arg(arg=name) | ast.FunctionDef(name=name):
                defined.add(name)
            case ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                defined.add(name)
            case ast.alias(name=name, asname=other):
                defined.add(other or name.partition(".")[0])
    return read - defined


SHOWN = [
    pytest.param(code, id=f"{name_of(page)}:{file}")
    for page in pages()
    for file, code in shown(page).items()
]


def test_every_include_of_python_is_read_here() -> None:
    texts = [page.read_text(encoding="utf-8") for page in pages()]

    for text in texts:
        includes = re.findall(r"^```\{literalinclude\} \S+\.py$", text, re.MULTILINE)
        assert len(_INCLUDE.findall(text)) == len(includes)
    assert SHOWN


@pytest.mark.parametrize("code", SHOWN)
def test_what_a_page_shows_of_a_file_needs_nothing_that_it_hides(code: str) -> None:
    assert unknown_names(code) == set()


def test_a_workflow_that_a_page_shows_can_be_started() -> None:
    code = {param.id: str(param.values[0]) for param in SHOWN}
    workflows = [name for name in code if str(name).endswith("_workflow.py")]

    assert workflows
    assert [one for one in workflows if "__main__" not in code[one]] == []
