"""Agents elsewhere over REST: raised, fetched, reported, given back, taken back."""

from __future__ import annotations

import json
import threading

import pytest
from django.db import connection

from hitl_approvals import Reject, Respond, services
from hitl_approvals.models import PendingInterrupt, ReviewQueue
from tests.api import scenes
from tests.api.remote_scenes import CALL, Agent
from tests.support import remote
from tests.support.remote import SCHEMA, decided, kinds, pass_time

pytestmark = pytest.mark.django_db
REPLAYED = "Idempotency-Replayed"


def row_of(url: str) -> PendingInterrupt:
    return PendingInterrupt.objects.get(pk=url.rstrip("/").rpartition("/")[2])


def approved(agent: Agent, key: str = "ref", **changes) -> tuple[str, PendingInterrupt]:
    url = agent.raised(key, **changes)
    return url, decided(row_of(url))


def fetched(agent: Agent, key: str = "ref") -> tuple[str, PendingInterrupt]:
    url, row = approved(agent, key)
    assert agent.consume(url).status_code == 200
    return url, row


# the whole life


def test_the_whole_life_of_an_approval(agent, reviewer):
    raised = agent.ask("refund-7")
    assert raised.status_code == 201
    url = raised["Location"]
    assert (raised.json()["url"], raised[REPLAYED]) == (url, "false")
    assert agent.get(url).json()["status"] == "pending"
    assert agent.consume(url, "worker-1").status_code == 409

    assert reviewer.post(f"{url}approve/").status_code == 200
    assert agent.get(url).json()["status"] == "decided"
    answer = agent.consume(url, "worker-1")
    assert (answer.status_code, answer[REPLAYED]) == (200, "false")
    assert answer.json()["args"] == CALL["args"]
    assert agent.consume(url, "worker-2").json()["code"] == "already_consumed"

    done = agent.report(url, "worker-1", "succeeded", result={"refund": "re_1"})
    assert (done.status_code, done[REPLAYED]) == (200, "false")
    assert done.json() == {
        "id": raised.json()["id"],
        "status": "resolved",
        "late": False,
        "url": url,
    }
    shown = agent.get(url).json()
    assert (shown["outcome_status"], shown["outcome"]) == (
        "succeeded",
        {"refund": "re_1"},
    )
    row = PendingInterrupt.objects.get()
    assert kinds(row) == ["raised", "approved", "consumed", "resolved"]
    assert [event.actor for event in remote.events(row)] == [
        "client billing",
        "reviewer",
        "client billing",
        "client billing",
    ]
    assert {event.via for event in remote.events(row)} == {"api"}


def test_what_is_fetched_says_all_that_an_agent_needs_to_act(agent, reviewer):
    url = agent.raised(args_schema=SCHEMA, execute_within=60, outcome_within=30)
    edited = {"order": "7", "amount": 2**60}
    reviewer.post(f"{url}edit/", {"args": edited, "reason": "all of it"}, format="json")

    answer = agent.consume(url).json()

    row = row_of(url)
    assert set(answer) == {
        *("id", "status", "decision", "args", "args_digest", "value", "reason"),
        *("decided_by", "decided_at", "execute_by", "outcome_due", "url"),
    }
    assert (answer["id"], answer["status"]) == (str(row.pk), "decided")
    assert (answer["decision"], answer["args"]) == ("edit", edited)
    assert answer["args_digest"] == row.decision_digest
    assert (answer["value"], answer["reason"]) == (None, "all of it")
    assert answer["decided_by"] == "reviewer"
    assert all(answer[name].endswith("Z") for name in ("decided_at", "execute_by"))
    assert (row.execute_by - row.decided_at).total_seconds() == pytest.approx(60, abs=5)
    assert (row.outcome_due - row.consumed_at).total_seconds() == pytest.approx(
        30, abs=5
    )
    assert answer["url"] == url


