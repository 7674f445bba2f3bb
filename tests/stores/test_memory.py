"""The store in memory keeps the contract, within its process."""

from __future__ import annotations

from hitl_approvals.stores.memory import MemoryInterruptStore
from hitl_approvals.testing.interrupt_store_contract import InterruptStoreContract


class TestMemoryInterruptStore(InterruptStoreContract):
    outlives_its_process = False

    def make_store(self):
        return MemoryInterruptStore()


def test_there_is_nothing_to_migrate():
    assert MemoryInterruptStore().schema() == ""
