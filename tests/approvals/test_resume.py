"""A decision over a store: claimed by one, for one call, in one run."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from decimal import Decimal
from functools import partial

import pytest

from hitl_approvals import (
    AlreadyResolved,
    Applied,
    Approve,
    Edit,
    InterruptRecord,
    InterruptStore,
    InterruptSuspended,
    MemoryInterruptStore,
    Reject,
    ToolFailed,
    approval,
    aresume,
    gate_only,
    resume,
)
from hitl_approvals.exceptions import DecisionNotAllowed, PayloadRejected
from hitl_approvals.stores.base import implements
from tests.approvals.test_gate import wire
from tests.workspace import ROOT


class Bank:
    """An agent whose payments need a person."""

    def __init__(self, store, **options):
        self.store = store
        self.gate = approval(store=store, **options)
        self.paid = []
        self.pay = self.gate.wrap(self.make_pay())

    def make_pay(self):
        def pay(to: str, amount: int = 1) -> str:
            self.paid.append((to, amount))
            return f"paid {to}"

        return pay

    def suspend(self, agent, prompt="go"):
        outcome = self.gate.execute(agent, prompt)
        assert outcome.suspended
        return outcome.interrupt_id


@pytest.fixture
def bank(store):
    return Bank(store)


def test_a_second_question_neither_asks_nor_runs_the_first_call_again(bank):
    def agent(prompt):
        return [bank.pay("ann"), bank.pay("ben"), bank.pay("cid")]

    first = bank.suspend(agent)
    second = resume(first, Approve(), store=bank.store, agent=agent)
    third = resume(
        second.next_interrupt_id,
        Edit({"to": "ben", "amount": 7}),
        store=bank.store,
        agent=agent,
    )
    last = resume(third.next_interrupt_id, Approve(), store=bank.store, agent=agent)

    assert last.result == ["paid ann", "paid ben", "paid cid"]
    assert bank.paid == [("ann", 1), ("ben", 7), ("cid", 1)]
    assert bank.store.list() == []


def test_a_rejection_is_not_asked_again_in_a_later_run(bank):
    def agent(prompt):
        told = []
        for name in ("ann", "ben"):
            try:
                told.append(bank.pay(name))
            except InterruptSuspended:
                raise
            except Exception as error:  # noqa: BLE001  what agents do
                told.append(f"{type(error).__name__}: {error.reason}")
        return told

    first = bank.suspend(agent)
    second = resume(first, Reject("not her"), store=bank.store, agent=agent)
    last = resume(second.next_interrupt_id, Approve(), store=bank.store, agent=agent)

    assert last.result == ["ApprovalRejected: not her", "paid ben"]


def test_a_failure_is_replayed_as_one_and_the_call_not_repeated(store):
    gate = approval(store=store)
    tried = []

    @gate.wrap
    def flaky(a: int) -> int:
        tried.append(a)
        raise ZeroDivisionError("no")

    @gate.wrap
    def good(a: int) -> int:
        return a

    def agent(prompt):
        try:
            flaky(1)
        except (ZeroDivisionError, ToolFailed) as error:
            told = f"{type(error).__name__}: {error}"
        return [told, good(2)]

    waiting = gate.execute(agent, "go")
    second = resume(waiting.interrupt_id, Approve(), store=store, agent=agent)
    last = resume(second.next_interrupt_id, Approve(), store=store, agent=agent)

    assert last.result == ["ToolFailed: ZeroDivisionError: no", 2]
    assert tried == [1]


def test_a_result_that_is_no_json_is_not_made_again(store):
    gate = approval(store=store)
    made = []

    @gate.wrap
    def connect(to):
        made.append(to)
        return object()

    @gate.wrap
    def good(a: int) -> int:
        return a

    def agent(prompt):
        try:
            connect("x")
            told = "connected"
        except ToolFailed as error:
            told = str(error)
        return [told, good(2)]

    waiting = gate.execute(agent, "go")
    second = resume(waiting.interrupt_id, Approve(), store=store, agent=agent)
    last = resume(second.next_interrupt_id, Approve(), store=store, agent=agent)

    assert "its result could not be kept" in last.result[0]
    assert made == ["x"]


def test_the_journal_comes_back_as_the_types_that_a_tool_declares(store):
    gate = approval(store=store)

    @gate.wrap
    def price(of: str) -> Decimal:
        return Decimal("1.10")

    @gate.wrap
    def good(a: int) -> int:
        return a

    def agent(prompt):
        return [price("tea"), good(1)]

    waiting = gate.execute(agent, "go")
    second = resume(waiting.interrupt_id, Approve(), store=store, agent=agent)
    last = resume(second.next_interrupt_id, Approve(), store=store, agent=agent)

    assert last.result == [Decimal("1.10"), 1]


def test_free_calls_run_again_because_the_turn_does(store):
    gate = approval(gate_only(["pay"]), store=store)
    looked = []

    @gate.wrap
    def look(a: int) -> int:
        looked.append(a)
        return a

    @gate.wrap
    def pay(a: int) -> int:
        return a

    def agent(prompt):
        return look(1) + pay(2)

    waiting = gate.execute(agent, "go")
    done = resume(waiting.interrupt_id, Approve(), store=store, agent=agent)

    assert (done.result, looked) == (3, [1, 1])


def test_a_call_that_a_changed_policy_would_free_is_still_replayed(store):
    gated = {"pay"}
    gate = approval(lambda call: call.tool_name in gated or False, store=store)
    paid = []

    @gate.wrap
    def pay(a: int) -> int:
        paid.append(a)
        return a

    @gate.wrap
    def stop(a: int) -> int:
        return a

    def agent(prompt):
        return [pay(1), stop(2)]

    gated.add("stop")
    waiting = gate.execute(agent, "go")
    second = resume(waiting.interrupt_id, Approve(), store=store, agent=agent)
    gated.clear()
    last = resume(second.next_interrupt_id, Approve(), store=store, agent=agent)

    assert (last.result, last.used, paid) == ([1, 2], True, [1])


# The seed answers one call


@pytest.mark.parametrize("other", [("mallory", 1), ("ann", 1_000_000)])
def test_the_decision_does_not_answer_another_call(bank, other):
    def agent(prompt):
        return bank.pay(*("ann", 1) if prompt == "go" else other)

    waiting = bank.suspend(agent)

    outcome = resume(waiting, Approve(), store=bank.store, agent=agent, input="changed")

    assert bank.paid == []
    assert (outcome.status, outcome.used) == ("suspended", False)
    [asked] = bank.store.list()
    assert asked.request.args == {"to": other[0], "amount": other[1]}
    assert asked.interrupt_id == outcome.next_interrupt_id


def test_the_decision_answers_one_of_two_equal_calls(bank):
    def agent(prompt):
        return [bank.pay("ann"), bank.pay("ann")]

    waiting = bank.suspend(agent)

    outcome = resume(waiting, Approve(), store=bank.store, agent=agent)

    assert bank.paid == [("ann", 1)]
    assert outcome.status == "suspended"
    assert bank.store.load(outcome.next_interrupt_id).request.occurrence == 2


def test_the_decision_does_not_answer_the_same_call_at_another_gate(store):
    one, two = approval(store=store, name="one"), approval(store=store, name="two")
    paid = []

    def pay(a: int) -> int:
        paid.append(a)
        return a

    waiting = one.execute(lambda prompt: one.wrap(pay)(1), "go")

    outcome = resume(
        waiting.interrupt_id,
        Approve(),
        store=store,
        agent=lambda prompt: two.wrap(pay)(1),
    )

    assert (outcome.used, paid) == (False, [])


def test_a_tool_that_changed_since_it_was_approved_asks_again(store):
    """The model's call is the same; what would run is not what was shown."""
    gate = approval(store=store)
    ran = []

    def before():
        def pay(to: str, amount: int = 1) -> str:
            ran.append((to, amount))
            return to

        return pay

    def after():
        def pay(to: str, amount: int = 1_000_000) -> str:
            ran.append((to, amount))
            return to

        return pay

    waiting = gate.execute(lambda prompt: gate.wrap(before())("ann"), "go")

    outcome = resume(
        waiting.interrupt_id,
        Approve(),
        store=store,
        agent=lambda prompt: gate.wrap(after())("ann"),
    )

    assert (outcome.status, outcome.used, ran) == ("suspended", False, [])
    again = resume(
        outcome.next_interrupt_id,
        Approve(),
        store=store,
        agent=lambda prompt: gate.wrap(after())("ann"),
    )
    assert (again.used, ran) == (True, [("ann", 1_000_000)])


