"""The store that the how-to shows keeps the contract, over threads and processes."""

from __future__ import annotations

import pytest

from hitl_approvals.testing import CheckpointStoreContract
from tests.docs.blocks import DOCS, blocks_of

FILE = "shop/checkpoints.py"


@pytest.fixture(scope="module")
def source() -> str:
    """The code of the page."""
    blocks = blocks_of(DOCS / "how-to" / "graphs-and-forks.md")
    return "\n\n".join(block.text for block in blocks if block.file == FILE)


class TestShownSqliteStore(CheckpointStoreContract):
    @pytest.fixture(autouse=True)
    def _place(self, source, tmp_path):
        self.source = source
        self.path = str(tmp_path / "checkpoints.sqlite3")

    def make_store(self):
        namespace = {}
        exec(compile(self.source, FILE, "exec"), namespace)
        return namespace["SqliteCheckpointStore"](self.path)

    def in_another_process(self):
        return f"{self.source}\nstore = SqliteCheckpointStore({self.path!r})"
