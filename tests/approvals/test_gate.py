"""One call through the gate: who is asked, about what, and what comes of each answer."""

from __future__ import annotations

import asyncio
import inspect
import threading
from contextlib import suppress
from dataclasses import replace
from datetime import date
from decimal import Decimal

import pytest

from hitl_approvals import (
    ApprovalRejected,
    Approve,
    Edit,
    HitlApprovalsError,
    InterruptRecord,
    InterruptSuspended,
    MemoryInterruptStore,
    Reject,
    Respond,
    ToolFailed,
    all_of,
    any_of,
    approval,
    gate_all_except,
    gate_only,
    predicate,
    tool,
)
from hitl_approvals.exceptions import HitlConfigurationError, PayloadRejected

ran = []


@pytest.fixture(autouse=True)
def _nothing_ran():
    ran.clear()


@tool(name="gate_test_refund", tags=["money"], allowed_decisions=("approve", "edit"))
def refund(order: str, amount: Decimal, on: date | None = None) -> Decimal:
    """Refund an order.

    Args:
        order: Which one.
    """
    ran.append((order, amount, on))
    return amount


def plain(a, b=2, *rest, c=3, **more):
    """A function without types."""
    ran.append((a, b, rest, c, more))
    return [a, b]


def answering(answer):
    asked = []

    def handler(request):
        asked.append(request)
        return answer(request) if callable(answer) else answer

    gate = approval(handler=handler)
    gate.asked = asked
    return gate


CALL = {"id": "call_1", "name": "x", "args": {"order": "A", "amount": "1.50"}}


def test_an_approved_call_runs_with_what_its_signature_reads():
    gate = answering(Approve())

    result = gate.invoke(CALL, refund)

    assert (result.status, result.value, result.error) == (
        "succeeded",
        Decimal("1.50"),
        None,
    )
    assert ran == [("A", Decimal("1.50"), None)]
    assert result.interrupt_id == gate.asked[0].interrupt_id


def test_the_request_says_everything_and_is_plain_json():
    gate = approval(
        predicate(lambda call: ["big"], tags=["always"]),
        store=(store := MemoryInterruptStore()),
    )

    def agent(prompt, **options):
        gate.invoke({"args": {"a": 1}}, plain)
        return "never"

    agent.name = "support"
    gate.execute(agent, {"ask": "refund"}, thread_id="t 7")
    [record] = store.list()
    request = record.request

    assert request.tool_name == "plain"
    assert request.tool_description == "A function without types."
    assert request.args == {"a": 1}
    assert request.digest.startswith("c1:")
    assert (request.agent, request.thread_id, request.trip) == ("support", "t 7", 0)
    assert request.original_input == {"ask": "refund"}
    assert request.tags == ("big", "always")
    assert "returned the tags big" in request.why
    assert (request.gate, request.occurrence) == ("human-approval", 1)
    assert request.requested_at.endswith("Z")
    assert record.saved_at.endswith("Z")
    assert request.from_json(request.to_json()) == request


def test_the_request_carries_the_schema_and_what_may_be_decided():
    gate = answering(Approve())

    gate.invoke(CALL, refund)

    [request] = gate.asked
    assert request.args == {"order": "A", "amount": "1.50"}
    assert request.args_schema["properties"]["order"]["description"] == "Which one."
    assert request.allowed_decisions == ("approve", "edit")
    assert request.tool_call_id == "call_1"
    assert request.tags == ("money",)


def test_the_trip_counts_the_calls_of_the_run():
    trips = []
    gate = approval(
        predicate(lambda call: trips.append((call.trip, call.agent)) or False),
        store=MemoryInterruptStore(),
    )

    def helper(prompt):
        for _ in range(3):
            gate.invoke({"args": {"a": 1}}, plain)

    gate.execute(helper, "go")

    assert trips == [(0, "helper"), (1, "helper"), (2, "helper")]