def test_an_edit_of_a_fixed_argument_is_refused_before_the_claim(store):
    gate = approval(store=store)
    waiting = gate.execute(
        lambda prompt: gate.invoke({"args": {"to": "ann"}}, wire), "go"
    )

    with pytest.raises(PayloadRejected, match="cannot be edited: to"):
        resume(waiting.interrupt_id, Edit({"to": "mallory"}), store=store)

    assert store.load(waiting.interrupt_id).status == "pending"


def test_a_decision_that_was_not_used_is_reported_and_gone(bank):
    def agent(prompt):
        return bank.pay("ann") if prompt == "go" else "changed my mind"

    waiting = bank.suspend(agent)

    outcome = resume(waiting, Approve(), store=bank.store, agent=agent, input="other")

    assert (outcome.status, outcome.result, outcome.used) == (
        "completed",
        "changed my mind",
        False,
    )
    assert bank.store.list() == []
    assert bank.gate.execute(agent, "go").suspended
    assert bank.paid == []


def test_a_task_that_outlives_its_run_finds_no_decision(bank):
    pay = bank.make_pay()
    call = {"args": {"to": "ann"}}

    async def play():
        ended = asyncio.Event()
        tasks = []

        async def afterwards():
            await ended.wait()
            return await bank.gate.ainvoke(call, pay)

        async def agent(prompt):
            if prompt == "go":
                return (await bank.gate.ainvoke(call, pay)).unwrap()
            tasks.append(asyncio.create_task(afterwards()))
            return "done"

        waiting = await bank.gate.aexecute(agent, "go")
        outcome = await aresume(
            waiting.interrupt_id,
            Approve(),
            store=bank.store,
            agent=agent,
            input="later",
        )
        ended.set()
        return outcome, await tasks[0]

    outcome, late = asyncio.run(play())

    assert outcome.used is False
    assert late.suspended
    assert bank.paid == []


