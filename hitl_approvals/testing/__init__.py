"""What a site's own tests may use: failpoints, contracts of stores, running what is owed.

Names resolve on first use: the contracts need pytest, the rest does not.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hitl_approvals.testing.checkpoint_store_contract import CheckpointStoreContract
    from hitl_approvals.testing.interrupt_store_contract import InterruptStoreContract
    from hitl_approvals.testing.owed import run_owed

_HOME = {
    "CheckpointStoreContract": "checkpoint_store_contract",
    "InterruptStoreContract": "interrupt_store_contract",
    "run_owed": "owed",
}

__all__ = ["CheckpointStoreContract", "InterruptStoreContract", "run_owed"]


def __getattr__(name: str) -> Any:
    try:
        home = _HOME[name]
    except KeyError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
    return getattr(import_module(f"{__name__}.{home}"), name)
