"""What a site's own tests may use: contracts of stores and agents, a reviewer, running what is owed.

Names resolve on first use: the contracts need pytest, the rest does not.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hitl_approvals.testing.agent_contract import AgentContract
    from hitl_approvals.testing.checkpoint_store_contract import CheckpointStoreContract
    from hitl_approvals.testing.fake_handler import FakeHandler
    from hitl_approvals.testing.interrupt_store_contract import InterruptStoreContract
    from hitl_approvals.testing.owed import run_owed
    from hitl_approvals.testing.reviewer import SimulatedReviewer

_HOME = {
    "AgentContract": "agent_contract",
    "CheckpointStoreContract": "checkpoint_store_contract",
    "FakeHandler": "fake_handler",
    "InterruptStoreContract": "interrupt_store_contract",
    "SimulatedReviewer": "reviewer",
    "run_owed": "owed",
}

__all__ = [
    "AgentContract",
    "CheckpointStoreContract",
    "FakeHandler",
    "InterruptStoreContract",
    "SimulatedReviewer",
    "run_owed",
]


def __getattr__(name: str) -> Any:
    try:
        home = _HOME[name]
    except KeyError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
    return getattr(import_module(f"{__name__}.{home}"), name)