def test_the_predicate_sees_the_call_as_it_would_run():
    seen = []
    gate = approval(
        predicate(lambda call: seen.append(call) or False),
        store=MemoryInterruptStore(),
    )
    agent = gate.wrap(refund)

    gate.execute(
        lambda prompt, **options: agent("A", Decimal(3)), "go", session_id="s 1"
    )

    [call] = seen
    assert (call.tool_name, call.description) == (
        "gate_test_refund",
        "Refund an order.",
    )
    assert call.args == {"order": "A", "amount": Decimal(3)}
    assert (call.thread_id, call.tags) == ("s 1", ("money",))
    assert call.turn_id


def test_a_rejected_call_is_a_failed_result_with_the_reason():
    gate = answering(Reject("too much"))

    result = gate.invoke({"args": {"a": 1}}, plain)

    assert result.status == "failed"
    assert isinstance(result.error, ApprovalRejected)
    assert (result.error.tool_name, result.error.reason) == ("plain", "too much")
    assert ran == []


def test_an_edit_replaces_the_arguments_whole():
    gate = answering(Edit({"order": "B", "amount": 2, "on": "2026-01-02"}))

    result = gate.invoke(CALL, refund)

    assert result.value == Decimal(2)
    assert ran == [("B", Decimal(2), date(2026, 1, 2))]


@pytest.mark.parametrize(
    ("args", "tool_"),
    [
        ({"order": "B"}, refund),
        ({"order": "B", "amount": "much"}, refund),
        ({"order": "B", "amount": 1, "to": "me"}, refund),
        ({"b": 1}, plain),
        ({"a": {1, 2}}, plain),
    ],
    ids=["missing", "wrong", "unknown", "untyped", "not JSON"],
)
def test_the_tools_own_validation_applies_to_edits(args, tool_):
    gate = answering(Edit(args))
    call = CALL if tool_ is refund else {"args": {"a": 1}}

    result = gate.invoke(call, tool_)

    assert isinstance(result.error, PayloadRejected)
    assert ran == []


@pytest.mark.parametrize(
    "args",
    ["{", "[]", {"order": "A"}, None, {"order": "A", "amount": float("nan")}],
)
def test_unreadable_arguments_are_a_failed_result_and_ask_nobody(args):
    gate = answering(Approve())

    result = gate.invoke({"args": args}, refund)

    assert isinstance(result.error, PayloadRejected)
    assert (gate.asked, ran) == ([], [])


def test_arguments_may_be_json_text():
    gate = answering(Approve())

    gate.invoke({"args": '{"order": "A", "amount": 1}'}, refund)

    assert ran == [("A", Decimal(1), None)]


def test_what_a_tool_raises_is_a_failed_result():
    def broken(a: int) -> None:
        raise ZeroDivisionError(a)

    result = answering(Approve()).invoke({"args": {"a": 1}}, broken)

    assert isinstance(result.error, ZeroDivisionError)


def test_a_free_call_passes_without_being_asked():
    asked = []
    gate = approval(gate_only(["other"]), handler=asked.append)

    result = gate.invoke({"args": {"a": 1}}, plain)

    assert (result.status, result.interrupt_id) == ("succeeded", None)
    assert asked == []


# A handler's bug is never an approval


@pytest.mark.parametrize(
    "answer",
    [
        None,
        True,
        "approve",
        {"type": "postpone"},
        {"type": "approve", "really": True},
        Respond("yes"),
        {"type": "reject"},
    ],
    ids=["None", "True", "text", "unknown", "extra", "respond", "no reason"],
)
def test_an_answer_that_is_no_decision_leaves_the_pipeline(answer):
    gate = answering(answer)

    with pytest.raises(TypeError):
        gate.invoke({"args": {"a": 1}}, plain)

    assert ran == []


def test_a_decision_that_the_tool_does_not_allow_is_the_handlers_bug():
    gate = answering(Reject("no"))

    with pytest.raises(TypeError, match="'reject'; for gate_test_refund it may be"):
        gate.invoke(CALL, refund)


