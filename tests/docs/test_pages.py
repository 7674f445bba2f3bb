"""Every Python block of the documentation runs, or at least compiles."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.blocks import README, Block, blocks_of, name_of, pages
from tests.docs.nursery import Nursery
from tests.docs.project import Site

PLAYED_ELSEWHERE = "docs/reference/api/"  # in tests/api/test_rest_docs.py
PAGES = {name_of(page): blocks_of(page) for page in pages() if page != README}
RUNNING = {
    name: blocks
    for name, blocks in PAGES.items()
    if not name.startswith(PLAYED_ELSEWHERE) and any(block.runs for block in blocks)
}
ALL_BLOCKS = [
    block
    for blocks in [blocks_of(README), *PAGES.values()]
    for block in blocks
    if block.language == "python"
]
HOW_TO = [name for name in RUNNING if not name.startswith("docs/tutorial/")]
TUTORIALS = [name for name in RUNNING if name.startswith("docs/tutorial/")]


@pytest.mark.parametrize("name", HOW_TO)
def test_page_does_what_it_says(name: str, site: Site) -> None:
    blocks = RUNNING[name]
    own_files = {block.file for block in blocks if block.file}

    # The README's agents would take the names of the page's own.
    site.write(blocks, replace=sorted(own_files & {"shop/agents.py"}))

    site.execute(blocks)


@pytest.mark.parametrize("name", TUTORIALS)
def test_tutorial_builds_its_own_site(
    name: str, tmp_path: Path, nursery: Nursery
) -> None:
    blocks = RUNNING[name]

    site = Site.make(tmp_path / "site", blocks, nursery)
    site.manage("makemigrations", "shop", "--verbosity=0")
    site.manage("migrate", "--verbosity=0")

    site.execute(blocks)


@pytest.mark.parametrize(
    "block", [pytest.param(b, id=f"{b.page}:{b.line}") for b in ALL_BLOCKS]
)
def test_block_compiles(block: Block) -> None:
    compile(block.text, block.page, "exec")
