"""Forking: what is taken over, what is asked again, and what never runs again."""

from __future__ import annotations

import uuid

import pytest
from django.db import transaction

from hitl_approvals import (
    DurableExecutor,
    Edit,
    Reject,
    Respond,
    resume,
    run_turn,
    services,
    start_turn,
)
from hitl_approvals.exceptions import (
    KeyReused,
    PayloadRejected,
    ReviewerNotAllowed,
    ThreadBusy,
    TransitionNotAllowed,
    TurnNotFound,
)
from hitl_approvals.models import AgentTurn, PendingInterrupt, TurnStep
from hitl_approvals.registry import registry
from tests.support import agents
from tests.support.agents import call
from tests.support.turns import (
    begin,
    begin_owed,
    decide,
    decide_and_resume,
    events,
    full_events,
    only,
    pass_deadlines,
    rows,
    settle,
    steps,
    waiting,
)
from tests.support.turns import resume as run_on
from tests.support.world import Crash, acts_then, acts_then_raises

pytestmark = pytest.mark.django_db
MAIL = call("mail", "m", to="a")
PAY = call("pay", "p", order="A", amount=1)
NOTE = call("note", "n", text="x")


def statuses(turn):
    return [row.status for row in rows(turn)]


def fork(turn, at=None, **options):
    return services.fork(turn.pk, at=None if at is None else at.pk, **options)


def told(turn):
    turn.refresh_from_db()
    return [message["status"] for message in turn.output]


def test_a_suspended_turn_is_forked_at_what_waits(world):
    turn = begin([NOTE, MAIL])

    forked = fork(turn)

    assert (forked.status, forked.undecided) == ("suspended", 1)
    assert (forked.parent_id, forked.forked_at) == (turn.pk, str(only(turn).pk))
    assert (forked.agent, forked.agent_version) == (turn.agent, turn.agent_version)
    assert forked.thread_id == str(forked.pk)
    row = only(forked)
    assert (row.status, row.revision, row.generation) == ("pending", 1, 1)
    assert row.context["forked_from"] == {
        "turn": str(turn.pk),
        "interrupt": str(only(turn).pk),
    }
    assert row.args_text == only(turn).args_text
    assert turn.forks.get() == forked


def test_the_fork_goes_its_own_way_at_once(world):
    turn = begin([NOTE, MAIL])
    forked = fork(turn)

    applied = resume(only(forked).pk, Reject("not in this branch"))

    assert (applied.status, applied.waiting) == ("completed", 0)
    assert told(forked) == ["ok", "rejected"]
    assert world.names() == ["note"]
    assert world.model_calls == ["reply 0", "reply 1"]
    turn.refresh_from_db()
    assert (turn.status, statuses(turn)) == ("suspended", ["pending"])

    decide_and_resume(turn)

    assert told(turn) == ["ok", "ok"]
    assert world.names() == ["note", "mail"]


def test_a_finished_turn_is_forked_at_its_last_question(world):
    turn = begin([MAIL], [PAY])
    decide_and_resume(turn)
    decide_and_resume(turn)
    assert (turn.status, world.names()) == ("completed", ["mail", "pay"])

    forked = fork(turn)

    mailed, paid = rows(forked)
    assert (mailed.tool_name, mailed.status) == ("mail", "resolved")
    assert (paid.tool_name, paid.status) == ("pay", "pending")
    decide_and_resume(forked, Edit({"order": "A", "amount": 2}, "half"))
    assert told(forked) == ["ok", "ok"]
    assert world.names() == ["mail", "pay", "pay"]
    assert world.model_calls == ["reply 0", "reply 1", "reply 2", "reply 2"]


def test_an_earlier_point_asks_everything_after_it_again(world):
    turn = begin([MAIL], [PAY])
    decide_and_resume(turn)
    decide_and_resume(turn)

    forked = fork(turn, rows(turn)[0])

    assert only(forked).tool_name == "mail"
    decide_and_resume(forked)
    assert [row.tool_name for row in waiting(forked)] == ["pay"]
    decide_and_resume(forked, Reject("no"))
    assert world.names() == ["mail", "pay", "mail"]


