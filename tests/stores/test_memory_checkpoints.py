"""The memory store keeps the contract of checkpoint stores."""

from __future__ import annotations

from hitl_approvals import MemoryCheckpointStore
from hitl_approvals.testing import CheckpointStoreContract


class TestMemoryCheckpoints(CheckpointStoreContract):
    outlives_its_process = False

    def make_store(self):
        return MemoryCheckpointStore()
