"""Nothing of ours assumes that the database is called `default`."""

from __future__ import annotations

from io import StringIO
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command
from django.db import connections
from django.test import Client
from rest_framework.test import APIClient

from hitl_approvals import Reject, checks, health, services, start_turn
from hitl_approvals.auditing import Verification, export
from hitl_approvals.models import AgentTurn, ReviewQueue, SweepMark
from hitl_approvals.testing import run_owed
from tests.admin.scenes import send
from tests.support.agents import call
from tests.support.turns import (
    begin,
    decide,
    decide_and_resume,
    only,
    pass_deadlines,
    pass_execute_by,
    pass_expires_at,
    resume,
)
from tests.support.world import Crash, World, acts_then_raises

pytestmark = pytest.mark.django_db(transaction=True, databases=["approvals"])


@pytest.fixture
def person() -> User:
    made = User.objects.create_user("rita", is_staff=True)
    made.user_permissions.set(
        Permission.objects.filter(content_type__app_label="hitl_approvals")
    )
    return made


def test_there_is_no_default_to_touch() -> None:
    with pytest.raises(ImproperlyConfigured):
        connections["default"].ensure_connection()


def test_migrations_are_applied_and_the_default_queue_was_made() -> None:
    out = StringIO()

    call_command("migrate", "--check", database="approvals", stdout=out)
    # A test's flush took the queue away; what follows a migration makes it again.
    call_command("migrate", database="approvals", verbosity=0)

    assert ReviewQueue.objects.filter(pk="default").exists()


def test_a_turn_runs_from_its_start_to_its_end(world: World) -> None:
    turn = begin(
        [call("mail", to="a"), call("book", name="x"), call("note", text="free")]
    )

    decide_and_resume(turn)

    assert turn.status == "completed"
    assert sorted(world.names()) == ["book", "mail", "note"]
    assert {turn._state.db, only_database(turn)} == {"approvals"}


def only_database(turn: AgentTurn) -> str:
    return turn.interrupts.all().db


def test_a_person_decides_over_rest(person: User, world: World) -> None:
    row = only(begin([call("mail", to="a")]))
    client = APIClient()
    client.force_authenticate(person)

    listed = client.get("/api/interrupts/")
    response = client.post(f"/api/interrupts/{row.pk}/approve/", {}, format="json")

    assert [one["id"] for one in listed.json()["results"]] == [str(row.pk)]
    assert response.status_code == 200, response.content
    assert run_owed() == ["completed"]
    assert world.names() == ["mail"]


def test_a_person_decides_in_the_admin(person: User, world: World) -> None:
    row = only(begin([call("mail", to="a")]))
    client: Any = Client()
    client.force_login(person)

    listed = client.get("/admin/hitl_approvals/pendinginterrupt/")
    response = send(client, row, "approve")

    assert listed.status_code == 200
    assert response.status_code == 302
    assert run_owed() == ["completed"]
    assert world.names() == ["mail"]


def test_the_sweeper_does_all_its_work(world: World) -> None:
    expired = begin([call("ship")])
    pass_expires_at(only(expired))
    lapsed = begin([call("ship")])
    decide(only(lapsed))
    pass_execute_by(only(lapsed))
    world.plan("mail", acts_then_raises(Crash()))
    dead = begin([call("mail", to="a")])
    decide(only(dead))
    with pytest.raises(Crash):
        resume(dead)
    AgentTurn.objects.filter(pk=dead.pk).update(lease_until=dead.created_at)

    report = services.sweep()

    assert (report.expired, report.lapsed, report.revoked) == (1, 1, 1)
    assert SweepMark.objects.count() == 1
    pass_deadlines(dead)
    resume(dead)
    assert only(dead).status == "in_doubt"
    services.settle(only(dead).pk, "run_again", by=None, via="test")


def test_cancel_retry_and_refusal_work(world: World) -> None:
    refused = begin([call("mail", to="a")])
    decide_and_resume(refused, Reject("no"))
    cancelled = begin([call("mail", to="b")])
    services.cancel(cancelled.pk, by=None, via="test")
    waiting = start_turn("scripted", [], thread_id="same")

    assert refused.status == "completed"
    assert run_owed() == ["completed"]
    assert AgentTurn.objects.get(pk=waiting.pk).status == "completed"
    assert world.names() == []


def test_audit_and_doctor_work(world: World) -> None:
    decide_and_resume(begin([call("mail", to="a")]))
    services.sweep()
    check = Verification()

    assert list(check.findings()) == []
    assert check.checked.interrupts == 1
    assert len(list(export())) == 4
    lines = health.examine()
    assert (
        health.worst([line for line in lines if not line.name.startswith("W00")])
        is health.Level.OK
    ), lines


def test_system_checks_pass() -> None:
    found = [str(one.id) for one in checks.run(["approvals"])]

    assert [one for one in found if ".E" in one] == []
    call_command("check", databases=["approvals"], stdout=StringIO())


def test_flush_works() -> None:
    begin([call("mail", to="a")])

    call_command("flush", database="approvals", interactive=False, verbosity=0)

    assert AgentTurn.objects.count() == 0
