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
    table = tables_of(page_of(kind))["What it declares"]
    # One row with a column each, or a row each in words.
    said = [cell for row in table for cell in row.values()]

    for (name, value), told in zip(declared(kind).items(), said, strict=True):
        if isinstance(value, bool):
            assert told.startswith(written(value)), (name, told)


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


def declared(kind: str) -> dict[str, Any]:
    return asdict(capabilities_of(kind))


def written(value: bool | str) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value