def test_a_bug_leaves_execute_although_the_agent_swallowed_it():
    gate = answering(None)
    guarded = gate.wrap(plain)

    def agent(prompt):
        for _ in range(2):
            with suppress(Exception):
                guarded(1)
        return "all fine"

    with pytest.raises(TypeError, match="returned None"):
        gate.execute(agent, "go")

    assert ran == []
    assert len(gate.asked) == 1


def test_a_handler_that_suspends_under_an_id_of_its_own_is_a_bug():
    def handler(request):
        raise InterruptSuspended("my own")

    with pytest.raises(TypeError, match=r"request\.interrupt_id"):
        approval(handler=handler).invoke({"args": {"a": 1}}, plain)


def test_what_a_handler_does_to_its_request_changes_nothing():
    def handler(request):
        request.args["a"] = 100
        return Approve()

    answering(handler).invoke({"args": {"a": 1}}, plain)

    assert ran[0][0] == 1


# Durable


def test_the_gate_saves_what_the_handler_did_not():
    store = MemoryInterruptStore()

    def handler(request):
        raise InterruptSuspended(request.interrupt_id)

    result = approval(handler=handler, store=store).invoke({"args": {"a": 1}}, plain)

    assert [one.interrupt_id for one in store.list()] == [result.interrupt_id]
    assert result.suspended


def test_a_store_alone_keeps_and_suspends():
    store = MemoryInterruptStore()

    result = approval(store=store).invoke({"args": {"a": 1}}, plain)

    assert result.suspended
    assert store.load(result.interrupt_id).request.args == {"a": 1}
    assert ran == []


def test_a_request_that_cannot_be_kept_stops_the_run_and_is_its_error():
    class Down(MemoryInterruptStore):
        def save(self, record):
            raise ConnectionError("no store")

    gate = approval(gate_only(["plain"]), store=Down())
    guarded, free = gate.wrap(plain), gate.wrap(refund)
    raised = []

    def agent(prompt):
        for call in (lambda: guarded(1), lambda: free("A", Decimal(1))):
            try:
                call()
            except ConnectionError as error:
                raised.append(error)
        return "fine"

    outcome = gate.execute(agent, "go")

    assert isinstance(outcome.error, ConnectionError)
    assert (outcome.output, len(raised), ran) == (None, 2, [])


def test_an_agent_that_swallows_the_suspension_is_still_suspended():
    store = MemoryInterruptStore()
    gate = approval(gate_only(["plain"]), store=store)
    guarded, free = gate.wrap(plain), gate.wrap(refund)
    told = []

    def agent(prompt):
        for call in (
            lambda: guarded(1),
            lambda: free("A", Decimal(1)),
            lambda: guarded(2),
        ):
            try:
                call()
            except Exception as error:  # noqa: BLE001  what agents do
                told.append(error)
        return "I did it all"

    outcome = gate.execute(agent, "go")

    assert outcome.suspended
    assert outcome.output is None
    [record] = store.list()
    assert outcome.interrupt_id == record.interrupt_id
    assert [str(one.interrupt_id) for one in told] == [record.interrupt_id] * 3
    assert ran == []


def test_a_suspension_that_a_framework_wraps_in_its_own_exception_is_one():
    gate = approval(store=MemoryInterruptStore())
    guarded = gate.wrap(plain)

    def agent(prompt):
        try:
            guarded(1)
        except Exception as error:
            raise RuntimeError("tool failed") from error

    assert gate.execute(agent, "go").suspended


# Wrapping


def test_a_wrapped_tool_keeps_name_and_signature_and_is_called_as_before():
    gate = answering(Approve())
    guarded = gate.wrap(plain)

    assert guarded(1, 2, 3, 4, c=5, d=6) == [1, 2]

    assert ran == [(1, 2, (3, 4), 5, {"d": 6})]
    assert guarded.__name__ == "plain"
    assert inspect.signature(guarded) == inspect.signature(plain)
    assert gate.asked[0].args == {"a": 1, "b": 2, "rest": [3, 4], "c": 5, "d": 6}


