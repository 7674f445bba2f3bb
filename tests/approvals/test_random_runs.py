"""Whatever an agent asks and a reviewer says: nothing runs that was not authorized, once."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from hitl_approvals import (
    AlreadyResolved,
    Applied,
    Approve,
    Edit,
    MemoryInterruptStore,
    Reject,
    approval,
    gate_only,
    resume,
)

CALLS = st.tuples(st.sampled_from(["pay", "mail", "look"]), st.integers(0, 2))
SCRIPTS = st.lists(CALLS, max_size=5)
ANSWERS = st.sampled_from(["approve", "edit", "reject"])
TROUBLE = st.sampled_from(["none", "none", "early", "late", "twice"])
ROUNDS = st.lists(
    st.tuples(ANSWERS, TROUBLE, st.one_of(st.none(), SCRIPTS)), max_size=8
)


class Office:
    """An agent that follows a script, which may be another one in every run."""

    def __init__(self):
        self.store = MemoryInterruptStore()
        self.gate = approval(gate_only(["pay", "mail"]), store=self.store)
        self.ran = Counter()
        self.allowed = Counter()
        self.script = []
        self.trouble = "none"
        self.tools = {
            name: self.gate.wrap(self.make(name)) for name in ("pay", "mail", "look")
        }

    def make(self, name):
        def tool(amount: int) -> str:
            self.ran[name, amount] += 1
            return f"{name} {amount}"

        tool.__name__ = name
        return tool

    def agent(self, prompt):
        if self.trouble == "early":
            raise ConnectionError("no model")
        told = []
        for name, amount in self.script:
            try:
                told.append(self.tools[name](amount))
            except Exception as error:  # noqa: BLE001  agents swallow what they can
                told.append(type(error).__name__)
        if self.trouble == "late":
            raise ConnectionError("no model")
        return told

    def gated(self):
        return Counter({key: n for key, n in self.ran.items() if key[0] != "look"})

    def decide(self, interrupt_id, answer):
        """Resume with an answer, and note what it authorizes."""
        request = self.store.load(interrupt_id).request
        amount = request.args["amount"]
        decision = {
            "approve": Approve(),
            "edit": Edit({"amount": amount + 10}),
            "reject": Reject("no"),
        }[answer]
        before = self.gated()
        outcome = resume(interrupt_id, decision, store=self.store, agent=self.agent)
        assert isinstance(outcome, Applied)
        new = self.gated() - before
        if answer == "reject":
            assert not new
        else:
            ran_with = amount + 10 if answer == "edit" else amount
            assert new in (Counter(), Counter({(request.tool_name, ran_with): 1}))
            assert bool(new) <= bool(outcome.used)
            if outcome.used:
                self.allowed[request.tool_name, ran_with] += 1
        return outcome


@settings(max_examples=300, deadline=None)
@given(SCRIPTS, ROUNDS)
def test_every_run_of_a_gated_tool_was_authorized_once(script, rounds):
    office = Office()
    office.script = script
    waits_for = office.gate.execute(office.agent, "go").interrupt_id

    for answer, trouble, other in rounds:
        if waits_for is None:
            break
        office.trouble = trouble
        if other is not None:
            office.script = other
        outcome = office.decide(waits_for, answer)
        if trouble == "twice":
            again = resume(waits_for, Approve(), store=office.store, agent=office.agent)
            assert again == AlreadyResolved(waits_for)
        # Given back, asked anew, or over: never two questions, never one that is lost.
        kept = [record.interrupt_id for record in office.store.list()]
        if outcome.used is False and outcome.status == "failed":
            assert kept == [waits_for]
        else:
            waits_for = outcome.next_interrupt_id
            assert kept == ([] if waits_for is None else [waits_for])

    assert office.gated() <= office.allowed


@settings(max_examples=150, deadline=None)
@given(SCRIPTS, st.lists(ANSWERS, min_size=6, max_size=6))
def test_an_agent_that_asks_for_the_same_comes_to_its_end(script, answers):
    office = Office()
    office.script = script
    outcome = office.gate.execute(office.agent, "go")
    asked = 0
    told = outcome.output

    waits_for = outcome.interrupt_id
    while waits_for is not None:
        applied = office.decide(waits_for, answers[asked])
        assert applied.used
        asked += 1
        told, waits_for = applied.result, applied.next_interrupt_id

    gated = [call for call in script if call[0] != "look"]
    assert asked == len(gated)
    assert len(told) == len(script)
    assert office.gated() == office.allowed
    assert office.store.list() == []