def test_answers_and_refusals_before_the_point_are_not_asked_again(world, make_agent):
    def asks(turn, given):
        said = [turn.interrupt("one?"), turn.interrupt("two?", key="second")]
        said.append(turn.call_tools([MAIL, PAY]))
        said.append(turn.interrupt("three?"))
        return said

    turn = begin(agent=make_agent(asks))
    decide_and_resume(turn, Respond(False))
    decide_and_resume(turn, Respond(None))
    mail, pay = waiting(turn)
    decide(mail, Reject("no"))
    decide(pay, Edit({"order": "A", "amount": 7}, "cheaper"))
    run_on(turn)
    decide_and_resume(turn, Respond(0))
    assert turn.status == "completed"
    effects = list(world.effects)

    forked = fork(turn)

    assert [row.payload for row in waiting(forked)] == ["three?"]
    decide_and_resume(forked, Respond("other"))
    assert forked.status == "completed"
    assert forked.output[:3] == turn.output[:3]
    assert forked.output[3] == "other"
    assert world.effects == effects


@pytest.mark.parametrize("which", [0, 1])
def test_a_batch_is_forked_in_the_order_of_the_model(world, which):
    turn = begin([MAIL, PAY])
    decide_and_resume(turn)
    assert world.names() == ["mail", "pay"]

    forked = fork(turn, rows(turn)[which])

    assert statuses(forked) == [["pending", "pending"], ["resolved", "pending"]][which]
    decide_and_resume(forked)
    assert told(forked) == ["ok", "ok"]
    assert world.names() == ["mail", "pay", *["mail", "pay"][which:]]


def test_siblings_that_were_not_applied_wait_together(world):
    turn = begin([MAIL, PAY])
    decide(rows(turn)[0])

    forked = fork(turn, rows(turn)[1])

    assert statuses(forked) == ["pending", "pending"]
    assert forked.undecided == 2


def test_a_fork_after_a_step_runs_what_comes_after_it(world):
    turn = begin([NOTE, MAIL])
    decide_and_resume(turn)
    (reply, _last) = steps(turn, kind="model")

    forked = fork(turn, reply)

    assert (forked.status, rows(forked)) == ("ready", [])
    run_turn(forked.pk)
    assert [row.tool_name for row in waiting(forked)] == ["mail"]
    assert world.names() == ["note", "mail", "note"]
    assert world.model_calls == ["reply 0", "reply 1"]


def test_a_fork_after_a_call_keeps_it_and_asks_its_later_siblings(world):
    turn = begin([MAIL, PAY])
    decide_and_resume(turn)

    forked = fork(turn, steps(turn)[0])

    assert (forked.status, statuses(forked)) == ("ready", ["resolved"])
    run_turn(forked.pk)
    assert [(row.tool_name, row.status) for row in rows(forked)] == [
        ("mail", "resolved"),
        ("pay", "pending"),
    ]
    assert world.names() == ["mail", "pay"]


def test_a_turn_that_never_asked_is_forked_at_its_end(world):
    turn = begin([NOTE])

    forked = fork(turn)

    assert (forked.status, forked.forked_at) == ("ready", "end")
    run_turn(forked.pk)
    assert told(forked) == told(turn)
    assert world.names() == ["note"]


def test_copies_have_their_own_keys_and_no_key_for_the_other_side(world):
    turn = begin([call("transfer", "t", to="a")], [MAIL])
    decide_and_resume(turn)
    forked = fork(turn)

    (copy,) = steps(forked)
    assert (copy.status, copy.idempotency_key) == ("succeeded", None)
    assert (copy.interrupt.turn_id, copy.interrupt.status) == (forked.pk, "resolved")
    again = fork(forked, rows(forked)[0])
    decide_and_resume(again)
    assert len(set(world.keys)) == len(world.keys) == 2


def test_a_fork_of_a_fork_knows_its_past(world):
    turn = begin([MAIL], [PAY], [NOTE])
    decide_and_resume(turn)
    first = fork(turn)
    decide_and_resume(first)

    second = fork(first, rows(first)[1])

    assert statuses(second) == ["resolved", "pending"]
    again = fork(second, rows(second)[0])
    assert "taken_over" not in only(again).policy
    decide_and_resume(second)
    assert world.names() == ["mail", "pay", "note", "pay", "note"]


