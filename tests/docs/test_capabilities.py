"""The table of what each kind of agent can do says what the kinds declare."""

from __future__ import annotations

import tomllib
from dataclasses import asdict
from importlib.util import find_spec
from typing import Any

from hitl_approvals.agents.capabilities import (
    DISTRIBUTIONS,
    KINDS,
    capabilities_of,
    module_of,
)
from tests.docs.blocks import DOCS, ROOT
from tests.docs.tables import code, tables_of

PAGE = DOCS / "how-to" / "bring-your-own-framework.md"


def test_the_table_says_what_the_kinds_declare() -> None:
    table = tables_of(PAGE)["Kinds that come with it"]

    documented = {code(row.pop("kind")): row for row in table}

    assert documented == {
        kind: {name: written(value) for name, value in declared(kind).items()}
        for kind in KINDS
        if find_spec(module_of(kind))
    }


def test_every_kind_that_needs_a_framework_has_an_extra_for_it() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]

    for kind, distribution in DISTRIBUTIONS.items():
        assert kind in KINDS
        needed = extras[kind.replace("_", "-")]
        assert [one for one in needed if one.startswith(f"{distribution}>=")], kind


def declared(kind: str) -> dict[str, Any]:
    return asdict(capabilities_of(kind))


def written(value: bool | str) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value
