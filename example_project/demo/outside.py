"""What an agent outside of the site needs: a token, a payment system, and a folder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from example_project.demo.people import QUEUE
from example_project.demo.stage import HOST, Stage, free_port
from hitl_approvals import services
from hitl_approvals.services import clients

NAME = "refunds"
FIRST_PORT = 8900
_KEPT = timedelta(days=1)
"""Agents that wait while the demonstration is started again keep their token."""


@contextmanager
def payments(stage: Stage) -> Iterator[str]:
    """Run the payment system that such agents call, and yield its address."""
    port = free_port(FIRST_PORT)
    with stage.start_payments(port):
        yield f"http://{HOST}:{port}"


def seed_client() -> str | None:
    """Return a new token for the agent; None if somebody has revoked it."""
    client = clients.find(NAME)
    if client is None:
        return services.create_client(NAME, queue=QUEUE, by=None)[1]
    if client.revoked_at is not None:
        return None
    return services.rotate_token(client.pk, by=None, keep_old_for=_KEPT)[1]


def explanation(stage: Stage, payments: str, token: str | None) -> Iterator[str]:
    """Say how to start such an agent by hand, if it is let in."""
    if token is None:
        return
    yield "4. Let an agent outside of the site ask for a refund, and kill that one too:"
    yield f"     export HITL_URL={stage.address}/api PAYMENTS_URL={payments}"
    yield f"     export HITL_TOKEN={token}"
    yield f"     export HONOURS_KEYS=yes STATE_DIR={stage.folder / 'jobs'}"
    yield "     sh example_project/remote_agents/refund.sh refund-1 1042 49.90"
    yield "   Started again with the same words it goes on where it was."
