"""Forking in the admin: asked once more, made by POST, shown on both sides."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from django.test import Client

from hitl_approvals import services
from hitl_approvals.models import AgentTurn, InterruptEvent, PendingInterrupt, TurnStep
from tests.admin.html_forms import form_to, forms_of
from tests.admin.scenes import charge_in_doubt, refund, url

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def client(boss: User, login: Callable[[User], Client]) -> Client:
    return login(boss)


def _turn_page(client: Client, turn: AgentTurn) -> str:
    return client.get(url(turn, "change", "agentturn")).content.decode()


def _fork(client: Client, turn: AgentTurn, at: object = None) -> AgentTurn:
    """Press the button of the page, then the one that confirms it."""
    offered = [
        one
        for one in forms_of(_turn_page(client, turn))
        if one.action.endswith("/fork/")
        and one.fields.get("at", "") == ("" if at is None else str(at))
    ]
    asked = client.post(offered[0].action, offered[0].fields)
    assert asked.status_code == 200
    assert AgentTurn.objects.filter(parent=turn).count() == 0
    form = form_to(asked, "/fork/")
    (button,) = form.buttons
    made = client.post(form.action, {**form.fields, button[0]: button[1]})
    again = client.post(form.action, {**form.fields, button[0]: button[1]})
    assert made.status_code == again.status_code == 302
    assert made.url == again.url
    fork = AgentTurn.objects.get(parent=turn)
    assert made.url == url(fork, "change", "agentturn")
    return fork


def test_a_turn_is_forked_at_what_waits_and_both_pages_show_it(client: Client) -> None:
    row = refund()

    fork = _fork(client, row.turn, row.pk)

    assert (fork.status, fork.forked_at) == ("suspended", str(row.pk))
    event = InterruptEvent.objects.get(type="turn_forked")
    assert (event.actor, event.via) == ("boss", "admin")
    origin_page, fork_page = _turn_page(client, row.turn), _turn_page(client, fork)
    assert "Forks of this turn" in origin_page
    assert url(fork, "change", "agentturn") in origin_page
    assert "Forked from" in fork_page
    assert url(row.turn, "change", "agentturn") in fork_page
    assert "Turn begun as a fork" in fork_page
    copy = fork.interrupts.get()
    call_page = client.get(url(copy)).content.decode()
    assert "Asked again in a fork." in call_page
    assert "Asked again in this fork, made by" in call_page
    assert url(row) in call_page


def test_the_whole_turn_is_forked_without_naming_a_point(client: Client) -> None:
    row = refund()

    assert _fork(client, row.turn).forked_at == str(row.pk)


def test_a_fork_after_a_step_says_which(client: Client) -> None:
    row = refund()
    step = TurnStep.objects.create(
        turn=row.turn,
        key="k",
        position=1,
        kind="model",
        name="thinking",
        status="succeeded",
        result={"content": ""},
    )
    asked = client.post(url(row.turn, "fork", "agentturn"), {"at": str(step.pk)})

    assert "After the step" in asked.content.decode()
    assert "thinking" in asked.content.decode()
    assert _fork(client, row.turn, step.pk).forked_at == str(step.pk)


def test_calls_of_unknown_fate_are_warned_of_before_and_after(client: Client) -> None:
    row = charge_in_doubt()
    action = url(row.turn, "fork", "agentturn")

    asked = client.post(action, {"at": str(row.pk)}).content.decode()
    fork = _fork(client, row.turn, row.pk)

    assert "Whether these calls happened is not known" in asked
    assert "They were not taken over" in _turn_page(client, fork)
    call_page = client.get(url(fork.interrupts.get())).content.decode()
    assert "Find out before you approve it." in call_page


def test_what_was_taken_over_says_so(client: Client) -> None:
    turn = services.fork(_decided_twice().pk)
    copy = turn.interrupts.get(status="resolved")

    page = client.get(url(copy)).content.decode()

    assert "Taken over from the turn that was forked" in page
    assert "nothing runs for it here" in page
    assert "taken over from the turn that was forked, resolved" in _turn_page(
        client, turn
    )


def _decided_twice() -> AgentTurn:
    from hitl_approvals import Reject, run_turn
    from tests.admin.scenes import REFUND, start

    turn = start(("desk_refund", REFUND), ("desk_refund", {**REFUND, "order_id": "B"}))
    for row in turn.interrupts.all():
        services.decide(row.pk, Reject("no"), by=None, via="test")
    assert run_turn(turn.pk) == "completed"
    return turn


def test_a_get_forks_nothing(client: Client) -> None:
    row = refund()

    response = client.get(url(row.turn, "fork", "agentturn"))

    assert response.status_code == 302
    assert AgentTurn.objects.count() == 1


@pytest.mark.parametrize("step", ["", "fork"])
def test_a_point_of_another_turn_is_refused_with_a_sentence(
    client: Client, step: str
) -> None:
    row, other = refund(), refund()
    action = url(row.turn, "fork", "agentturn")

    response = client.post(action, {"at": str(other.pk), "step": step})

    page = client.get(response.url).content.decode()
    assert "no step and no interrupt of this turn" in page
    assert AgentTurn.objects.count() == 2


@pytest.mark.parametrize("step", ["", "fork"])
def test_who_may_not_administer_may_not_fork(
    person: Callable[..., User], login: Callable[[User], Client], step: str
) -> None:
    own = person("own", "view_agentturn", "view_pendinginterrupt")
    row = refund(by=own)
    client = login(own)

    response = client.post(url(row.turn, "fork", "agentturn"), {"step": step})

    assert "Fork" not in _turn_page(client, row.turn)
    assert response.status_code == 403
    assert AgentTurn.objects.count() == 1


def test_a_stranger_finds_no_turn_to_fork(
    stranger: User, login: Callable[[User], Client]
) -> None:
    row = refund()

    response = login(stranger).post(url(row.turn, "fork", "agentturn"), {})

    assert response.status_code in (403, 404)
    assert PendingInterrupt.objects.count() == 1
