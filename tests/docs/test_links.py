"""What the pages point at is there; Sphinx checks the links among the docs."""

from __future__ import annotations

import re

from tests.docs.blocks import README, ROOT, pages

_TEST = re.compile(r"`(?P<path>tests/[\w/]+\.py)`")
_LINK = re.compile(r"\]\((?P<target>[^)#\s]+)")


def test_every_relative_link_of_the_readme_leads_to_a_file() -> None:
    targets = [m["target"] for m in _LINK.finditer(README.read_text(encoding="utf-8"))]
    relative = [target for target in targets if "://" not in target]

    missing = [one for one in relative if not (README.parent / one).is_file()]

    assert relative
    assert missing == []


def test_every_test_that_a_page_names_exists() -> None:
    named = {
        match["path"]
        for page in pages()
        for match in _TEST.finditer(page.read_text(encoding="utf-8"))
    }

    assert named
    assert [path for path in sorted(named) if not (ROOT / path).is_file()] == []
