"""The page of a turn that stopped: what is known, and three roads on from there."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from hitl_approvals import Turn, TurnFailed, agent, services, start_turn, tool
from hitl_approvals.decisions import Approve
from hitl_approvals.engine import run_turn
from hitl_approvals.models import (
    AgentTurn,
    InterruptEvent,
    PendingInterrupt,
    ReviewQueue,
)
from tests.admin import agents_for_admin
from tests.admin.html_forms import HtmlForm, as_sent, form_to, forms_of
from tests.admin.scenes import REFUND, refund, url
from tests.support.turns import PAST, pass_deadlines

pytestmark = pytest.mark.django_db(transaction=True)

WHY = "It broke <script>alert(1)</script>\u202e here"


def page_of(turn: AgentTurn) -> str:
    return url(turn, "change", "agentturn")


def address(turn: AgentTurn, verb: str) -> str:
    return url(turn, verb, "agentturn")


def diverged(by: Any = None) -> PendingInterrupt:
    """Return an approved call in place of which the agent asks for another."""
    row = refund(by=by)
    services.decide(row.pk, Approve(), by=None, via="python")
    other = {"id": "call-0", "name": "desk_hurry", "args": {"service": "shop"}}
    AgentTurn.objects.filter(pk=row.turn_id).update(execute_options={"calls": [other]})
    assert run_turn(row.turn_id) == "needs_attention"
    row.refresh_from_db()
    return row


class WorkerDied(BaseException):
    """Ends a process as a power cut does: nothing catches it."""


@tool(name="stopped_charge", effect="unsafe", timeout=60)
def stopped_charge(customer: str) -> str:
    """Die while the call is under way."""
    raise WorkerDied(customer)


@agent("stopping_agent", tools=[agents_for_admin.desk_refund, stopped_charge])
def stopping_agent(turn: Turn, asked: Any) -> Any:
    """Make its calls, and give up if it was told to."""
    options = turn.execute_options or {}
    turn.call_tools(options["calls"])
    raise TurnFailed(options["why"])


def stopping(*names: str) -> AgentTurn:
    args = {"desk_refund": REFUND, "stopped_charge": {"customer": "C-1"}}
    calls = [{"id": name, "name": name, "args": args[name]} for name in names]
    turn = start_turn(
        "stopping_agent",
        "I want my money back.",
        execute_options={"calls": calls, "why": "It gave up <i>"},
        run=True,
    )
    for row in turn.interrupts.all():
        services.decide(row.pk, Approve(), by=None, via="python")
    return turn


def under_way() -> AgentTurn:
    """Return a turn whose only worker died in the second call."""
    turn = stopping("desk_refund", "stopped_charge")
    with pytest.raises(WorkerDied):
        run_turn(turn.pk)
    AgentTurn.objects.filter(pk=turn.pk).update(max_attempts=1, lease_until=PAST)
    services.sweep()
    AgentTurn.objects.filter(pk=turn.pk).update(last_error=WHY)
    turn.refresh_from_db()
    assert turn.status == "needs_attention"
    return turn


def half_done() -> AgentTurn:
    """Return a stopped turn of which one call ran and another may have."""
    turn = under_way()
    pass_deadlines(turn)
    services.sweep()
    turn.refresh_from_db()
    assert turn.interrupts.filter(status="in_doubt").count() == 1
    return turn


def failed() -> AgentTurn:
    """Return a turn that its agent gave up."""
    turn = stopping("desk_refund")
    assert run_turn(turn.pk) == "failed"
    turn.refresh_from_db()
    return turn


def forms(response: Any) -> dict[str, HtmlForm]:
    """Return the roads of a page by their verb."""
    found = forms_of(response.content.decode())
    return {
        one.action.rstrip("/").rpartition("/")[2]: one
        for one in found
        if "/agentturn/" in one.action and one.method == "post"
    }


def press(client: Client, turn: AgentTurn, verb: str, **changes: str) -> Any:
    form = forms(client.get(page_of(turn)))[verb]
    return client.post(form.action, as_sent({**form.fields, **changes}))


@pytest.fixture
def client(boss: User, login: Callable[[User], Client]) -> Client:
    return login(boss)


def test_it_says_why_and_what_the_ledger_knows(client: Client) -> None:
    turn = half_done()
    doubt = turn.interrupts.get(status="in_doubt")

    page = client.get(page_of(turn)).content.decode()

    assert "It broke &lt;script&gt;" in page
    assert "<script>alert" not in page
    assert "U+202E" in page
    assert "Ran, and its result is on record" in page
    assert "In doubt: it may have run, or not" in page
    assert "Nobody could find out" not in page
    assert f'href="{url(doubt)}"' in page
    assert "It waits until the call in doubt is settled." in page
    assert "may then happen a second time" in page


def test_secrets_are_not_in_what_an_error_says(client: Client) -> None:
    turn = half_done()
    AgentTurn.objects.filter(pk=turn.pk).update(
        last_error=f"refused token {REFUND['payout_token']}"
    )

    page = client.get(page_of(turn)).content.decode()

    assert REFUND["payout_token"] not in page
    assert "refused token [hidden]" in page


def test_trying_again_keeps_what_was_done_and_decided(client: Client) -> None:
    turn = half_done()

    response = press(client, turn, "retry")

    assert response.status_code == 302
    turn.refresh_from_db()
    assert (turn.status, turn.undecided) == ("suspended", 1)
    doubt = turn.interrupts.get(status="in_doubt")
    services.settle(doubt.pk, "give_up", by=None, via="python", note="nobody knows")
    assert run_turn(turn.pk) == "failed"
    assert [name for name, _args in agents_for_admin.RAN] == ["desk_refund"]


def test_a_decision_is_taken_back_whose_call_is_another_one_now(
    client: Client, boss: User
) -> None:
    row = diverged()
    page = client.get(page_of(row.turn))
    html = page.content.decode()
    form = forms(page)["review"]

    taken = client.post(form.action, as_sent(form.fields))

    assert "Decided and not used yet" in html
    assert "Approved by system" in html
    assert "desk_hurry" in html  # the error tells both calls
    assert taken.status_code == 302
    row.refresh_from_db()
    assert (row.status, row.outcome_status) == ("cancelled", "superseded")
    event = InterruptEvent.objects.filter(subject_id=row.pk).latest("sequence")
    assert (event.actor, event.via) == ("boss", "admin")
    press(client, row.turn, "retry")
    assert run_turn(row.turn_id) == "suspended"
    asked = PendingInterrupt.objects.get(turn=row.turn_id, status="pending")
    assert asked.tool_name == "desk_hurry"
    assert agents_for_admin.RAN == []
    again = client.post(form.action, as_sent(form.fields))
    assert again.status_code == 302


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ({}, "I want my money back."),
        ({"input": "Something\nelse"}, "Something\nelse"),
        (
            {"input": '{"order": 12345678901234567890}', "as": "json"},
            {"order": 12345678901234567890},
        ),
        ({"input": '{"a": 1}'}, '{"a": 1}'),
    ],
)
def test_starting_over_takes_other_input_if_there_is_one(
    client: Client, typed: dict[str, str], expected: Any
) -> None:
    row = diverged()

    response = press(client, row.turn, "restart", **typed)

    assert response.status_code == 302
    turn = AgentTurn.objects.get(pk=row.turn_id)
    assert (turn.status, turn.restarts, turn.input) == ("ready", 1, expected)
    row.refresh_from_db()
    assert (row.status, row.outcome_status) == ("cancelled", "withdrawn")
    event = InterruptEvent.objects.get(type="turn_restarted")
    assert (event.actor, event.via) == ("boss", "admin")


def test_starting_over_asks_to_look_at_what_ran(client: Client) -> None:
    turn = half_done()

    refused = press(client, turn, "restart", input="Try <b>this</b>")

    html = refused.content.decode()
    assert refused.status_code == 200
    assert "Look at what ran first, then tick this." in html
    assert "<title>Error:" in html.replace("\n", "")
    form = forms(refused)["restart"]
    assert form.fields["input"] == "Try <b>this</b>"
    turn.refresh_from_db()
    assert turn.status == "needs_attention"
    done = client.post(form.action, as_sent({**form.fields, "looked": "on"}))
    assert done.status_code == 302
    turn.refresh_from_db()
    assert (turn.status, turn.input) == ("suspended", "Try <b>this</b>")


def test_input_that_is_no_json_is_refused_and_kept(client: Client) -> None:
    row = diverged()
    typed = {"input": '{"a": 1, "a": 2}', "as": "json"}

    refused = press(client, row.turn, "restart", **typed)

    html = refused.content.decode()
    assert "This is not readable as JSON" in html
    assert 'aria-describedby="e_input"' in html
    kept = forms(refused)["restart"].fields
    assert (kept["input"], kept["as"]) == (typed["input"], "json")
    assert AgentTurn.objects.get(pk=row.turn_id).restarts == 0


def test_nothing_starts_over_while_a_call_may_be_under_way(client: Client) -> None:
    turn = under_way()

    html = client.get(page_of(turn)).content.decode()
    response = press(client, turn, "restart", looked="on", input="typed")

    assert "May be under way" in html
    assert "Start over (not while a call may be under way)" in html
    assert response.status_code == 409
    assert "may still be under way" in response.content.decode()
    assert forms(response)["restart"].fields["input"] == "typed"
    turn.refresh_from_db()
    assert turn.status == "needs_attention"


@pytest.mark.parametrize("verb", ["cancel", "restart", "retry"])
def test_a_page_that_is_out_of_date_moves_nothing(client: Client, verb: str) -> None:
    turn = half_done()
    form = forms(client.get(page_of(turn)))[verb]
    doubt = turn.interrupts.get(status="in_doubt")
    services.settle(doubt.pk, "give_up", by=None, via="python", note="x")

    sent = {**form.fields, "looked": "on", "reason": "my <reason>", "input": "mine"}
    response = client.post(form.action, as_sent(sent))
    without = client.post(form.action, {"looked": "on"})

    html = response.content.decode()
    assert (response.status_code, without.status_code) == (409, 409)
    assert "This turn changed after you opened the page." in html
    if verb != "retry":
        kept = forms(response)[verb].fields
        assert (kept.get("reason"), kept.get("input")) in (
            ("my <reason>", None),
            (None, "mine"),
        )
    turn.refresh_from_db()
    assert turn.status == "needs_attention"


def test_ending_it_leaves_the_doubt_to_be_settled(client: Client) -> None:
    turn = half_done()

    response = press(client, turn, "cancel", reason="given <up>")

    assert response.status_code == 302
    turn.refresh_from_db()
    assert turn.status == "cancelled"
    assert turn.interrupts.filter(status="in_doubt").count() == 1
    event = InterruptEvent.objects.get(type="turn_cancelled")
    assert event.detail == {"reason": "given <up>"}


def test_what_was_typed_is_shown_when_the_turn_is_over_by_then(client: Client) -> None:
    row = refund()
    form = forms(client.get(page_of(row.turn)))["cancel"]
    services.cancel(row.turn_id, by=None, via="python")

    response = client.post(form.action, as_sent({**form.fields, "reason": "My <why>"}))

    assert response.status_code == 409
    assert "My &lt;why&gt;" in response.content.decode()


def test_a_failed_turn_can_be_tried_again_and_not_ended(client: Client) -> None:
    turn = failed()

    page = client.get(page_of(turn))
    html = page.content.decode()

    assert "It gave up &lt;i&gt;" in html
    assert "It failed, and so has ended." in html
    assert set(forms(page)) >= {"retry", "restart"}
    assert "cancel" not in forms(page)
    assert client.post(address(turn, "cancel"), {}).status_code in (302, 409)
    assert press(client, turn, "retry").status_code == 302
    turn.refresh_from_db()
    assert turn.status == "ready"


def test_who_may_only_look_is_told_the_missing_right(
    person: Callable[..., User], login: Callable[[User], Client]
) -> None:
    row = diverged()
    watcher = login(person("watcher", "view_agentturn", "view_pendinginterrupt"))

    page = watcher.get(page_of(row.turn))
    html = page.content.decode()

    assert "Why it stopped" in html
    assert "Can administer turns and queues" in html
    assert forms(page) == {}
    sent = {"looked": "on", "interrupt": str(row.pk), "input": "x"}
    for verb in ("cancel", "restart", "retry", "review"):
        response = watcher.post(address(row.turn, verb), sent)
        assert response.status_code == 403
        assert "Can administer turns and queues" in response.content.decode()
    assert AgentTurn.objects.get(pk=row.turn_id).status == "needs_attention"
    row.refresh_from_db()
    assert row.status == "decided"


def test_a_stranger_finds_nothing_and_a_requester_steers_the_own_turn(
    stranger: User, login: Callable[[User], Client]
) -> None:
    own, other = diverged(by=stranger), diverged()
    client = login(stranger)

    for verb in ("cancel", "restart", "retry", "review"):
        sent = {"looked": "on", "interrupt": str(other.pk)}
        assert client.post(address(other.turn, verb), sent).status_code == 404
    page = client.get(page_of(own.turn))
    html = page.content.decode()
    assert url(own) not in html  # who may not see interrupts sees that there is one
    assert "and 1 more" in html
    assert press(client, own.turn, "retry").status_code == 302
    assert AgentTurn.objects.get(pk=own.turn_id).status == "ready"


def test_only_a_decision_of_this_turn_that_is_seen_is_taken_back(
    client: Client, person: Callable[..., User], login: Callable[[User], Client]
) -> None:
    row, other = diverged(), diverged()
    outsider = login(person("ann", "view_pendinginterrupt", "view_agentturn"))
    ReviewQueue.objects.get(pk="default").groups.add(Group.objects.create(name="in"))

    for given in (str(other.pk), "", "nonsense", str(row.turn_id)):
        response = client.post(address(row.turn, "review"), {"interrupt": given})
        assert response.status_code == 404
    hidden = outsider.post(address(row.turn, "review"), {"interrupt": str(row.pk)})
    assert hidden.status_code == 404
    for one in (row, other):
        one.refresh_from_db()
        assert one.status == "decided"


def test_looking_changes_nothing(client: Client) -> None:
    turn = half_done()
    before = AgentTurn.objects.values().get(pk=turn.pk)

    for verb in ("cancel", "restart", "retry", "review"):
        response = client.get(address(turn, verb), {"looked": "on", "seen": "x"})
        assert (response.status_code, response.url) == (302, page_of(turn))
    assert client.get(page_of(turn)).status_code == 200

    assert AgentTurn.objects.values().get(pk=turn.pk) == before


def test_what_was_typed_survives_an_expired_login(boss: User) -> None:
    turn = half_done()

    response = Client().post(
        address(turn, "restart"), {"input": "Long <b>text", "seen": "1", "looked": "on"}
    )

    html = response.content.decode()
    assert response.status_code == 403
    assert "Long &lt;b&gt;text" in html
    assert "You were logged out" in html
    turn.refresh_from_db()
    assert turn.status == "needs_attention"


def test_the_page_is_labelled_and_asks_a_fixed_number_of_queries(
    client: Client,
) -> None:
    def queries(turn: AgentTurn) -> int:
        with CaptureQueriesContext(connection) as found:
            assert client.get(page_of(turn)).status_code == 200
        return len(found)

    turn, row = half_done(), diverged()
    assert queries(turn) == queries(row.turn)
    pages = [
        client.get(page_of(turn)),
        press(client, turn, "restart"),
        press(client, turn, "restart", input="{", **{"as": "json"}),
    ]
    for html in (one.content.decode() for one in pages):
        ids = re.findall(r'\sid="([^"]+)"', html)
        assert len(ids) == len(set(ids)), "an id stands twice"
        for attribute in ("aria-labelledby", "aria-describedby", "for"):
            for value in re.findall(rf'\s{attribute}="([^"]+)"', html):
                assert set(value.split()) <= set(ids), (attribute, value)
        assert html.count("<h1") == 1


def test_a_second_press_goes_nowhere(client: Client) -> None:
    row = diverged()
    form = form_to(client.get(page_of(row.turn)), "/retry/")

    first = client.post(form.action, form.fields)
    second = client.post(form.action, form.fields)

    assert (first.status_code, second.status_code) == (302, 302)
    assert "there is nothing to retry" in client.get(second.url).content.decode()
    assert InterruptEvent.objects.filter(type="turn_retried").count() == 1
