"""The fake handler stands for a person in a site's own tests."""

from __future__ import annotations

from hitl_approvals import Approve, MemoryInterruptStore, Reject, approval
from hitl_approvals.testing import FakeHandler


def test_it_answers_in_order_and_suspends_when_it_has_no_answer():
    handler = FakeHandler(Approve(), None, {"type": "reject", "reason": "no"})
    store = MemoryInterruptStore()
    gate = approval(handler=handler, store=store)

    def pay(to: str) -> str:
        return f"paid {to}"

    results = [gate.invoke({"args": {"to": to}}, pay) for to in "abcd"]

    assert results[0].value == "paid a"
    assert results[1].suspended
    assert results[2].error.reason == Reject("no").reason
    assert results[3].suspended
    assert [request.args["to"] for request in handler.requests] == list("abcd")
    assert len(store.list()) == 2