def test_a_thread_that_does_not_know_the_run_asks_again(bank):
    """Nothing but the context carries a decision; without it a person is asked."""
    pay = bank.make_pay()

    def agent(prompt):
        found = []
        thread = threading.Thread(
            target=lambda: found.append(bank.gate.invoke({"args": {"to": "ann"}}, pay))
        )
        thread.start()
        thread.join(timeout=30)
        return found[0].unwrap()

    waiting = bank.suspend(agent)

    outcome = resume(waiting, Approve(), store=bank.store, agent=agent, input="go")

    assert (outcome.status, outcome.used, bank.paid) == ("suspended", False, [])


def test_two_runs_at_once_never_see_each_others_decisions(bank):
    """Each run waits, with its own decision seeded, until the other one has begun."""
    both = threading.Barrier(2)

    def agent(name):
        if len(bank.store.list()) >= 2 and resuming.is_set():
            both.wait(timeout=30)
            other = "ben" if name == "ann" else "ann"
            result = bank.gate.invoke({"args": {"to": other}}, pay)
            assert result.suspended, "the other's decision was used"
            return "asked for the other's"
        return bank.pay(name)

    pay = bank.make_pay()
    resuming = threading.Event()
    ids = [bank.suspend(agent, name) for name in ("ann", "ben")]
    resuming.set()

    outcomes = together(
        *[
            lambda one=one: resume(one, Approve(), store=bank.store, agent=agent)
            for one in ids
        ]
    )

    assert [one.used for one in outcomes] == [False, False]
    assert [one.status for one in outcomes] == ["suspended", "suspended"]
    assert bank.paid == []


