"""The examples of the OpenAPI document: what the API really answers, told once.

They are kept in a file beside the document's code. `make schema` writes it anew.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hitl_approvals import engine
from hitl_approvals.api.schema import examples
from hitl_approvals.api.schema.operations import OPERATIONS
from hitl_approvals.models import AgentTurn, PendingInterrupt
from tests.api import scenes
from tests.api.conformance import assert_fits
from tests.api.remote_scenes import Agent

RECORD = "HITL_RECORD_EXAMPLES"
WITHOUT = {"schema_read"}
"""That would be the document itself."""
NAMES = {
    "api_issue_refund": "issue_refund",
    "api_support": "support",
    "api_refund": "refund",
    "api_flaky": "ship",
    "api_agent": "assistant",
    "api-team": "shipping",
}
HOST = "http://testserver"
SHOWN_HOST = "https://shop.example"
ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")
DIGEST = re.compile(r"\b[0-9a-f]{64}\b")
MOMENT = re.compile(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
IN_TEXT = re.compile(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00")
DAY = re.compile(r"20\d\d-\d\d-\d\d")
TIMES = {
    "created_at": "09:30:00",
    "requested_at": "09:30:01",
    "timestamp": "09:30:01",
    "started_at": "09:30:01",
    "at": "09:31:00",
    "decided_at": "09:32:10",
    "consumed_at": "09:32:12",
    "resolved_at": "09:32:14",
    "finished_at": "09:32:15",
    "counted_at": "09:40:00",
    "claim_until": "09:40:00",
    "expires_at": "17:30:01",
    "execute_by": "10:32:10",
    "outcome_due": "09:42:12",
}


class Story:
    """Sends requests, and keeps each with its answer under the operation's name."""

    def __init__(self) -> None:
        self.told: dict[str, Any] = {}
        self._ids: dict[str, str] = {}
        self._digests: dict[str, str] = {}

    def tell(
        self, name: str, caller: Any, address: str, body: Any = ..., *, key: str = "k"
    ) -> Any:
        if body is ...:
            answer = caller.get(address)
        else:
            headers = {"Idempotency-Key": f"{name}-{key}"}
            answer = caller.post(address, body, format="json", headers=headers)
        return self.keep(name, body, answer)

    def keep(self, name: str, body: Any, answer: Any) -> Any:
        kept = self.told.setdefault(name, {"answers": {}})
        if body is not ... and "body" not in kept:
            kept["body"] = self._plain(body)
        kept["answers"].setdefault(str(answer.status_code), self._plain(answer.json()))
        return answer.json()

    def _plain(self, value: Any, name: str = "") -> Any:
        """Return a value that is the same at every run."""
        if isinstance(value, dict):
            return {each: self._plain(inner, each) for each, inner in value.items()}
        if isinstance(value, list):
            return [self._plain(inner, name) for inner in value]
        if isinstance(value, float):
            return 130.5
        if not isinstance(value, str):
            return value
        if name == "actor_id" and value.isdigit():
            return "1"
        for own, shown in NAMES.items():
            value = value.replace(own, shown)
        value = value.replace(HOST, SHOWN_HOST)
        value = ID.sub(lambda found: self._id(found[0]), value)
        value = DIGEST.sub(lambda found: self._digest(found[0]), value)
        value = IN_TEXT.sub("2026-01-31T09:32:10+00:00", value)
        if MOMENT.fullmatch(value):
            return f"2026-01-31T{TIMES.get(name, '09:30:00')}.000000Z"
        return "2026-01-31" if DAY.fullmatch(value) else value

    def _id(self, found: str) -> str:
        number = len(self._ids) + 1
        return self._ids.setdefault(found, f"019c13a9-0000-7000-8000-{number:012d}")

    def _digest(self, found: str) -> str:
        number = str(len(self._digests) + 1)
        made = hashlib.sha256(number.encode()).hexdigest()
        return self._digests.setdefault(found, made)


def run_owed() -> None:
    for owed in AgentTurn.objects.filter(status="ready"):
        engine.run_turn(owed.pk)


def address(row: Any, verb: str = "") -> str:
    kind = scenes.LIST if isinstance(row, PendingInterrupt) else scenes.TURNS
    return f"{kind}{row.pk}/{verb}/" if verb else f"{kind}{row.pk}/"


