"""Many decisions in one request: each by itself, told in order, never all or nothing."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import Group
from rest_framework.test import APIClient

from hitl_approvals import Approve, Reject, services
from hitl_approvals.api import bulk
from hitl_approvals.engine import run_turn
from hitl_approvals.models import InterruptEvent, PendingInterrupt, ReviewQueue
from tests.api import agents_for_api, scenes

pytestmark = pytest.mark.django_db(transaction=True)

URL = f"{scenes.LIST}decide/"


def one(row: PendingInterrupt, kind: str = "approve", **more: Any) -> dict[str, Any]:
    fields = {name: more.pop(name) for name in ("reason", "args") if name in more}
    return {"id": str(row.pk), "decision": {"type": kind, **fields}, **more}


def send(client: APIClient, *decisions: Any, **headers: Any) -> Any:
    body = {"decisions": list(decisions)}
    return client.post(URL, body, format="json", headers=headers)


def told(response: Any) -> list[tuple[int, str]]:
    assert response.status_code == 200, response.json()
    return [(each["status"], each["code"]) for each in response.json()["outcomes"]]


def test_each_is_decided_by_itself_and_told_in_order(reviewer, people):
    fine, edited, refused = scenes.pending(), scenes.pending(), scenes.pending()
    taken, gone, doubt = scenes.pending(), scenes.cancelled(), scenes.in_doubt()
    asked, late, own = scenes.question("Why?"), scenes.overdue(), scenes.pending()
    services.decide(taken.pk, Reject("no"), by=people["superuser"], via="admin")

    response = send(
        reviewer,
        one(fine, revision=1),
        one(taken),
        one(edited, "edit", args={"order": "A-1", "amount": 5}),
        one(gone),
        one(doubt),
        one(asked),
        one(refused, "reject", reason="Not this one."),
        one(late),
        one(own, revision=7),
    )

    assert told(response) == [
        (200, "recorded"),
        (409, "already_decided"),
        (200, "recorded"),
        (410, "interrupt_cancelled"),
        (409, "transition_not_allowed"),
        (400, "decision_not_allowed"),
        (200, "recorded"),
        (410, "interrupt_expired"),
        (409, "stale_review"),
    ]
    outcomes = response.json()["outcomes"]
    assert [each["id"] for each in outcomes] == [
        str(row.pk)
        for row in (fine, taken, edited, gone, doubt, asked, refused, late, own)
    ]
    assert outcomes[1]["interrupt"]["decided_by"] == "superuser"
    assert outcomes[2]["interrupt"]["decision_args"] == {"order": "A-1", "amount": 5}
    assert outcomes[8]["interrupt"]["status"] == "pending"
    for row in (fine, edited, refused):
        run_turn(row.turn_id)
    assert len(agents_for_api.RAN) == 2


def test_the_shape_is_that_of_the_single_doors(reviewer):
    row = scenes.pending()
    args = {"order": "A-1", "amount": "many"}

    (bulk_told,) = send(reviewer, one(row, "edit", args=args)).json()["outcomes"]
    single = reviewer.post(scenes.url(row, "edit"), {"args": args}, format="json")

    alone = single.json()
    assert bulk_told.pop("id") == str(row.pk)
    assert bulk_told.pop("status") == single.status_code == 400
    short = bulk_told.pop("interrupt")
    assert short.items() <= alone.pop("interrupt").items()
    assert bulk_told == alone


@pytest.mark.parametrize("where", ["header", "row"])
def test_sent_again_with_its_keys_it_writes_nothing(reviewer, where):
    rows = [scenes.pending(), scenes.pending()]
    more = {"key": "k-1"} if where == "row" else {}
    headers = {"Idempotency-Key": "k-1"} if where == "header" else {}
    decisions = [one(row, **more) for row in rows]

    first = send(reviewer, *decisions, **headers)
    second = send(reviewer, *decisions, **headers)

    assert told(first) == [(200, "recorded")] * 2
    assert told(second) == [(200, "replayed")] * 2
    for row in rows:
        assert scenes.events(row) == ["raised", "approved"]
    alone = reviewer.post(
        scenes.url(rows[0], "approve"), headers={"Idempotency-Key": "k-1"}
    )
    assert (alone.status_code, alone["Idempotency-Replayed"]) == (200, "true")


def test_a_row_whose_key_stands_for_another_decision_is_told_so(reviewer):
    row = scenes.pending()
    send(reviewer, one(row, key="k"))

    again = send(reviewer, one(row, "reject", reason="no", key="k"))

    assert told(again) == [(409, "key_reused")]


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ({"decision": {"type": "maybe"}}, "type"),
        ({"decision": {"type": "reject"}}, "reason"),
        ({"decision": {"type": "reject", "reason": " "}}, "blank"),
        ({"decision": "approve"}, "object"),
        ({}, "null"),
        ({"decision": {"type": "approve"}, "revision": "1"}, "integer"),
        ({"decision": {"type": "approve"}, "revision": True}, "integer"),
        ({"decision": {"type": "approve"}, "key": " "}, "key"),
        ({"decision": {"type": "approve"}, "key": "k" * 256}, "key"),
        ({"decision": {"type": "approve"}, "revison": 1}, "revison"),
    ],
)
def test_a_faulty_entry_is_refused_and_the_others_are_decided(reviewer, entry, says):
    bad, good = scenes.pending(), scenes.pending()

    response = send(reviewer, {"id": str(bad.pk), **entry}, one(good))

    assert told(response) == [(400, "malformed"), (200, "recorded")]
    outcome = response.json()["outcomes"][0]
    assert says in outcome["detail"]
    assert outcome["interrupt"]["status"] == "pending"
    assert scenes.events(bad) == ["raised"]


@pytest.mark.parametrize(
    "decisions",
    [
        None,
        [],
        {},
        ["x"],
        [{"decision": {"type": "approve"}}],
        [{"id": 7, "decision": {"type": "approve"}}],
        [{"id": "", "decision": {"type": "approve"}}],
    ],
)
def test_when_it_cannot_be_told_which_rows_are_meant_none_is_decided(
    reviewer, decisions
):
    row = scenes.pending()
    good = [one(row)] if isinstance(decisions, list) and decisions else []

    response = reviewer.post(
        URL, {"decisions": good + decisions if good else decisions}, format="json"
    )

    assert (response.status_code, response.json()["code"]) == (400, "malformed")
    assert scenes.events(row) == ["raised"]


def test_one_row_twice_too_many_rows_and_other_fields_are_refused(reviewer):
    row = scenes.pending()
    many = [one(row)] * (bulk.MOST + 1)

    answers = [
        send(reviewer, one(row), one(row, "reject", reason="no")),
        send(reviewer, *many),
        reviewer.post(URL, {"decisions": [one(row)], "all": True}, format="json"),
        send(reviewer, one(row), **{"If-Match": '"1"'}),
        send(reviewer, one(row), **{"Idempotency-Key": " "}),
    ]

    assert [(each.status_code, each.json()["code"]) for each in answers] == [
        (400, "malformed")
    ] * 5
    assert f"At most {bulk.MOST}" in answers[1].json()["detail"]
    assert scenes.events(row) == ["raised"]


def test_an_edit_as_deep_as_the_single_door_takes_fits_in(reviewer, settings):
    deep: Any = 1
    for _ in range(29):
        deep = [deep]
    args = {"order": "A-1", "amount": deep}
    row = scenes.pending()

    (outcome,) = send(reviewer, one(row, "edit", args=args)).json()["outcomes"]
    single = reviewer.post(scenes.url(row, "edit"), {"args": args}, format="json")

    assert outcome["reason"] == single.json()["reason"] == "does_not_fit"


@pytest.mark.parametrize(
    ("role", "expected"),
    [
        ("viewer", (403, "reviewer_not_allowed")),
        ("requester", (403, "reviewer_not_allowed")),
        ("stranger", (404, "interrupt_not_found")),
    ],
)
def test_every_row_asks_for_its_right(client_of, people, role, expected):
    rows = [scenes.pending(by=people["requester"]) for _ in range(2)]

    response = send(client_of(role), *(one(row) for row in rows))

    assert told(response) == [expected] * 2
    shown = [each["interrupt"] for each in response.json()["outcomes"]]
    assert (shown == [None, None]) is (role == "stranger")
    for row in rows:
        assert scenes.events(row) == ["raised"]


def test_other_queues_rows_and_rows_that_are_not_there_look_the_same(reviewer):
    ReviewQueue.objects.get(pk="default").groups.add(Group.objects.create(name="x"))
    hidden = scenes.pending()
    nowhere = {"id": "01a2289a-ab15-7189-a3dd-ed3ff228f90c"}
    approve = {"decision": {"type": "approve"}}

    response = send(
        reviewer, one(hidden), nowhere | approve, {"id": "no-uuid"} | approve
    )

    first, second, third = response.json()["outcomes"]
    assert {**first, "id": ""} == {**second, "id": ""} == {**third, "id": ""}
    assert (first["status"], first["interrupt"]) == (404, None)


def test_what_somebody_else_holds_is_told_and_the_rest_is_decided(reviewer, people):
    held, free = scenes.pending(), scenes.pending()
    services.claim(held.pk, by=people["superuser"], via="admin")

    response = send(reviewer, one(held), one(free))

    assert told(response) == [(423, "claimed_by_another"), (200, "recorded")]
    assert response.json()["outcomes"][0]["interrupt"]["status"] == "pending"


def test_nobody_gets_in_without_an_account_or_by_reading(client_of):
    row = scenes.pending()

    assert send(client_of("anonymous"), one(row)).status_code == 401
    assert client_of("reviewer").get(URL).status_code == 405
    assert scenes.events(row) == ["raised"]


def test_the_calls_of_one_turn_owe_one_run(reviewer):
    turn = scenes.suspended(
        *(
            scenes.call("api_refund", scenes.REFUND, call_id=f"c{number}")
            for number in range(3)
        )
    )
    rows = list(turn.interrupts.all())

    response = send(reviewer, *(one(row) for row in rows))

    assert told(response) == [(200, "recorded")] * 3
    turn.refresh_from_db()
    assert (turn.status, turn.undecided) == ("ready", 0)
    assert run_turn(turn.pk) == "completed"
    assert len(agents_for_api.RAN) == 3


def test_a_fault_of_the_server_leaves_what_was_recorded(reviewer, monkeypatch):
    first, second = scenes.pending(), scenes.pending()
    real = services.decide

    def broken(pk: Any, *args: Any, **options: Any) -> Any:
        if str(pk) == str(second.pk):
            raise OSError("the disk is gone")
        return real(pk, *args, **options)

    monkeypatch.setattr(services, "decide", broken)
    with pytest.raises(OSError, match="disk"):
        send(reviewer, one(first), one(second), **{"Idempotency-Key": "k"})
    monkeypatch.undo()

    again = send(reviewer, one(first), one(second), **{"Idempotency-Key": "k"})

    assert told(again) == [(200, "replayed"), (200, "recorded")]
    approved = InterruptEvent.objects.filter(type="approved")
    assert approved.count() == 2


def test_somebody_else_is_faster_with_one_of_them(reviewer, people, monkeypatch):
    rows = [scenes.pending() for _ in range(4)]
    real = services.decide

    def raced(pk: Any, *args: Any, **options: Any) -> Any:
        if str(pk) == str(rows[2].pk):
            real(pk, Approve(), by=people["superuser"], via="admin")
        return real(pk, *args, **options)

    monkeypatch.setattr(services, "decide", raced)
    response = send(
        reviewer, *(one(row, "reject", reason="no", revision=1) for row in rows)
    )

    assert [status for status, _ in told(response)] == [200, 200, 409, 200]
    winner = response.json()["outcomes"][2]["interrupt"]
    assert (winner["decision"], winner["decided_by"]) == ("approve", "superuser")
