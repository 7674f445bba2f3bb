"""After a failover nothing runs on before a person looked, and nothing is guessed."""

from __future__ import annotations

from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from hitl_approvals import Approve, Edit, Reject, run_turn, services
from hitl_approvals.exceptions import TransitionNotAllowed
from hitl_approvals.models import AgentTurn, db_now_plus
from hitl_approvals.services import failover
from hitl_approvals.services.failover import Unknown
from hitl_approvals.testing import run_owed
from tests.support import remote
from tests.support.agents import call
from tests.support.turns import (
    PAST,
    begin,
    begin_owed,
    decide,
    decide_and_resume,
    events,
    only,
    pass_deadlines,
    resume,
    step_statuses,
    steps,
)
from tests.support.world import Crash, World, acts_then, acts_then_raises

pytestmark = pytest.mark.django_db

SINCE = timezone.now() - timedelta(hours=1)


def hold() -> list[Any]:
    return list(failover.hold_all(since=SINCE))


def unknown(since: Any = SINCE) -> list[Unknown]:
    return list(failover.unknowns(since=since))


def approved(name: str = "mail", /, **args: Any) -> AgentTurn:
    """A turn that is owed, with one approved call that has no start on record."""
    turn = begin([call(name, **(args or {"to": "a"}))])
    decide(only(turn))
    turn.refresh_from_db()
    assert turn.status == "ready"
    return turn


def died_in_a_call(world: World, name: str = "mail", **args: Any) -> AgentTurn:
    """A running turn whose worker died in an approved call that had its effect."""
    turn = begin([call(name, **(args or {"to": "a"}))])
    decide(only(turn))
    world.plan(name, acts_then_raises(Crash()))
    with pytest.raises(Crash):
        resume(turn)
    turn.refresh_from_db()
    assert turn.status == "running"
    return turn


def test_a_running_turn_is_stopped_whatever_its_lease(world: World) -> None:
    turn = died_in_a_call(world)

    assert hold() == [turn.pk]

    turn.refresh_from_db()
    assert (turn.status, turn.lease_token) == ("needs_attention", None)
    assert events(turn) == ["turn_needs_attention"]
    assert "failed over" in turn.last_error


def test_what_began_in_a_stopped_turn_is_put_in_doubt(world: World) -> None:
    turn = died_in_a_call(world)
    hold()
    pass_deadlines(turn)

    assert failover.doubt_all() == 1

    assert only(turn).status == "in_doubt"
    assert step_statuses(turn) == ["unknown"]
    assert unknown() == []


def test_a_doubt_after_a_failover_is_settled_like_any_other(world: World) -> None:
    turn = died_in_a_call(world)
    hold()
    pass_deadlines(turn)
    failover.doubt_all()

    services.settle(
        only(turn).pk, "happened", by=None, via="test", result={"effect": 1}
    )
    services.retry(turn.pk, by=None, via="test")
    run_turn(turn.pk)

    turn.refresh_from_db()
    assert turn.status == "completed"
    assert world.names() == ["mail"]


def test_a_call_that_may_still_be_under_way_is_named(world: World) -> None:
    turn = died_in_a_call(world)
    hold()

    assert failover.doubt_all() == 0

    (one,) = unknown()
    assert (one.what, one.tool, one.turn_id) == ("under_way", "mail", turn.pk)
    assert "in doubt after" in one.text


def test_a_worker_that_still_runs_records_its_own_call_and_starts_no_other(
    world: World,
) -> None:
    turn = begin([call("mail", to="a"), call("mail", "2", to="b")])
    for row in turn.interrupts.all():
        decide(row)
    world.plan("mail", acts_then(hold))

    assert resume(turn) == "lost"

    turn.refresh_from_db()
    assert turn.status == "needs_attention"
    assert world.names() == ["mail"]
    assert step_statuses(turn) == ["succeeded"]


def test_an_approved_call_without_a_start_is_stopped_and_named(world: World) -> None:
    turn = approved()

    hold()

    assert run_owed() == []
    assert world.names() == []
    (one,) = unknown()
    assert (one.what, one.tool, one.mode) == ("approved", "mail", "unsafe")
    assert (one.subject_id, one.turn_id) == (only(turn).pk, turn.pk)
    assert "no start on record" in one.text