@pytest.mark.parametrize(
    ("question", "decision", "told"),
    [
        (False, Reject("no"), ("reject", None, "no", "refused")),
        (True, Respond({"account": 7}), ("respond", {"account": 7}, None, "answered")),
        (True, Reject("no"), ("reject", None, "no", "refused")),
    ],
)
def test_where_nothing_may_run_to_fetch_it_resolves_it(agent, question, decision, told):
    asked = {"kind": "question", "payload": "which?", "tool_name": None, "args": None}
    url = agent.raised(**(asked if question else {}))
    decided(row_of(url), decision)

    first, second = agent.consume(url), agent.consume(url)

    body = first.json()
    assert body["status"] == "resolved"
    assert (body["decision"], body["value"], body["reason"]) == told[:3]
    assert (body["args"], body["args_digest"], body["outcome_due"]) == (None,) * 3
    assert (second.status_code, second.json()) == (200, body)
    assert row_of(url).outcome_status == told[3]
    assert kinds(row_of(url))[2:] == ["resolved"]


def test_nobody_decided_in_time(agent):
    url = agent.raised(expires_in=60)
    pass_time(row_of(url), "expires_at")
    services.sweep()

    body = agent.consume(url).json()

    assert (body["decision"], body["status"], body["args"]) == (
        "expire",
        "resolved",
        None,
    )


# raise


def test_the_same_key_and_content_is_one_row(agent):
    first = agent.ask("7", context={"asked": "x"})
    second = agent.ask("7", context={"asked": "x"})

    assert (first.status_code, second.status_code) == (201, 200)
    assert (second[REPLAYED], second["Location"]) == ("true", first["Location"])
    assert first.json() == second.json()
    assert kinds(PendingInterrupt.objects.get()) == ["raised"]


def test_a_repeat_shows_where_it_stands_by_then(agent):
    url, _row = fetched(agent)

    again = agent.ask()

    assert (again.status_code, again.json()["status"]) == (200, "decided")
    assert again.json()["consumed_at"] is not None
    assert again["Location"] == url


@pytest.mark.parametrize(
    "change",
    [
        {"args": {"order": "7", "amount": 120.0}},
        {"tool_name": "pay"},
        {"priority": 1},
        {"expires_in": 5},
        {"redact": ["amount"]},
        {"queue": "default"},
    ],
)
def test_the_same_key_with_other_content_is_refused(agent, change):
    url = agent.raised("7")

    answer = agent.ask("7", **change)

    assert (answer.status_code, answer.json()["code"]) == (409, "key_reused")
    assert kinds(row_of(url)) == ["raised"]


def test_two_clients_may_use_the_same_key(agent):
    other = Agent("other")

    assert agent.raised("7") != other.raised("7")


def test_what_a_request_says_stands_on_its_row(agent):
    ReviewQueue.objects.create(slug="refunds")
    services.change_client(agent.client.pk, by=None, limits={"queues": ["refunds"]})

    body = agent.ask(
        "7",
        args_schema=SCHEMA,
        tool_call_id="c1",
        tool_description="Pays money back.",
        agent="support",
        thread_id="t1",
        context={"asked": "refund it"},
        tags=["money"],
        why="much money",
        queue="refunds",
        priority=-3,
        allowed_decisions=["approve", "reject"],
        fixed=["order"],
        redact=["amount"],
        check_hint="Look at the bank.",
        expires_in=60.5,
        execute_within=None,
    ).json()

    assert (body["client"], body["client_ref"]) == ("billing", "7")
    assert (body["agent"], body["thread_id"], body["queue"]) == (
        "support",
        "t1",
        "refunds",
    )
    assert (body["tool_call_id"], body["priority"]) == ("c1", -3)
    assert body["tool_description"] == "Pays money back."
    assert body["allowed_decisions"] == ["approve", "reject"]
    assert body["args_schema"] == SCHEMA
    assert body["context"] == {"asked": "refund it"}
    assert body["policy"]["check_hint"] == "Look at the bank."
    assert (body["policy"]["fixed"], body["policy"]["expires_in"]) == (["order"], 60.5)
    assert body["tags"] == ["money"]


def test_an_agent_sees_what_it_sent_and_a_reviewer_what_is_not_hidden(agent, reviewer):
    messages = [{"tool_calls": [{"id": "1", "name": "refund", "args": {"amount": 9}}]}]
    sent = {"redact": ["amount"], "context": {"messages": messages}}
    url = agent.raised(**sent)

    own, seen = agent.get(url).json(), reviewer.get(url).json()

    assert (own["args"], own["redacted"]) == (CALL["args"], [])
    assert own["context"] == sent["context"]
    assert json.loads(own["submission"]) == {**CALL, **sent}
    assert (seen["args"]["amount"], seen["redacted"]) == (None, ["amount"])
    assert "9" not in json.dumps(seen["context"])
    assert seen["submission"] is None
    listed = agent.get(scenes.LIST).json()["results"][0]
    assert listed["args"] == CALL["args"]