def test_a_wrapped_tool_of_ours_takes_values_and_returns_values():
    gate = answering(Approve())

    value = gate.wrap(refund)("A", amount=Decimal("0.10"), on=date(2026, 1, 2))

    assert value == Decimal("0.10")
    assert ran == [("A", Decimal("0.10"), date(2026, 1, 2))]
    assert gate.asked[0].args == {"order": "A", "amount": "0.10", "on": "2026-01-02"}


def test_a_wrapped_tool_raises_what_its_result_carries():
    guarded = answering(Reject("no")).wrap(plain)

    with pytest.raises(ApprovalRejected, match="no"):
        guarded(1)
    with pytest.raises(TypeError, match="missing"):
        guarded()


def test_a_tool_needs_no_turn_and_its_own_policy_is_not_asked():
    @tool(name="gate_test_free", requires_approval=False)
    def free(a: int) -> int:
        return a

    gate = answering(Reject("the gate's policy decides"))

    assert isinstance(gate.invoke({"args": {"a": 1}}, free).error, ApprovalRejected)


def test_what_is_no_tool_is_refused():
    with pytest.raises(TypeError, match="A tool is a function"):
        answering(Approve()).invoke({"args": {}}, "refund")


# Async


def test_the_async_gate_awaits_handlers_and_tools():
    asked = []

    async def handler(request):
        await asyncio.sleep(0)
        asked.append(request)
        return Approve()

    async def slow(a: int) -> int:
        await asyncio.sleep(0)
        ran.append(a)
        return a + 1

    gate = approval(handler=handler)
    guarded = gate.wrap(slow)

    async def agent(prompt, **options):
        return [await guarded(1), await gate.ainvoke({"args": {"a": 5}}, plain)]

    outcome = asyncio.run(gate.aexecute(agent, "go"))

    first, second = outcome.output
    assert (first, second.value) == (2, [5, 2])
    assert inspect.iscoroutinefunction(guarded)
    assert len(asked) == 2


def test_the_async_gate_suspends_rejects_and_raises_bugs():
    store = MemoryInterruptStore()
    durable = approval(store=store)
    buggy = approval(handler=lambda request: None)

    async def play():
        waiting = await durable.aexecute(agent, "go")
        assert waiting.suspended
        assert [one.interrupt_id for one in store.list()] == [waiting.interrupt_id]
        with pytest.raises(TypeError, match="returned None"):
            await buggy.aexecute(other, "go")

    async def agent(prompt):
        await durable.ainvoke({"args": {"a": 1}}, plain)

    async def other(prompt):
        try:
            await buggy.ainvoke({"args": {"a": 1}}, plain)
        except TypeError:
            return "swallowed"

    asyncio.run(play())
    assert ran == []


def test_gated_calls_at_once_are_asked_one_after_the_other():
    store = MemoryInterruptStore()
    gate = approval(store=store)

    async def agent(prompt):
        return await asyncio.gather(
            *[gate.ainvoke({"args": {"a": n}}, plain) for n in range(4)]
        )

    outcome = asyncio.run(gate.aexecute(agent, "go"))

    [record] = store.list()
    assert outcome.interrupt_id == record.interrupt_id
    assert ran == []


# A call within an approved call


def test_a_call_inside_an_approved_call_may_be_asked_in_process():
    gate = answering(Approve())
    inner = gate.wrap(plain)

    def outer(a: int) -> list:
        return inner(a)

    result = gate.invoke({"args": {"a": 1}}, outer)

    assert result.value == [1, 2]
    assert [one.tool_name for one in gate.asked] == ["outer", "plain"]


