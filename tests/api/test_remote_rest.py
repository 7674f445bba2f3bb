"""Agents elsewhere over REST: raised, fetched, reported, given back, taken back."""

from __future__ import annotations

import pytest

from hitl_approvals.models import PendingInterrupt
from tests.api.remote_scenes import CALL
from tests.support import remote

pytestmark = pytest.mark.django_db


def test_the_whole_life_of_an_approval(agent, reviewer):
    raised = agent.ask("refund-7")
    assert raised.status_code == 201
    url = raised["Location"]
    assert (raised.json()["url"], raised["Idempotency-Replayed"]) == (url, "false")
    assert agent.get(url).json()["status"] == "pending"
    assert agent.consume(url, "worker-1").status_code == 409

    assert reviewer.post(f"{url}approve/").status_code == 200
    fetched = agent.consume(url, "worker-1")
    assert fetched.status_code == 200
    told = fetched.json()
    assert (told["status"], told["decision"]) == ("decided", "approve")
    assert told["args"] == CALL["args"]
    assert agent.consume(url, "worker-2").json()["code"] == "already_consumed"

    done = agent.report(url, "worker-1", "succeeded", result={"refund": "re_1"})
    assert done.status_code == 200
    assert done.json() == {
        "id": raised.json()["id"],
        "status": "resolved",
        "late": False,
        "url": url,
    }
    row = PendingInterrupt.objects.get()
    assert remote.kinds(row) == ["raised", "approved", "consumed", "resolved"]
    assert {event.via for event in remote.events(row)} == {"api"}