def test_a_stopped_turn_goes_on_once_somebody_retries_it(world: World) -> None:
    turn = approved()
    hold()

    services.retry(turn.pk, by=None, via="test")
    run_turn(turn.pk)

    turn.refresh_from_db()
    assert turn.status == "completed"
    assert world.names() == ["mail"]


def test_a_turn_that_never_ran_is_stopped_too() -> None:
    # On the old primary it may have run from its beginning to its end.
    turn = begin_owed([call("note", text="free")])

    assert hold() == [turn.pk]


def test_a_turn_that_waits_for_its_thread_is_stopped_too() -> None:
    begin([call("mail", to="a")], thread_id="same")
    second = begin([call("mail", to="b")], thread_id="same")
    assert second.blocked

    assert hold() == [second.pk]

    second.refresh_from_db()
    assert second.blocked is False


def test_a_turn_that_was_not_due_yet_goes_on() -> None:
    turn = approved()
    later = db_now_plus(timedelta(minutes=10))
    AgentTurn.objects.filter(pk=turn.pk).update(next_run_at=later)

    assert hold() == []
    assert unknown() == []


@pytest.mark.parametrize("status", ["suspended", "completed", "needs_attention"])
def test_what_does_not_go_on_by_itself_is_left_as_it_is(status: str) -> None:
    turn = begin([call("mail", to="a")])
    if status == "completed":
        decide_and_resume(turn)
    if status == "needs_attention":
        decide(only(turn))
        hold()
    turn.refresh_from_db()
    before = (turn.status, turn.fence, turn.events_count)
    assert before[0] == status

    assert hold() == []

    turn.refresh_from_db()
    assert (turn.status, turn.fence, turn.events_count) == before


def test_a_call_that_waits_is_named_because_its_decision_may_be_lost() -> None:
    turn = begin([call("mail", to="a")])

    (one,) = unknown()

    assert (one.what, one.subject_id) == ("waiting", only(turn).pk)
    assert "the call may have run" in one.text


@pytest.mark.parametrize(
    ("name", "args"),
    [("book", {"name": "x"}), ("read_secret", {"name": "x"})],
)
def test_an_effect_in_this_database_or_none_was_lost_with_its_record(
    name: str, args: dict[str, Any]
) -> None:
    approved(name, **args)

    assert unknown() == []


@pytest.mark.parametrize(
    ("name", "args", "mode"),
    [
        ("transfer", {"to": "x"}, "idempotent"),
        ("order", {"item": "x"}, "lookup"),
        ("pay", {"order": "1", "amount": 2}, "unsafe"),
    ],
)
def test_an_effect_elsewhere_is_named_with_its_mode(
    name: str, args: dict[str, Any], mode: str
) -> None:
    approved(name, **args)

    (one,) = unknown()

    assert (one.what, one.mode) == ("approved", mode)


def test_a_refused_call_is_not_named() -> None:
    turn = begin([call("mail", to="a")])

    decide(only(turn), Reject("no"))

    assert unknown() == []


def test_a_call_on_record_since_then_is_named_and_not_doubted(world: World) -> None:
    turn = begin([call("mail", to="a")], [call("mail", to="b")])
    decide_and_resume(turn)

    named = {(one.what, one.tool) for one in unknown()}

    assert named == {("recorded", "mail"), ("waiting", "mail")}
    assert step_statuses(turn) == ["succeeded"]
    assert [one.what for one in unknown(timezone.now() + timedelta(minutes=1))] == [
        "waiting"
    ]


def test_calls_of_finished_turns_are_not_named() -> None:
    decide_and_resume(begin([call("mail", to="a")]))

    assert unknown() == []


def test_pages_follow_one_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failover, "PAGE", 2)
    turns = [approved() for _ in range(5)]

    assert hold() == sorted(turn.pk for turn in turns)
    assert len(unknown()) == 5


def test_a_turn_that_moves_while_it_is_stopped_is_read_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    turn = approved()
    real = failover.run_atomic
    meanwhile = [1]

    def late(work: Any) -> Any:
        if meanwhile:
            meanwhile.pop()
            AgentTurn.objects.filter(pk=turn.pk).update(fence=99)
        return real(work)

    monkeypatch.setattr(failover, "run_atomic", late)

    assert hold() == [turn.pk]


