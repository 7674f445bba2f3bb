"""The README's links lead somewhere; Sphinx checks those of the other pages."""

from __future__ import annotations

import re

from tests.docs.blocks import README

_LINK = re.compile(r"\]\((?P<target>[^)#\s]+)")


def test_every_relative_link_of_the_readme_leads_to_a_file() -> None:
    targets = [m["target"] for m in _LINK.finditer(README.read_text(encoding="utf-8"))]
    relative = [target for target in targets if "://" not in target]

    missing = [one for one in relative if not (README.parent / one).is_file()]

    assert relative
    assert missing == []