def test_a_request_is_given_back_to_the_letter(agent):
    text = '{ "tool_name":"refund",\n\t"args": {"b": 1.50, "a": "\\u00e9\\/é"}}  '

    url = agent.http.generic(
        "POST",
        scenes.LIST,
        text.encode(),
        content_type="application/json",
        headers={"Idempotency-Key": "7"},
    )["Location"]

    assert agent.get(url).json()["submission"] == text
    again = agent.ask("7", args={"a": "é/é", "b": 1.5}, tool_name="refund")
    assert (again.status_code, again.json()["submission"]) == (200, text)


# consume


def test_the_same_key_gets_the_same_answer_whatever_became_of_it(agent, client_of):
    url, row = approved(agent)
    first = agent.consume(url, "k")
    texts = []

    for act in (
        lambda: None,
        lambda: agent.report(url, "k", "unknown", error="timed out"),
        lambda: services.settle(row.pk, "happened", by=None, via="test", result=1),
    ):
        act()
        again = agent.consume(url, "k")
        assert (again.status_code, again[REPLAYED]) == (200, "true")
        texts.append(again.content)

    plain = [text.replace(b"in_doubt", b"decided") for text in texts]
    plain = [text.replace(b"resolved", b"decided") for text in plain]
    assert plain == [first.content] * 3
    assert [json.loads(text)["status"] for text in texts] == [
        "decided",
        "in_doubt",
        "resolved",
    ]
    assert agent.consume(url, "other").json()["code"] == "already_consumed"
    assert kinds(row).count("consumed") == 1


@pytest.mark.parametrize("key", ["#", "k" * 64, "k" * 255, "\u00e9\u00ff", " k "])
def test_any_key_that_a_header_can_hold_will_do(agent, key):
    url, _row = approved(agent, key)

    first, second = agent.consume(url, key), agent.consume(url, key)

    assert (first.status_code, second.status_code) == (200, 200)
    assert second[REPLAYED] == "true"
    assert agent.consume(url, f"{key}x"[-255:]).status_code == 409
    assert agent.report(url, key).json()["status"] == "resolved"


def test_an_approval_that_was_not_fetched_in_time_is_gone(agent):
    url, row = approved(agent)
    pass_time(row, "execute_by")

    late = agent.consume(url)
    services.sweep()
    lapsed = agent.consume(url)

    assert (late.status_code, late.json()["code"]) == (410, "interrupt_expired")
    assert (lapsed.status_code, lapsed.json()["code"]) == (410, "interrupt_cancelled")
    assert lapsed.json()["interrupt"]["outcome_status"] == "lapsed"
    assert kinds(row) == ["raised", "approved", "cancelled"]


@pytest.mark.breaks_invariants
def test_arguments_that_were_changed_after_the_decision_are_not_handed_out(agent):
    url, row = approved(agent)
    PendingInterrupt.objects.filter(pk=row.pk).update(args_text='{"amount":9}')

    answer = agent.consume(url)

    assert (answer.status_code, answer.json()["code"]) == (409, "snapshot_mismatch")
    assert row_of(url).consumed_at is None


# outcome


@pytest.mark.parametrize(
    ("body", "status", "kept"),
    [
        ({"status": "succeeded", "result": [1, None]}, "resolved", [1, None]),
        ({"status": "succeeded"}, "resolved", None),
        ({"status": "failed", "error": "no money"}, "resolved", {"error": "no money"}),
        ({"status": "unknown", "error": "timed out"}, "in_doubt", None),
        ({"status": "succeeded", "result": {"n": 2**70}}, "resolved", {"n": 2**70}),
    ],
)
def test_what_came_of_it_is_stored_once(agent, body, status, kept):
    url, row = fetched(agent)

    first, second = agent.report(url, **body), agent.report(url, **body)

    told = {"id": str(row.pk), "status": status, "late": False, "url": url}
    assert (first.json(), second.json()) == (told, told)
    assert (first[REPLAYED], second[REPLAYED]) == ("false", "true")
    assert row_of(url).outcome == kept
    assert len(kinds(row)) == 4