def test_two_tasks_at_once_each_get_their_own_decision(bank):
    async def play():
        start = asyncio.Event()
        begun = []

        async def agent(name):
            begun.append(name)
            if len(begun) == 4:
                start.set()
            if len(begun) > 2:
                await start.wait()
            return (await bank.gate.ainvoke({"args": {"to": name}}, pay)).unwrap()

        waiting = [await bank.gate.aexecute(agent, name) for name in ("ann", "ben")]
        return await asyncio.gather(
            aresume(waiting[0].interrupt_id, Approve(), store=bank.store, agent=agent),
            aresume(
                waiting[1].interrupt_id,
                Edit({"to": "ben", "amount": 5}),
                store=bank.store,
                agent=agent,
            ),
        )

    pay = bank.make_pay()
    outcomes = asyncio.run(play())

    assert [one.result for one in outcomes] == ["paid ann", "paid ben"]
    assert sorted(bank.paid) == [("ann", 1), ("ben", 5)]


# At once


def test_of_many_threads_that_resume_at_once_one_applies(bank):
    def agent(prompt):
        return bank.pay("ann")

    for _ in range(5):
        bank.paid.clear()
        waiting = bank.suspend(agent)

        one = partial(resume, waiting, Approve(), store=bank.store, agent=agent)
        outcomes = together(*[one] * 6)

        assert sorted(type(one).__name__ for one in outcomes) == [
            *["AlreadyResolved"] * 5,
            "Applied",
        ]
        assert bank.paid == [("ann", 1)]


def test_of_many_processes_that_resume_at_once_one_applies(
    redis_url, redis_prefix, redis_store
):
    bank = Bank(redis_store)
    client = redis_store._client
    program = f"""
import sys, redis
from hitl_approvals import Approve, RedisInterruptStore, approval, resume
client = redis.Redis.from_url({redis_url!r})
store = RedisInterruptStore({redis_url!r}, prefix={redis_prefix!r})
gate = approval(store=store)
def pay(to: str, amount: int = 1) -> str:
    client.rpush({redis_prefix + "paid"!r}, to)
    return "paid"
guarded = gate.wrap(pay)
while True:
    client.rpush({redis_prefix + "ready"!r}, 1)
    waiting = client.blpop({redis_prefix + "go"!r}, timeout=30)[1].decode()
    if not waiting:
        break
    outcome = resume(waiting, Approve(), store=store, agent=lambda prompt: guarded("ann"))
    client.rpush({redis_prefix + "told"!r}, type(outcome).__name__)
"""
    children = [
        subprocess.Popen([sys.executable, "-c", program], cwd=ROOT) for _ in range(3)
    ]

    def go(waiting):
        for _child in children:
            assert client.blpop(f"{redis_prefix}ready", timeout=30)
        client.rpush(f"{redis_prefix}go", *[waiting] * len(children))

    for _ in range(3):
        waiting = bank.suspend(lambda prompt: bank.pay("ann"))
        go(waiting)

        told = [client.blpop(f"{redis_prefix}told", timeout=30) for _ in children]

        assert sorted(outcome for _key, outcome in told) == [
            *[b"AlreadyResolved"] * 2,
            b"Applied",
        ]
        assert client.llen(f"{redis_prefix}paid") == 1
        client.delete(f"{redis_prefix}paid")
    go("")
    assert [child.wait(60) for child in children] == [0, 0, 0]
    client.close()


def test_a_process_that_dies_after_the_claim_leaves_it_visible(
    redis_url, redis_prefix, redis_store
):
    bank = Bank(redis_store)
    waiting = bank.suspend(lambda prompt: bank.pay("ann"))
    program = f"""
import os, signal, sys
from hitl_approvals import Approve, RedisInterruptStore, approval, resume
store = RedisInterruptStore({redis_url!r}, prefix={redis_prefix!r})
def agent(prompt):
    os.kill(os.getpid(), signal.SIGKILL)
resume({waiting!r}, Approve(), store=store, agent=agent)
"""

    died = subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=False)

    assert died.returncode == -9
    [left] = redis_store.list()
    assert (left.interrupt_id, left.status) == (waiting, "taken")
    assert resume(waiting, Approve(), store=redis_store) == AlreadyResolved(waiting)


# Refused before anything is claimed


def pending(bank, waiting):
    record = bank.store.load(waiting)
    return record.status == "pending" and record.key is None


