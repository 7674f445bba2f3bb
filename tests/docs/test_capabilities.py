"""The table of what each kind of agent can do says what the kinds declare."""

from __future__ import annotations

import re
import tomllib
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from hitl_approvals.agents.capabilities import (
    DISTRIBUTIONS,
    KINDS,
    capabilities_of,
    module_of,
)
from tests.docs.blocks import DOCS, ROOT
from tests.docs.tables import code, tables_of

PAGE = DOCS / "how-to" / "bring-your-own-framework.md"
OUTLINE = [
    "What it does",
    "Install",
    "Declare",
    "A complete example",
    "What the reviewer sees",
    "What runs again at resume",
    "What it declares",
    "Limits",
    "Versions and drift",
]
"""Of the page of every kind."""
IN_WORDS = {
    "partial_resume": "The framework could go on with some decisions open",
    "native_edit": "Edited arguments are known to the loop",
    "reject_text": "The model reads the reason of a refusal",
    "questions": 'The agent can ask a question beside "may this run?"',
    "replays_replies": "Recorded replies are replayed",
    "durability": "Who keeps the turn while it waits",
    "state_format": "Form of the state",
    "streaming": "Streaming",
}
"""What a page asks in words, of each thing that a kind declares."""
VALUES: dict[object, str] = {
    "package": "this package",
    ("langgraph", "framework"): "LangGraph",
    "json": "JSON",
    ("langgraph", "external"): "outside of the turn's row",
}
"""What it answers, where that is not what the code has."""


def test_the_table_says_what_the_kinds_declare() -> None:
    table = tables_of(PAGE)["Kinds that come with it"]

    documented = {code(row.pop("kind")): row for row in table}

    assert documented == {
        kind: {name: written(value) for name, value in declared(kind).items()}
        for kind in KINDS
        if find_spec(module_of(kind))
    }


@pytest.mark.parametrize("kind", DISTRIBUTIONS)
def test_the_page_of_a_kind_has_the_outline_of_all(kind: str) -> None:
    text = page_of(kind).read_text(encoding="utf-8")

    headings = re.findall(r"^## (.+)$", text, re.MULTILINE)

    assert [one for one in headings if one in OUTLINE] == OUTLINE


@pytest.mark.parametrize("kind", DISTRIBUTIONS)
def test_the_page_of_a_kind_says_what_it_declares(kind: str) -> None:
    names = list(declared(kind))
    told_of = declarations(kind)

    # One row with a column each, or a row each in words.
    assert list(told_of) in (names, [IN_WORDS[name] for name in names])
    for name, told in zip(names, told_of.values(), strict=True):
        value = declared(kind)[name]
        words = VALUES.get((kind, value), VALUES.get(value, written(value)))
        assert told.startswith(words), name
        # What is added to a "no" or a name is a word of its own.
        assert not told.removeprefix(words)[:1].isalnum(), name


def test_the_guide_tells_the_outline() -> None:
    text = PAGE.read_text(encoding="utf-8")
    told = text.partition("same place:")[2].partition(".")[0]

    assert [one.strip() for one in told.split(";")] == [
        one[0].lower() + one[1:] for one in OUTLINE
    ]


def test_every_kind_that_needs_a_framework_has_an_extra_for_it() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]

    for kind, distribution in DISTRIBUTIONS.items():
        assert kind in KINDS
        needed = extras[kind.replace("_", "-")]
        assert [one for one in needed if one.startswith(f"{distribution}>=")], kind


def page_of(kind: str) -> Path:
    return DOCS / "how-to" / f"{kind.replace('_', '-')}.md"


def declarations(kind: str) -> dict[str, str]:
    """Return what a page says of each thing that a kind declares, in its order."""
    text = page_of(kind).read_text(encoding="utf-8")
    section = text.partition("## What it declares\n")[2].partition("\n## ")[0]
    first, _, *rest = re.findall(r"^\| (.+?) ?\|$", section, re.MULTILINE)
    if len(rest) == 1:
        return dict(zip(first.split(" | "), rest[0].split(" | "), strict=True))
    return dict(row.split(" | ") for row in rest)


def declared(kind: str) -> dict[str, Any]:
    return asdict(capabilities_of(kind))


def written(value: bool | str) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value