def test_a_report_that_comes_too_late_is_noted(agent):
    url, row = fetched(agent)
    pass_time(row, "outcome_due")
    services.sweep()
    assert agent.get(url).json()["status"] == "in_doubt"

    first = agent.report(url, result={"refund": 1})
    second = agent.report(url, result={"refund": 1})

    assert (first.status_code, first.json()["late"]) == (200, True)
    assert (first.json()["status"], second[REPLAYED]) == ("in_doubt", "true")
    assert kinds(row)[2:] == ["consumed", "in_doubt", "late_result"]
    assert remote.events(row)[-1].detail["result"] == {"refund": 1}


def test_only_the_key_that_fetched_it_reports(agent):
    url, row = approved(agent)
    assert agent.report(url).json()["code"] == "transition_not_allowed"
    agent.consume(url, "a")

    answer = agent.report(url, "b")

    assert (answer.status_code, answer.json()["code"]) == (409, "already_consumed")
    assert kinds(row)[-1] == "consumed"


# give back


def test_an_approval_that_was_not_used_is_given_back(agent):
    url, row = fetched(agent)

    first = agent.give_back(url, reason="no model")
    second = agent.give_back(url, reason="no model")

    assert (first.status_code, first[REPLAYED], second[REPLAYED]) == (
        200,
        "false",
        "true",
    )
    assert (first.json()["status"], first.json()["consumed_at"]) == ("decided", None)
    assert agent.consume(url, "k").json()["code"] == "already_consumed"
    assert agent.consume(url, "k2").status_code == 200
    assert kinds(row)[2:] == ["consumed", "given_back", "consumed"]
    assert agent.give_back(url, "k").status_code == 200
    assert row_of(url).consume_key == "k2"


# cancel


def test_a_request_is_withdrawn_once(agent):
    url = agent.raised()

    first, second = agent.cancel(url, reason="not needed"), agent.cancel(url)

    assert (first.status_code, first.json()["status"]) == (200, "cancelled")
    assert second.json() == first.json()
    assert kinds(row_of(url)) == ["raised", "cancelled"]
    gone = agent.consume(url)
    assert (gone.status_code, gone.json()["code"]) == (410, "interrupt_cancelled")


def test_what_was_fetched_is_not_withdrawn(agent):
    url, row = fetched(agent)

    answer = agent.cancel(url)

    assert (answer.status_code, answer.json()["code"]) == (409, "already_consumed")
    assert row_of(url).status == "decided"
    assert kinds(row)[-1] == "consumed"


@pytest.mark.parametrize(
    ("role", "code"), [("superuser", 200), ("reviewer", 403), ("stranger", 404)]
)
def test_a_person_withdraws_it_with_the_right_to_administer(
    agent, client_of, role, code
):
    url = agent.raised()

    answer = client_of(role).post(f"{url}cancel/", {"reason": "stop"}, format="json")

    assert answer.status_code == code
    assert kinds(row_of(url)) == ["raised"] + ["cancelled"] * (code == 200)
    if code == 200:
        event = remote.events(row_of(url))[-1]
        assert (event.actor, event.via) == ("superuser", "api")
        assert event.detail == {"outcome": "withdrawn", "reason": "stop"}


@pytest.mark.parametrize("role", ["superuser", "reviewer"])
def test_the_call_of_a_turn_is_not_withdrawn_by_itself(client_of, role):
    row = scenes.pending()

    answer = client_of(role).post(scenes.url(row, "cancel"))

    assert (answer.status_code, answer.json()["code"]) == (
        409,
        "transition_not_allowed",
    )
    assert "cancel its turn" in answer.json()["detail"]
    assert scenes.events(row) == ["raised"]


# at once


@pytest.mark.concurrency
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("same", [True, False])
def test_of_requests_with_one_key_at_once_one_makes_the_row(same):
    agents = [Agent()] * 4
    barrier, answers = threading.Barrier(4), []

    def ask(number: int) -> None:
        try:
            barrier.wait()
            change = {} if same else {"priority": number}
            answers.append(agents[number].ask("7", **change).status_code)
        finally:
            connection.close()

    threads = [threading.Thread(target=ask, args=[number]) for number in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()

    assert sorted(answers) == ([200] * 3 + [201] if same else [201] + [409] * 3)
    assert kinds(PendingInterrupt.objects.get()) == ["raised"]