def test_a_call_inside_an_approved_call_cannot_wait_and_is_refused():
    store = MemoryInterruptStore()

    def handler(request):
        if request.tool_name == "outer":
            return Approve()
        store.save(replace_record(request))
        raise InterruptSuspended(request.interrupt_id)

    gate = approval(handler=handler, store=store)
    inner = gate.wrap(plain)
    told = []

    def outer(a: int) -> str:
        try:
            inner(a)
        except ApprovalRejected as error:
            told.append(error.reason)
        return "done"

    outcome = gate.execute(lambda prompt: gate.invoke({"args": {"a": 1}}, outer), "go")

    assert outcome.output.value == "done"
    assert "Call it from the agent" in told[0]
    assert (store.list(), ran) == ([], [])


def replace_record(request):
    return replace(InterruptRecord(request.interrupt_id, request), saved_at="2026Z")


def test_an_agent_as_a_free_tool_suspends_the_outer_run():
    store = MemoryInterruptStore()
    gate = approval(gate_all_except(["helper"]), store=store)
    guarded = gate.wrap(plain)

    @gate.wrap
    def helper(task: str) -> str:
        outcome = gate.execute(lambda prompt: guarded(1), task)
        assert outcome.suspended
        return outcome.error

    outcome = gate.execute(lambda prompt: helper("sub task"), "outer input")

    assert outcome.suspended
    assert store.load(outcome.interrupt_id).request.original_input == "outer input"


# At start-up


def test_a_gate_needs_a_way_to_ask():
    with pytest.raises(TypeError, match="needs handler=, store= or both"):
        approval()


@pytest.mark.parametrize(
    "given",
    [
        {"handler": "slack"},
        {"store": {}},
        {"policy": ["plain"], "handler": print},
        {"policy": None, "handler": print},
    ],
)
def test_what_cannot_work_is_refused_at_once(given):
    with pytest.raises(TypeError, match="must be"):
        approval(**given)


@pytest.mark.parametrize("kinds", [["approve", "aprove"], ["respond"], []])
def test_unknown_kinds_of_decision_are_refused_at_once(kinds):
    with pytest.raises(HitlConfigurationError, match="allowed_decisions may hold"):
        approval(handler=print, allowed_decisions=kinds)


def test_a_misspelt_tool_is_refused_where_the_tools_are_given():
    policy = any_of(gate_only(["plain", "refnd"]), predicate(lambda call: False))

    with pytest.raises(HitlConfigurationError, match="names refnd"):
        approval(policy, handler=print, tools=[plain, "other"])


def test_a_misspelt_tool_is_refused_before_the_agent_begins():
    gate = approval(gate_only(["plane"]), handler=print)
    guarded = gate.wrap(plain)
    began = []

    with pytest.raises(HitlConfigurationError, match="names plane"):
        gate.execute(lambda prompt: began.append(1) or guarded(1), "go")
    with pytest.raises(HitlConfigurationError, match="names plane"):
        asyncio.run(gate.aexecute(lambda prompt: guarded(1), "go"))

    assert (began, ran) == ([], [])


@pytest.mark.parametrize(
    "policy",
    [
        lambda call: None,
        lambda call: 1 / 0,
        lambda call: "no",
        lambda call: call.nothing,
    ],
    ids=["forgot to return", "raises", "text", "misspelt attribute"],
)
def test_a_predicate_that_gives_no_answer_gates_the_call(policy):
    store = MemoryInterruptStore()

    result = approval(policy, store=store).invoke({"args": {"a": 1}}, plain)

    assert result.suspended
    assert ran == []
    assert store.list()[0].request.why


def test_agents_may_be_objects_and_async():
    class Agent:
        name = "thing"

        def execute(self, prompt, *, loud=False):
            return prompt.upper() if loud else prompt

    class Awaited:
        async def run(self, prompt):
            return prompt

    gate = answering(Approve())

    assert gate.execute(Agent(), "hi", loud=True).output == "HI"
    assert gate.execute(Awaited(), "hi").output == "hi"
    assert asyncio.run(gate.aexecute(Awaited(), "hi")).output == "hi"
    with pytest.raises(TypeError, match="An agent is a function"):
        gate.execute("support", "hi")