def test_an_edit_that_does_not_fit_is_refused_before_the_claim(bank):
    waiting = bank.suspend(lambda prompt: bank.pay("ann"))

    with pytest.raises(PayloadRejected, match="arguments of pay"):
        resume(waiting, Edit({"amount": "much"}), store=bank.store)
    with pytest.raises(PayloadRejected):
        resume(waiting, Edit({"to": {1, 2}}), store=bank.store)

    assert pending(bank, waiting)


def test_a_kind_that_is_not_offered_is_refused_before_the_claim(store):
    bank = Bank(store, allowed_decisions=["approve"])
    waiting = bank.suspend(lambda prompt: bank.pay("ann"))

    for decision in (Reject("no"), {"type": "respond", "value": 1}):
        with pytest.raises(DecisionNotAllowed, match="one may decide approve"):
            resume(waiting, decision, store=store)

    assert pending(bank, waiting)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"agent": "support"}, "An agent is a function"),
        ({"execute_options": ["history"]}, "execute_options= must be a mapping"),
        ({"restart": True}, "restart= is for turns"),
    ],
)
def test_arguments_that_do_not_fit_are_refused_before_the_claim(bank, given, sentence):
    waiting = bank.suspend(lambda prompt: bank.pay("ann"))

    with pytest.raises(TypeError, match=sentence):
        resume(waiting, Approve(), store=bank.store, **given)

    assert pending(bank, waiting)


def test_what_is_no_store_is_refused():
    with pytest.raises(TypeError, match="must be an interrupt store"):
        resume("x", Approve(), store={})


def test_an_input_that_was_not_json_has_to_be_given_again(bank):
    waiting = bank.suspend(lambda prompt: bank.pay("ann"), prompt=object())

    with pytest.raises(TypeError, match="holds no input"):
        resume(waiting, Approve(), store=bank.store, agent=lambda prompt: "x")

    assert pending(bank, waiting)
    outcome = resume(
        waiting,
        Approve(),
        store=bank.store,
        agent=lambda prompt: bank.pay("ann"),
        input="go",
    )
    assert outcome.result == "paid ann"


# When the run again goes wrong


def test_a_run_that_fails_before_the_call_gives_the_claim_back(bank):
    broken = [True]

    def agent(prompt):
        if len(bank.store.list()) and broken[0]:
            raise ConnectionError("no model")
        return bank.pay("ann")

    waiting = bank.suspend(agent)

    outcome = resume(waiting, Approve(), store=bank.store, agent=agent)

    assert (outcome.status, outcome.used) == ("failed", False)
    assert isinstance(outcome.error, ConnectionError)
    assert pending(bank, waiting)
    broken[0] = False
    again = resume(waiting, Approve(), store=bank.store, agent=agent)
    assert again.result == "paid ann"
    assert bank.paid == [("ann", 1)]


def test_a_run_that_fails_after_the_call_has_used_the_decision(bank):
    def agent(prompt):
        bank.pay("ann")
        raise ConnectionError("no model")

    waiting = bank.suspend(agent)

    outcome = resume(waiting, Approve(), store=bank.store, agent=agent)

    assert (outcome.status, outcome.used) == ("failed", True)
    assert bank.store.list() == []
    assert bank.paid == [("ann", 1)]


def test_the_bug_of_a_handler_leaves_the_resume_and_keeps_the_approval(store):
    answers = {"ann": None}

    def handler(request):
        name = request.args["to"]
        if name in answers:
            return answers[name]
        raise InterruptSuspended(request.interrupt_id)

    bank = Bank(store, handler=handler)

    def agent(prompt):
        if prompt == "both":
            bank.pay("ann")
        return bank.pay("ben")

    waiting = bank.suspend(agent)

    with pytest.raises(TypeError, match="returned None"):
        resume(waiting, Approve(), store=store, agent=agent, input="both")

    assert pending(bank, waiting)
    assert bank.paid == []


def test_a_store_that_fails_after_the_run_does_not_hide_what_ran(caplog):
    class Forgetful(MemoryInterruptStore):
        def delete(self, interrupt_id):
            raise ConnectionError("gone")

    bank = Bank(Forgetful())

    def agent(prompt):
        return bank.pay("ann")

    waiting = bank.suspend(agent)

    outcome = resume(waiting, Approve(), store=bank.store, agent=agent)

    assert outcome.result == "paid ann"
    assert [one.status for one in bank.store.list()] == ["taken"]
    assert "could not be settled" in caplog.text


