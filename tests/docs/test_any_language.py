"""The page on agents in any language says what the agents are tested for."""

from __future__ import annotations

import re

from tests.docs.blocks import DOCS
from tests.docs.tables import tables_of
from tests.node.table import LINES, End
from tests.workspace import ROOT

PAGE = DOCS / "how-to" / "agent-in-any-language.md"
SCRIPTS = ROOT / "example_project" / "remote_agents"


def test_the_table_of_kills_is_the_one_that_is_played() -> None:
    told = [tuple(row.values()) for row in tables_of(PAGE)["After a crash"]]

    expected = [
        (
            f"before its {line.step} arrives"
            if line.moment == "before"
            else f"after the {line.step} is answered",
            ", ".join(f"`{fact}`" for fact in line.knows) or "nothing",
            _said(line.honoured),
            _said(line.alone),
        )
        for line in LINES
    ]
    assert told == expected


def test_both_agents_are_shown_whole() -> None:
    shown = re.findall(r"literalinclude\} (\S+)", PAGE.read_text(encoding="utf-8"))

    files = [(PAGE.parent / name).resolve() for name in shown]
    assert files == [SCRIPTS / "refund.sh", SCRIPTS / "refund.ts"]
    assert all(file.is_file() for file in files)


def test_every_fact_is_named_in_both_agents() -> None:
    facts = [
        row["fact"].strip("`") for row in tables_of(PAGE)["What it must not forget"]
    ]

    for name in ("refund.sh", "refund.ts"):
        script = (SCRIPTS / name).read_text(encoding="utf-8")
        noted = set(re.findall(r"""\bnote[ (]"?(\w+)""", script))
        assert noted - {"name"} == {*facts}, name


def _said(end: End) -> str:
    return f"{end.refunds}, `{end.status}`"