def test_a_call_in_doubt_is_left_out_and_asked_again(world):
    world.plan("mail", acts_then_raises(TimeoutError()))
    turn = begin([NOTE, MAIL, PAY])
    decide_and_resume(turn)
    assert statuses(turn) == ["in_doubt", "resolved"]

    forked = fork(turn, rows(turn)[1])

    assert statuses(forked) == ["pending", "pending"]
    row = rows(forked)[0]
    assert row.context["forked_from"]["fate_unknown"] is True
    (first,) = full_events(forked)
    assert (first.type, first.detail["left_out_count"]) == ("turn_begun_as_fork", 1)
    assert [(one["name"], one["status"]) for one in first.detail["left_out"]] == [
        ("mail", "unknown")
    ]
    assert world.names() == ["note", "mail", "pay"]


def test_a_free_call_of_unknown_fate_is_never_silently_repeated(world):
    world.plan("note", acts_then_raises(Crash()))
    with pytest.raises(Crash):
        begin([NOTE])
    turn = AgentTurn.objects.get()
    assert turn.status == "running"

    forked = fork(turn)

    row = only(forked)
    assert (forked.status, row.status, row.tool_name) == (
        "suspended",
        "pending",
        "note",
    )
    assert row.policy["gated"] is True
    assert world.names() == ["note"]
    decide_and_resume(forked, Reject("it is there"))
    assert told(forked) == ["rejected"]
    assert world.names() == ["note"]


def test_what_was_given_up_is_told_again_and_does_not_run(world):
    world.plan("mail", acts_then_raises(TimeoutError()))
    turn = begin([MAIL], [PAY])
    decide_and_resume(turn)
    settle(only(turn), "give_up")
    run_on(turn)

    forked = fork(turn)

    assert statuses(forked) == ["cancelled", "pending"]
    decide_and_resume(forked)
    assert told(forked) == ["unknown", "ok"]
    assert world.names() == ["mail", "pay"]


def test_what_happened_by_a_persons_word_is_replayed(world):
    world.plan("note", acts_then_raises(TimeoutError()))
    turn = begin([NOTE], [PAY])
    settle(only(turn), "happened", result={"effect": 9})
    run_on(turn)

    forked = fork(turn)
    decide_and_resume(forked)

    assert told(forked) == ["ok", "ok"]
    assert world.names() == ["note", "pay"]


def test_a_second_run_that_a_person_allowed_is_replayed(world):
    world.plan("mail", acts_then_raises(TimeoutError()))
    turn = begin([MAIL], [PAY])
    decide_and_resume(turn)
    pass_deadlines(turn)
    settle(only(turn), "run_again")
    run_on(turn)

    forked = fork(turn)

    assert [step.generation for step in steps(forked)] == [2]
    decide_and_resume(forked)
    assert world.names() == ["mail", "mail", "pay"]


def test_a_cancelled_turn_is_forked_with_what_it_asked(world):
    turn = begin([MAIL, PAY])
    services.cancel(turn.pk, by=None, via="test")

    forked = fork(turn)

    assert statuses(forked) == ["pending", "pending"]


def test_a_request_that_took_the_place_of_another_is_found_again(world, make_agent):
    def changes(turn, given):
        said = turn.call_tools([world.found])
        return [*said, turn.interrupt("on?")]

    world.found = MAIL
    turn = begin(agent=make_agent(changes))
    decide(only(turn))
    world.found = call("mail", "m", to="b")
    run_on(turn)
    assert turn.status == "needs_attention"
    old = only(turn)
    services.re_review(old.pk, by=None, via="test")
    services.retry(turn.pk, by=None, via="test")
    run_on(turn)
    decide_and_resume(turn)

    with pytest.raises(TransitionNotAllowed, match="took the place"):
        fork(turn, old)
    forked = fork(turn)

    assert sorted(statuses(forked)) == ["cancelled", "pending", "resolved"]
    decide_and_resume(forked, Respond("yes"))
    assert forked.status == "completed"
    assert world.names() == ["mail"]


