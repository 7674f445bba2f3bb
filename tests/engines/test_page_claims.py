"""What the frameworks' pages say in passing, about words, limits and sizes."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from hitl_approvals import Edit, canonical, start_turn
from hitl_approvals.models import PendingInterrupt
from tests.engines import pydantic_ai_scripts as scripts
from tests.engines.langgraph_support import PAY, begin, chain, declare
from tests.engines.page_examples import HOW_TO, load_example
from tests.support import turns
from tests.support.world import world

pytestmark = [pytest.mark.engines, pytest.mark.django_db(transaction=True)]


@pytest.mark.parametrize("quiet", [False, True], ids=["its words", "no words"])
def test_the_middlewares_words_round_an_edited_result_can_be_taken_away(
    quiet: bool,
) -> None:
    from langchain.agents.middleware import HumanInTheLoopMiddleware

    words: dict[str, Any] = {"edit_notice": None} if quiet else {}
    decisions = {"pay": {"allowed_decisions": ["approve", "edit", "reject"]}}
    declare(chain.react([[PAY]], [HumanInTheLoopMiddleware(decisions, **words)]))
    turn = begin("refunds")

    turns.decide_and_resume(turn, Edit({"order": "A1", "amount": "3", "note": ""}))

    told = dict(world.told)["c1"]
    assert "A reviewer changed this call before it ran: amount from" in told
    assert ("Executed instead: pay" in told) is not quiet


def test_the_frameworks_limit_of_requests_counts_over_a_pause() -> None:
    scripts.register()
    free = [[scripts.call(f"n{at}", "note", text=str(at))] for at in range(60)]
    turn = start_turn(
        scripts.NAME, json.dumps([*free[:30], [PAY], *free[30:]]), run=True
    )
    assert turn.status == "suspended", turn.last_error

    turns.decide_and_resume(turn)

    assert turn.status == "failed"
    assert "request_limit of 50" in turn.error
    assert len(world.model_calls) == 50


def test_a_short_conversation_is_as_large_as_the_page_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    load_example("openai_agents", monkeypatch)
    page = (HOW_TO / "openai-agents.md").read_text(encoding="utf-8")
    said = re.search(r"the whole conversation: (\d+) to (\d+)\s+kB", page)
    assert said is not None

    turn = start_turn("refunds", "Refund my order A1, please.", run=True)

    assert PendingInterrupt.objects.get().turn_id == turn.pk
    size = len(canonical.dumps(turn.state).encode())
    assert int(said[1]) * 1000 <= size <= int(said[2]) * 1000