def with_calls(story: Story, people: Callable[[str], Any]) -> None:
    """Calls of an agent of this site."""
    backend, rita = people("requester"), people("superuser")
    start = {
        "agent": "api_support",
        "input": "Order A-1009 arrived broken.",
        "thread_id": "ticket-4711",
    }
    started = story.tell("turns_start", backend, scenes.TURNS, start)
    run_owed()
    turn = AgentTurn.objects.get(pk=started["id"])
    call = turn.interrupts.get()
    story.tell("turns_list", backend, scenes.TURNS)
    story.tell("turns_read", backend, address(turn))
    story.tell("interrupts_list", rita, f"{scenes.LIST}?open=true")
    story.tell("interrupts_read", rita, address(call))
    story.tell("interrupts_claim", rita, address(call, "claim"), {"minutes": 10})
    released = {"note": "Somebody who knows the customer should look."}
    story.tell("interrupts_release", rita, address(call, "release"), released)
    given = {"to": "reviewer"}
    story.tell("interrupts_assign", rita, address(call, "assign"), given)
    seen = {"revision": call.revision}
    story.tell("interrupts_approve", rita, address(call, "approve"), seen)
    refusal = {"reason": "The customer kept it."}
    story.tell("interrupts_reject", rita, address(call, "reject"), refusal)
    run_owed()
    story.tell("interrupts_events", rita, address(call, "events"))
    story.tell("turns_events", rita, address(turn, "events"))
    story.tell("turns_steps", rita, address(turn, "steps"))
    story.tell("stats_read", rita, "/api/stats/?days=7")
    story.tell("queues_list", rita, "/api/queues/")
    story.tell("turns_fork", rita, address(turn, "fork"), {"thread_id": "ticket-4712"})
    stopped = engine.start_turn("api_support", "again", run=True)
    story.tell(
        "turns_cancel", rita, address(stopped, "cancel"), {"reason": "Asked twice."}
    )
    changed = diverged()
    story.tell("interrupts_re_review", rita, address(changed, "re-review"), {})
    story.tell("turns_retry", rita, address(changed.turn, "retry"), {})
    again = {"input": {"calls": [scenes.call("api_refund", scenes.REFUND)]}}
    story.tell("turns_restart", rita, address(diverged().turn, "restart"), again)
    refuse(story, rita)


def diverged() -> PendingInterrupt:
    """A turn that stopped: its agent asks for another call than was approved."""
    row = scenes.decided()
    other = {"calls": [scenes.call("api_refund", {"order": "B-2", "amount": 1})]}
    AgentTurn.objects.filter(pk=row.turn_id).update(input=other)
    assert engine.run_turn(row.turn_id) == "needs_attention"
    return row


def refuse(story: Story, rita: Any) -> None:
    """What else can be decided."""
    refused, edited, many = (
        engine.start_turn("api_support", "again", run=True).interrupts.get()
        for _ in range(3)
    )
    refusal = {"reason": "The customer kept it."}
    story.tell("interrupts_reject", rita, address(refused, "reject"), refusal, key="2")
    half = {"args": {"order_id": "A-1009", "amount": "60.00"}, "reason": "Half of it."}
    story.tell("interrupts_edit", rita, address(edited, "edit"), half)
    decisions = [
        {"id": str(many.pk), "decision": {"type": "approve"}, "revision": 1},
        {"id": str(refused.pk), "decision": {"type": "reject", "reason": "Too late."}},
    ]
    story.tell(
        "interrupts_decide_many",
        rita,
        f"{scenes.LIST}decide/",
        {"decisions": decisions},
    )
    asked = scenes.question({"question": "Which colour?"})
    story.tell("interrupts_respond", rita, address(asked, "respond"), {"value": "red"})
    lost = scenes.in_doubt()
    found = {"answer": "happened", "result": None, "note": "It stands in the log."}
    story.tell("interrupts_settle", rita, address(lost, "settle"), found)


def elsewhere(story: Story, people: Callable[[str], Any]) -> None:
    """Calls of an agent that runs elsewhere."""
    rita, agent = people("superuser"), Agent()
    call = {
        "tool_name": "issue_refund",
        "args": {"order_id": "A-1009", "amount": "120.00"},
        "tool_description": "Refund an order to its customer.",
        "why": "more than 100.00",
    }
    urls = [
        story.tell("interrupts_raise", agent.http, scenes.LIST, call, key=key)["url"]
        for key in ("1", "2", "3")
    ]
    for url in urls[:2]:
        rita.post(f"{url}approve/", {}, format="json")
        fetched = agent.post(f"{url}consume/", "k")
        story.keep("interrupts_consume", {}, fetched)
    told = {"status": "succeeded", "result": {"refunded": "120.00"}}
    story.keep("interrupts_outcome", told, agent.report(urls[0], **told))
    back = {"reason": "Shutting down."}
    story.keep("interrupts_give_back", back, agent.give_back(urls[1], **back))
    story.tell(
        "interrupts_cancel", agent.http, f"{urls[2]}cancel/", {"reason": "Over."}
    )


@pytest.mark.django_db
def test_the_examples_are_what_the_api_answers(client_of):
    story = Story()
    with_calls(story, client_of)
    elsewhere(story, client_of)

    if os.environ.get(RECORD):
        Path(examples.__file__).with_name("examples.json").write_text(
            json.dumps(story.told, indent=1, ensure_ascii=False) + "\n"
        )
        return
    assert story.told == examples.all_of_them(), "make schema"


def test_every_operation_has_an_example():
    shown = examples.all_of_them()

    assert set(shown) == {known.id for known in OPERATIONS.values()} - WITHOUT
    for known in OPERATIONS.values():
        if known.id in shown:
            assert ("body" in shown[known.id]) is (known.body is not None)
            assert set(map(int, shown[known.id]["answers"])) & set(known.answers)


def test_every_example_fits():
    for known in OPERATIONS.values():
        shown = examples.of(known.id)
        if "body" in shown:
            assert_fits(known.body, shown["body"])
        for status, body in shown.get("answers", {}).items():
            assert_fits(known.answers.get(int(status), f"Refusal{status}"), body)