def test_nothing_from_before_a_restart_is_taken_over(world, make_agent):
    def stops(turn, given):
        turn.call_tools([NOTE])
        said = turn.interrupt("on?")
        if said == "stop":
            raise ValueError(said)
        return said

    turn = begin(agent=make_agent(stops))
    AgentTurn.objects.filter(pk=turn.pk).update(max_attempts=1)
    before = only(turn)
    decide_and_resume(turn, Respond("stop"))
    services.restart(turn.pk, by=None, via="test")
    run_on(turn)

    with pytest.raises(TransitionNotAllowed, match="last restart"):
        fork(turn, before)
    forked = fork(turn)

    assert len(steps(forked)) == 1
    decide_and_resume(forked, Respond("go"))
    assert forked.output == "go"
    assert world.names() == ["note", "note"]


def test_the_trails_of_both_turns_tell_of_the_fork(world, make_user):
    boss = make_user("boss", "administer_pendinginterrupt")
    turn = begin([MAIL], [PAY])
    decide_and_resume(turn)

    forked = services.fork(turn.pk, by=boss, via="admin")

    last = full_events(turn)[-1]
    assert (last.type, last.actor, last.via) == ("turn_forked", "boss", "admin")
    assert last.detail == {"fork": str(forked.pk), "at": forked.forked_at}
    assert events(forked) == ["turn_begun_as_fork"]
    mailed, paid = rows(forked)
    assert events(mailed) == ["copied"]
    assert events(paid) == ["raised"]
    assert (mailed.policy["taken_over"], "taken_over" in paid.policy) == (True, False)
    assert full_events(paid)[0].detail["forked_from"] == str(rows(turn)[1].pk)
    assert full_events(mailed)[0].actor == "boss"


def test_a_turn_may_be_forked_while_it_runs(world):
    turn = begin([MAIL], [PAY])
    made = []
    world.plan("mail", acts_then(lambda: made.append(fork(turn))))

    decide_and_resume(turn)
    decide_and_resume(turn)

    assert turn.status == "completed"
    assert events(turn) == ["turn_forked", "turn_completed"]
    assert [(one["name"], one["status"]) for one in _left_out(made[0])] == [
        ("mail", "started")
    ]
    assert statuses(made[0]) == ["pending"]


def _left_out(turn):
    return full_events(turn)[0].detail["left_out"]


def test_a_fork_joins_the_callers_transaction(world):
    turn = begin([MAIL], [PAY])
    decide_and_resume(turn)
    before = (TurnStep.objects.count(), PendingInterrupt.objects.count())

    with transaction.atomic():
        assert fork(turn).undecided == 1
        transaction.set_rollback(True)

    assert (TurnStep.objects.count(), PendingInterrupt.objects.count()) == before
    assert AgentTurn.objects.count() == 1
    assert "turn_forked" not in events(turn)


def test_the_same_key_finds_the_fork_that_is_there(world):
    turn = begin([MAIL])
    first = fork(turn, key="k")

    assert fork(turn, key="k") == first
    with pytest.raises(KeyReused):
        fork(turn, only(turn), key="k")
    assert AgentTurn.objects.filter(parent=turn).count() == 1


def test_the_fork_may_enter_a_thread(world):
    turn = begin([MAIL], thread_id="chat")

    forked = fork(turn, thread_id="chat")

    assert forked.thread_id == only(forked).thread_id == "chat"
    assert forked.active_thread is None
    decide_and_resume(forked)
    assert (forked.status, forked.blocked) == ("ready", True)
    decide_and_resume(turn)
    run_on(forked)
    assert forked.status == "completed"
    assert world.names() == ["mail", "mail"]


def test_only_who_administers_may_fork(world, make_user, reviewer):
    own = make_user("own")
    turn = begin([MAIL], requested_by=own)

    with pytest.raises(TurnNotFound):
        services.fork(turn.pk, by=reviewer)
    with pytest.raises(ReviewerNotAllowed):
        services.fork(turn.pk, by=own)
    boss = make_user("boss", "administer_pendinginterrupt")
    forked = services.fork(turn.pk, by=boss)
    assert (forked.requested_by_id, forked.requested_by_label) == (own.pk, "own")


@pytest.mark.parametrize("unknown", [uuid.uuid4(), "no uuid"])
def test_an_unknown_turn_or_point_is_refused(world, unknown):
    turn = begin([MAIL])
    other = begin([MAIL])

    with pytest.raises(TurnNotFound):
        services.fork(unknown)
    for at in (unknown, only(other).pk):
        with pytest.raises(PayloadRejected) as refusal:
            services.fork(turn.pk, at=at)
        assert refusal.value.errors[0]["loc"] == "at"
    assert turn.forks.count() == 0


