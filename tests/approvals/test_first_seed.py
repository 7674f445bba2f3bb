"""What a durable-resume library for TypeScript agents promises, sentence by sentence.

`docs/how-to/coming-from-durable-resume.md` has the names and the differences.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from hitl_approvals import (
    AlreadyResolved,
    Applied,
    ApprovalRejected,
    Approve,
    Edit,
    InterruptRecord,
    InterruptSuspended,
    MemoryInterruptStore,
    Reject,
    approval,
    gate_only,
    predicate,
    resume,
)
from hitl_approvals.stores.base import InterruptStore
from hitl_approvals.testing.interrupt_store_harness import a_record
from tests.workspace import ROOT


class Shop:
    """An agent with one tool, and a store, as the two processes of the page share it."""

    def __init__(self, *, handler=None, store=None, policy=None):
        self.deleted = []
        self.prompts = []
        self.options = []
        self.posted = []
        self.store = store or MemoryInterruptStore()
        self.gate = approval(
            policy=policy or predicate(lambda call: call.tool_name == "delete_account"),
            store=self.store,
            handler=handler or self.handler,
        )
        self.delete_account = self.gate.wrap(self._tool())

    def _tool(self):
        def delete_account(account: int, confirm: bool = False) -> str:
            """Delete an account."""
            self.deleted.append((account, confirm))
            return f"deleted {account}"

        return delete_account

    def handler(self, request):
        self.store.save(
            InterruptRecord(
                interrupt_id=request.interrupt_id,
                request=request,
                status="pending",
                saved_at="2026-01-01T00:00:00Z",
            )
        )
        self.posted.append(request)
        raise InterruptSuspended(request.interrupt_id)

    def agent(self, prompt, **options):
        self.prompts.append(prompt)
        self.options.append(options)
        return f"Done: {self.delete_account(88)}"

    def suspend(self, prompt="Delete account #88", **options):
        return self.gate.execute(self.agent, prompt, **options)


@pytest.fixture
def shop():
    return Shop()


# Interactive approval


def test_interactive_approval_awaits_the_operator_in_process():
    seen = []

    async def operator(request):
        seen.append(request.tool_name)
        return {"type": "approve"}

    shop = Shop(handler=operator)

    outcome = shop.suspend()

    assert outcome.output == "Done: deleted 88"
    assert seen == ["delete_account"]
    assert shop.store.list() == []


# Process A: suspend and surface the id


def test_the_handler_persists_the_request_and_raises_to_suspend_the_run(shop):
    shop.suspend()

    [record] = shop.store.list()
    assert record.request == shop.posted[0]
    assert record.status == "pending"
    assert shop.deleted == []


def test_the_store_is_optional_to_the_gate_when_the_handler_saves_itself():
    own = MemoryInterruptStore()

    def handler(request):
        own.save(InterruptRecord(request.interrupt_id, request))
        raise InterruptSuspended(request.interrupt_id)

    gate = approval(handler=handler)
    delete = gate.wrap(lambda: "gone")

    outcome = gate.execute(lambda prompt: delete(), "go")

    assert [one.interrupt_id for one in own.list()] == [outcome.interrupt_id]


def test_execute_never_raises_and_the_suspension_rides_the_error(shop):
    outcome = shop.suspend()

    assert isinstance(outcome.error, InterruptSuspended)
    assert outcome.error.interrupt_id == shop.posted[0].interrupt_id
    assert (outcome.suspended, outcome.output) == (True, None)


def test_execute_never_raises_what_the_agent_raises_either(shop):
    def broken(prompt):
        raise RuntimeError("no model")

    outcome = shop.gate.execute(broken, "go")

    assert str(outcome.error) == "no model"
    assert not outcome.suspended


def test_the_gate_short_circuits_a_failed_result_that_carries_the_suspension(shop):
    result = shop.gate.invoke({"args": {"account": 88}}, shop._tool())

    assert result.status == "failed"
    assert isinstance(result.error, InterruptSuspended)
    assert result.interrupt_id == result.error.interrupt_id
    assert shop.deleted == []


def test_only_the_gates_own_sentinel_suspends():
    def handler(request):
        raise RuntimeError("slack is down")

    shop = Shop(handler=handler)

    with pytest.raises(RuntimeError, match="slack is down"):
        shop.suspend()

    assert (shop.deleted, shop.store.list()) == ([], [])


# Process B: resume hours later


def test_a_re_run_applies_the_decision_that_was_seeded(shop):
    waiting = shop.suspend()

    outcome = resume(
        waiting.interrupt_id,
        {"type": "edit", "args": {"account": 88, "confirm": True}},
        store=shop.store,
        agent=shop.agent,
    )

    assert isinstance(outcome, Applied)
    assert outcome.result == "Done: deleted 88"
    assert shop.deleted == [(88, True)]
    assert (outcome.status, outcome.used) == ("completed", True)


def test_the_seeded_call_resolves_instead_of_pausing_again(shop):
    waiting = shop.suspend()

    resume(waiting.interrupt_id, Approve(), store=shop.store, agent=shop.agent)

    assert len(shop.posted) == 1
    assert shop.store.list() == []


def test_the_whole_turn_runs_again_from_its_start(shop):
    waiting = shop.suspend()

    resume(waiting.interrupt_id, Approve(), store=shop.store, agent=shop.agent)

    assert shop.prompts == ["Delete account #88", "Delete account #88"]


def test_a_rejection_reaches_the_agent_as_a_failed_call(shop):
    waiting = shop.suspend()

    outcome = resume(
        waiting.interrupt_id, Reject("wrong one"), store=shop.store, agent=shop.agent
    )

    assert isinstance(outcome.error, ApprovalRejected)
    assert (outcome.error.tool_name, outcome.error.reason) == (
        "delete_account",
        "wrong one",
    )
    assert shop.deleted == []
    assert (outcome.status, outcome.used) == ("failed", True)


def test_the_prompt_comes_from_the_original_input_of_the_request(shop):
    waiting = shop.suspend({"messages": ["Delete account #88"]})

    resume(waiting.interrupt_id, Approve(), store=shop.store, agent=shop.agent)

    assert shop.posted[0].original_input == {"messages": ["Delete account #88"]}
    assert shop.prompts[1] == {"messages": ["Delete account #88"]}


def test_input_overrides_the_prompt(shop):
    waiting = shop.suspend()

    resume(
        waiting.interrupt_id,
        Approve(),
        store=shop.store,
        agent=shop.agent,
        input="Delete account #88. Reviewer: go ahead.",
    )

    assert shop.prompts[1] == "Delete account #88. Reviewer: go ahead."


def test_execute_options_reach_the_re_run(shop):
    waiting = shop.suspend()

    resume(
        waiting.interrupt_id,
        Approve(),
        store=shop.store,
        agent=shop.agent,
        execute_options={"history": ["hello"], "schema": {"type": "string"}},
    )

    assert shop.options[1] == {"history": ["hello"], "schema": {"type": "string"}}


def test_apply_only_loads_validates_deletes_and_hands_the_decision_over(shop):
    waiting = shop.suspend()

    outcome = resume(waiting.interrupt_id, Edit({"account": 1}), store=shop.store)

    assert isinstance(outcome, Applied)
    assert outcome.decision == Edit({"account": 1})
    assert (outcome.result, outcome.used) == (None, None)
    assert outcome.record.request == shop.posted[0]
    assert shop.store.list() == []
    assert len(shop.prompts) == 1


# Idempotent by construction


@pytest.mark.parametrize("again", ["with an agent", "alone"])
def test_a_second_resume_is_told_that_it_is_resolved_and_applies_nothing(shop, again):
    waiting = shop.suspend()
    agent = shop.agent if again == "with an agent" else None
    resume(waiting.interrupt_id, Approve(), store=shop.store, agent=shop.agent)

    outcome = resume(waiting.interrupt_id, Approve(), store=shop.store, agent=agent)

    assert outcome == AlreadyResolved(interrupt_id=waiting.interrupt_id)
    assert shop.deleted == [(88, False)]
    assert len(shop.prompts) == 2


def test_an_interrupt_that_was_never_raised_is_already_resolved(shop):
    outcome = resume("never", Approve(), store=shop.store, agent=shop.agent)

    assert outcome == AlreadyResolved(interrupt_id="never")
    assert shop.prompts == []


def test_a_re_run_that_raises_a_fresh_interrupt_does_not_collide(shop):
    def twice(prompt):
        return [shop.delete_account(88), shop.delete_account(99)]

    first = shop.gate.execute(twice, "both")

    outcome = resume(first.interrupt_id, Approve(), store=shop.store, agent=twice)

    assert (outcome.status, outcome.waiting) == ("suspended", 1)
    assert outcome.next_interrupt_id != first.interrupt_id
    assert [one.interrupt_id for one in shop.store.list()] == [
        outcome.next_interrupt_id
    ]


@pytest.mark.parametrize(
    ("decision", "sentence"),
    [
        ({"type": "reject"}, 'A rejection needs a "reason"'),
        ({"type": "reject", "reason": " "}, 'A rejection needs a "reason"'),
        ({"type": "edit"}, 'An edit needs "args"'),
        ({"type": "edit", "args": [1]}, 'An edit needs "args"'),
        ({"type": "postpone"}, 'The "type" of a decision must be one of'),
        ({}, 'The "type" of a decision must be one of'),
        ("approve", "A decision must be"),
        (None, "records none"),
    ],
)
def test_a_malformed_decision_is_a_type_error_before_anything_is_claimed(
    shop, decision, sentence
):
    waiting = shop.suspend()

    with pytest.raises(TypeError, match=sentence):
        resume(waiting.interrupt_id, decision, store=shop.store, agent=shop.agent)

    [record] = shop.store.list()
    assert (record.status, len(shop.prompts)) == ("pending", 1)


# The store


def test_the_contract_is_save_load_delete_list_and_schema():
    store = MemoryInterruptStore()
    record = a_record(interrupt_id="support:1")
    other = a_record(interrupt_id="billing:1")

    store.save(record)
    store.save(other)

    assert isinstance(store, InterruptStore)
    assert store.load("support:1") == record
    assert store.list("support:") == [record]
    store.delete("support:1")
    assert store.load("support:1") is None
    assert store.schema() == ""


def test_the_memory_store_needs_no_driver_and_no_settings():
    program = (
        "import sys\n"
        "from hitl_approvals import Approve, MemoryInterruptStore, approval, resume\n"
        "store = MemoryInterruptStore()\n"
        "gate = approval(store=store)\n"
        "run = gate.wrap(lambda: 'ran')\n"
        "agent = lambda prompt: run()\n"
        "waiting = gate.execute(agent, 'go')\n"
        "done = resume(waiting.interrupt_id, Approve(), store=store, agent=agent)\n"
        "from django.conf import settings\n"
        "print(done.result, settings.configured,\n"
        "      [n for n in sys.modules if n.split('.')[0] in ('redis', 'psycopg')])\n"
    )
    environment = {**os.environ}
    environment.pop("DJANGO_SETTINGS_MODULE", None)

    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
    )

    assert done.stdout.strip() == "ran False []", done.stderr


def test_a_policy_names_the_tools_that_need_a_person():
    shop = Shop(policy=gate_only(["delete_account"]))

    assert shop.suspend().suspended