def doctor(*arguments: str, **options: Any) -> tuple[int, str]:
    out = StringIO()
    try:
        call_command("hitl_doctor", "--after-failover", *arguments, stdout=out)
    except SystemExit as ended:
        return int(ended.code or 0), out.getvalue()
    return 0, out.getvalue()


def since() -> str:
    return SINCE.isoformat()


def test_command_stops_doubts_and_lists(world: World) -> None:
    died = died_in_a_call(world)
    pass_deadlines(died)
    turn = approved()

    code, printed = doctor("--since", since())

    first, second, third, last = printed.splitlines()
    assert code == 1
    assert first.startswith("Stopped 2 turns")
    assert second.startswith("Put 1 calls in doubt")
    assert third.startswith(f"APPROVED   mail (unsafe) {only(turn).pk}")
    assert last.startswith("1 calls for a person to look into")


def test_command_that_finds_nothing_ends_with_0() -> None:
    code, printed = doctor("--since", since())

    assert code == 0
    assert printed.startswith("Stopped 0 turns")


def test_dry_run_changes_nothing(world: World) -> None:
    died = died_in_a_call(world)
    turn = approved()

    code, printed = doctor("--since", since(), "--dry-run")

    assert code == 1
    assert printed.startswith("Would stop 2 turns.")
    died.refresh_from_db()
    turn.refresh_from_db()
    assert (died.status, turn.status) == ("running", "ready")
    assert steps(died)[0].status == "started"


def test_json_is_one_object_a_line() -> None:
    import json

    turn = approved()

    _code, printed = doctor("--since", since(), "--json")

    stopped, count, doubted, named, last = map(json.loads, printed.splitlines())
    assert stopped == {"what": "stopped", "turn_id": str(turn.pk)}
    assert count == {"what": "stopped", "count": 1}
    assert doubted == {"what": "put_in_doubt", "count": 0}
    assert (named["what"], named["subject_id"]) == ("approved", str(only(turn).pk))
    assert last == {"what": "to_find_out", "count": 1}


def test_command_needs_the_moment_and_not_one_to_come() -> None:
    with pytest.raises(CommandError, match="needs --since"):
        doctor()
    with pytest.raises(CommandError, match="in the future"):
        doctor("--since", "2999-01-01T00:00:00Z")
    with pytest.raises(CommandError, match="belong to --after-failover"):
        call_command("hitl_doctor", "--since", since())


def test_approving_after_a_failover_runs_the_call(world: World) -> None:
    turn = begin([call("mail", to="a")])
    hold()

    services.decide(only(turn).pk, Approve(), by=None, via="test")
    AgentTurn.objects.filter(pk=turn.pk).update(next_run_at=PAST)
    run_turn(turn.pk)

    assert world.names() == ["mail"]


def test_an_approval_that_a_remote_agent_may_have_fetched_is_put_in_doubt() -> None:
    row, edited = remote.approved(), remote.decided(remote.ask(), Edit({"x": 1}))
    left = [
        remote.ask_question(),
        remote.decided(remote.ask(), Reject("no")),
        remote.fetched(),
    ]
    asked = remote.ask()

    listed = {(one.what, one.subject_id) for one in unknown()}
    assert listed == {
        ("approved", row.pk),
        ("approved", edited.pk),
        ("waiting", asked.pk),
    }
    assert failover.doubt_all() == 2

    assert remote.fresh(row).status == remote.fresh(edited).status == "in_doubt"
    assert remote.kinds(row) == ["raised", "approved", "in_doubt"]
    assert [remote.fresh(one).status for one in left] == [
        "pending",
        "decided",
        "decided",
    ]
    with pytest.raises(TransitionNotAllowed, match="in doubt"):
        remote.fetch(row)
    services.settle(row.pk, "happened", by=None, via="test", result=1)
    services.settle(edited.pk, "give_up", by=None, via="test")


def test_remote_calls_are_told_without_a_turn() -> None:
    row = remote.ask()
    out = StringIO()

    with pytest.raises(SystemExit):
        call_command(
            "hitl_doctor",
            "--after-failover",
            "--since",
            SINCE.isoformat(),
            "--dry-run",
            stdout=out,
        )

    assert f"WAITING    refund (remote) {row.pk}: waits" in out.getvalue()