def test_the_async_resume_applies_once_too(bank):
    async def agent(prompt):
        return (await bank.gate.ainvoke({"args": {"to": "ann"}}, pay)).unwrap()

    pay = bank.make_pay()

    async def play():
        waiting = await bank.gate.aexecute(agent, "go")
        outcomes = await asyncio.gather(
            *[
                aresume(waiting.interrupt_id, Approve(), store=bank.store, agent=agent)
                for _ in range(5)
            ]
        )
        alone = await aresume("never", Approve(), store=bank.store)
        return outcomes, alone

    outcomes, alone = asyncio.run(play())

    assert [type(one) for one in outcomes].count(Applied) == 1
    assert [type(one) for one in outcomes].count(AlreadyResolved) == 4
    assert alone == AlreadyResolved("never")
    assert bank.paid == [("ann", 1)]


def test_a_store_of_ones_own_without_release_keeps_the_claim_visible():
    class Plain:
        """The least that a store has to be."""

        def __init__(self):
            self._inner = MemoryInterruptStore()

        def __getattr__(self, name):
            if "release" in name:
                raise AttributeError(name)
            return getattr(self._inner, name)

    store = Plain()
    assert implements(store, InterruptStore)
    bank = Bank(store)

    def agent(prompt):
        if store.list():
            raise ConnectionError("no model")
        return bank.pay("ann")

    waiting = bank.suspend(agent)
    resume(waiting, Approve(), store=store, agent=agent)

    assert [one.status for one in store.list()] == ["taken"]


def test_a_recording_store_without_release_is_told_that_nothing_was_run():
    told = []

    class Recording:
        """Records decisions and outcomes, and cannot take a claim back."""

        def __init__(self):
            self._inner = MemoryInterruptStore()

        def __getattr__(self, name):
            if "release" in name:
                raise AttributeError(name)
            return getattr(self._inner, name)

        def decide(self, interrupt_id, decision, *, by=None, via="python"):
            told.append(("decide", decision.type, by, via))

        def report(self, interrupt_id, *, key, status, outcome=None):
            assert self.load(interrupt_id).key == key
            told.append(("report", status, outcome))
            self.delete(interrupt_id)

        async def adecide(self, *args, **options):
            self.decide(*args, **options)

        async def areport(self, *args, **options):
            self.report(*args, **options)

    bank = Bank(Recording())

    def broken(prompt):
        raise ConnectionError("no model")

    first = bank.suspend(lambda prompt: bank.pay("ann"))
    failed = resume(first, Approve(), store=bank.store, agent=broken, via="slack")
    second = bank.suspend(lambda prompt: bank.pay("ben"))
    resume(second, Approve(), store=bank.store, agent=lambda prompt: bank.pay("ben"))

    assert (failed.status, failed.used) == ("failed", False)
    error = "The agent failed before it asked for this call again."
    assert told == [
        ("decide", "approve", None, "slack"),
        ("report", "failed", {"error": error}),
        ("decide", "approve", None, "python"),
        ("report", "succeeded", "paid ben"),
    ]


def test_a_record_that_a_handler_saved_by_hand_is_resumed_like_any(store):
    bank = Bank(store)

    def handler(request):
        store.save(InterruptRecord(request.interrupt_id, request, saved_at="x"))
        raise InterruptSuspended(request.interrupt_id)

    bank.gate = approval(handler=handler)
    bank.pay = bank.gate.wrap(bank.make_pay())
    waiting = bank.suspend(lambda prompt: bank.pay("ann"))

    outcome = resume(
        waiting, Approve(), store=store, agent=lambda prompt: bank.pay("ann")
    )

    assert (outcome.result, outcome.used) == ("paid ann", True)


def together(*verbs):
    """Run every verb at the same moment; a raised exception fails the test."""
    barrier = threading.Barrier(len(verbs))
    results = [None] * len(verbs)

    def run(number, verb):
        barrier.wait(timeout=30)
        results[number] = verb()

    threads = [
        threading.Thread(target=run, args=(number, verb))
        for number, verb in enumerate(verbs)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert not any(thread.is_alive() for thread in threads)
    return results