def test_a_step_without_a_result_is_no_point(world):
    world.plan("mail", acts_then_raises(TimeoutError()))
    turn = begin([MAIL])
    decide_and_resume(turn)

    with pytest.raises(TransitionNotAllowed, match="no result"):
        fork(turn, steps(turn)[0])


def test_an_agent_that_keeps_its_own_state_cannot_be_forked(world, make_agent):
    turn = begin_owed([MAIL])
    name = make_agent(lambda turn, given: None, kind="snapshot")
    AgentTurn.objects.filter(pk=turn.pk).update(agent=name)

    with pytest.raises(TransitionNotAllowed, match="snapshot"):
        fork(turn)


def test_a_framework_that_only_workers_have_is_known_by_what_it_keeps(world):
    turn = begin_owed([MAIL])
    kept = {"framework": "langgraph", "data": {}}
    AgentTurn.objects.filter(pk=turn.pk).update(agent="not here", state=kept)

    with pytest.raises(TransitionNotAllowed, match=r"'langgraph'.*cannot be forked"):
        fork(turn)


def test_a_copy_that_was_changed_is_found_by_verification(world):
    turn = start_turn("scripted", [[MAIL], [PAY]], run=True)
    decide_and_resume(turn)
    forked = fork(turn)
    copied = PendingInterrupt.objects.filter(turn=forked, status="resolved")
    from hitl_approvals.auditing import Verification

    digest = copied.get().decision_digest
    copied.update(decision_digest="c1:" + "0" * 64)
    found = [one.problem for one in Verification(turn_id=forked.pk).findings()]
    copied.update(decision_digest=digest)

    assert found == ["arguments"]


def test_a_fork_into_a_thread_follows_the_sites_policy(world, settings):
    turn = begin([MAIL], thread_id="chat")
    settings.HITL_APPROVALS = {**settings.HITL_APPROVALS, "THREAD_POLICY": "refuse"}
    with pytest.raises(ThreadBusy):
        fork(turn, thread_id="chat")
    assert (AgentTurn.objects.count(), events(turn)) == (1, [])

    settings.HITL_APPROVALS = {**settings.HITL_APPROVALS, "THREAD_POLICY": "cancel"}
    forked = fork(turn, thread_id="chat")

    turn.refresh_from_db()
    assert turn.status == "cancelled"
    assert events(turn) == ["turn_cancelled", "turn_forked"]
    assert (forked.status, forked.active_thread) == ("suspended", turn.thread_key)
    decide_and_resume(forked)
    assert (forked.status, world.names()) == ("completed", ["mail"])


def test_a_graph_is_forked_inside_and_between_its_nodes(world):
    def pay(given, ctx):
        message = ctx.call_tool("mail", {"to": given}, id="m")
        return [message["status"], ctx.interrupt("sure?")]

    def end(given, ctx):
        ctx.once("end", lambda: world.affect("end", {}))
        return [*given, ctx.interrupt("last?")]

    graph = DurableExecutor(
        nodes=[("pay", pay), ("end", end)], name="forked", tools=agents.TOOLS
    )
    try:
        turn = start_turn("forked", "a", run=True)
        decide_and_resume(turn)
        decide_and_resume(turn, Respond("yes"))
        decide_and_resume(turn, Respond("done"))
        assert turn.output == ["ok", "yes", "done"]
        _mailed, sure, last = sorted(rows(turn), key=lambda row: row.requested_at)
        (node, _end) = steps(turn, kind="node")

        inside, between, at_end = fork(turn, sure), fork(turn, node), fork(turn, last)

        assert [row.payload for row in waiting(inside)] == ["sure?"]
        decide_and_resume(inside, Respond("no"))
        decide_and_resume(inside, Respond("other"))
        assert inside.output == ["ok", "no", "other"]
        assert world.names() == ["mail", "end", "end"]
        run_on(between)
        decide_and_resume(between, Respond("between"))
        assert between.output == ["ok", "yes", "between"]
        decide_and_resume(at_end, Respond("late"))
        assert at_end.output == ["ok", "yes", "late"]
        assert world.names() == ["mail", "end", "end", "end"]
    finally:
        registry.agents.pop(graph.name)