def test_a_tool_that_says_that_nothing_happened_says_so_to_the_agent():
    def careful(a: int) -> None:
        raise ToolFailed("declined")

    outcome = answering(Approve()).invoke({"args": {"a": 1}}, careful)

    assert str(outcome.error) == "declined"
    assert not isinstance(outcome.error, HitlApprovalsError)


@tool(name="gate_test_wire", fixed=["to"], redact=["pin"], check_hint="Ask the bank.")
def wire(to: str, amount: int = 1, pin: str = "") -> str:
    ran.append((to, amount))
    return to


def test_an_edit_cannot_change_a_fixed_argument():
    gate = answering(Edit({"to": "mallory", "amount": 2}))

    result = gate.invoke({"args": {"to": "ann"}}, wire)

    assert isinstance(result.error, PayloadRejected)
    assert "cannot be edited: to" in str(result.error)
    assert ran == []
    [request] = gate.asked
    assert (request.fixed, request.redact, request.check_hint) == (
        ("to",),
        ("pin",),
        "Ask the bank.",
    )
    assert (
        answering(Edit({"to": "ann", "amount": 2}))
        .invoke({"args": {"to": "ann"}}, wire)
        .status
        == "succeeded"
    )


@pytest.mark.parametrize(
    "call",
    [
        {"id": 7, "name": "wire", "args": {"to": "ann"}},
        {"id": 7, "function": {"name": "wire", "arguments": '{"to": "ann"}'}},
    ],
    ids=["ours", "nested"],
)
def test_a_call_may_have_the_shape_of_a_models(call):
    gate = answering(Approve())

    assert gate.invoke(call, wire).value == "ann"
    assert gate.asked[0].tool_call_id == "7"


@pytest.mark.parametrize("call", [None, "wire", [], {"args": None}])
def test_what_is_no_call_is_a_failed_result(call):
    gate = answering(Approve())

    assert isinstance(gate.invoke(call, wire).error, PayloadRejected)
    assert gate.asked == []


def test_a_thread_and_a_task_that_ask_at_once_leave_one_question():
    store = MemoryInterruptStore()
    both = threading.Barrier(2)

    def handler(request):
        both.wait(timeout=30)
        raise InterruptSuspended(request.interrupt_id)

    gate = approval(handler=handler, store=store)

    async def agent(prompt):
        return await asyncio.gather(
            asyncio.to_thread(gate.invoke, {"args": {"a": 1}}, plain),
            gate.ainvoke({"args": {"a": 2}}, plain),
        )

    outcome = asyncio.run(gate.aexecute(agent, "go"))

    assert [one.interrupt_id for one in store.list()] == [outcome.interrupt_id]
    assert ran == []


def test_handlers_tools_and_agents_may_be_objects_that_are_awaited():
    class Awaited:
        def __init__(self, answer):
            self.answer = answer

        async def __call__(self, *args):
            await asyncio.sleep(0)
            return (
                await self.answer() if inspect.isroutine(self.answer) else self.answer
            )

    gate = approval(handler=Awaited(Approve()))
    guarded = gate.wrap(Awaited("ran"))

    outcome = asyncio.run(gate.aexecute(Awaited(guarded), "go"))

    assert outcome.output == "ran"
    assert gate.execute(Awaited(Awaited("plain").__call__), "go").output == "plain"


def test_policies_can_be_composed():
    policy = any_of(
        gate_only(["plain"], tags=["listed"]),
        all_of(predicate(lambda call: ["big"]), gate_all_except(["plain"])),
    )
    store = MemoryInterruptStore()
    gate = approval(policy, store=store)

    assert gate.invoke({"args": {"a": 1}}, plain).suspended
    assert gate.invoke({"args": {"to": "ann"}}, wire).suspended

    assert sorted(one.request.tags for one in store.list()) == [("big",), ("listed",)]
