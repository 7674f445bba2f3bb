"""A graph on the engine's rows: what is recorded, replayed, asked and shown."""

from __future__ import annotations

import pytest
from django.db import transaction

from hitl_approvals import (
    Approve,
    DjangoCheckpointStore,
    DurableExecutor,
    Edit,
    GraphContext,
    Reject,
    Respond,
    TurnFailed,
    run_turn,
    services,
    start_turn,
)
from hitl_approvals.exceptions import (
    AlreadyDecided,
    DecisionNotAllowed,
    HitlConfigurationError,
    InterruptNotFound,
    ReviewerNotAllowed,
    ThreadBusy,
    TransitionNotAllowed,
    UnsafeContext,
)
from hitl_approvals.models import AgentTurn
from hitl_approvals.testing import run_owed
from hitl_approvals.testing.failpoints import armed
from tests.support.agents import call
from tests.support.turns import (
    PAST,
    begin,
    events,
    make_due,
    only,
    recover,
    resume,
    settle,
    steps,
)
from tests.support.world import Crash, acts_then_raises, returns

pytestmark = pytest.mark.django_db


def ask(given, ctx):
    return {"input": given, "approved": ctx.interrupt("may I?")}


def done(given):
    return {"done": given}


def counting(world, *names):
    """Return nodes that each leave a trace in the world."""

    def node(name):
        return lambda given: world.act(name, given=given) and [given, name]

    return [(name, node(name)) for name in names]


def turn_of(result):
    return AgentTurn.objects.get(thread_id=result.thread_id)


def die():
    raise Crash


# what a node leaves behind


def test_each_finished_node_is_a_recorded_step(graph):
    result = graph(("one", done), ("two", done)).run(1)

    nodes = steps(turn_of(result), kind="node")
    assert [(one.name, one.status, one.result) for one in nodes] == [
        ("one", "succeeded", {"done": 1}),
        ("two", "succeeded", {"done": {"done": 1}}),
    ]


def test_a_question_waits_in_the_review_queue_and_names_its_node(graph):
    result = graph(("before", done), ("ask", ask)).run(1)

    row = only(turn_of(result))
    assert (row.kind, row.status, row.queue_id) == ("question", "pending", "default")
    assert row.context["metadata"] == {"node": "ask"}
    assert row.policy["why"] == "node `ask` of the agent asks a question"
    assert str(row.pk) == result.interrupt_id


def test_an_answer_is_applied_once_and_on_record(graph):
    executor = graph(("ask", ask), ("done", done))
    paused = executor.run(1)

    executor.resume(paused.thread_id, "yes")

    row = only(turn_of(paused))
    assert (row.status, row.outcome_status) == ("resolved", "answered")
    assert events(row) == ["raised", "responded", "resolved"]


@pytest.mark.parametrize(
    "point", ["record.before_commit", "record.after_commit", "end.before_commit"]
)
def test_a_crash_between_two_nodes_repeats_no_finished_node(graph, world, point):
    executor = graph(*counting(world, "one", "two"))
    turn = start_turn("g", "x")

    with armed(point, die), pytest.raises(Crash):
        run_turn(turn.pk)
    recorded = [one.name for one in steps(turn, kind="node")]
    before = world.names()
    recover(turn)

    assert turn.status == "completed"
    assert turn.output == [["x", "one"], "two"]
    # Only what was not on record yet runs again.
    assert world.names()[len(before) :] == [
        name for name in ("one", "two") if name not in recorded
    ]
    assert executor.result(turn.thread_id).output == turn.output


def test_a_finished_node_does_not_run_again_on_resume(graph, world):
    executor = graph(
        *counting(world, "before"), ("ask", ask), *counting(world, "after")
    )
    paused = executor.run("x")

    executor.resume(paused.thread_id, 0)

    assert world.names() == ["before", "after"]


def test_a_node_begins_at_its_top_after_its_question(graph, world):
    def chatty(given, ctx):
        world.act("top")
        world.act("step", value=ctx.step("think", lambda: world.act("model")))
        return ctx.interrupt("may I?")

    executor = graph(("ask", chatty))
    executor.resume(executor.run(1).thread_id, 1)

    assert world.names() == ["top", "model", "step", "top", "step"]


def test_an_effect_of_a_node_happens_once_over_pauses_and_crashes(graph, world):
    def paying(given, ctx):
        paid = ctx.once("pay", lambda: world.act("paid"))
        return [paid, ctx.interrupt("and now?")]

    executor = graph(("pay", paying))
    paused = executor.run(1)

    result = executor.resume(paused.thread_id, "go on")

    assert result.output == [{"effect": 1}, "go on"]
    assert world.names() == ["paid"]


def test_one_key_in_two_nodes_is_two_effects(graph, world):
    def paying(given, ctx):
        return ctx.once("pay", lambda: world.act("paid"))

    graph(("one", paying), ("two", paying)).run(1)

    assert world.names() == ["paid", "paid"]


def test_the_same_call_in_two_nodes_is_two_calls(graph, world):
    def noting(given, ctx):
        return ctx.call_tool("note", {"text": "x"})["content"]

    def asking(given, ctx):
        return [ctx.call_tool("note", {"text": "x"})["content"], ctx.interrupt("?")]

    executor = graph(("one", noting), ("two", asking))
    paused = executor.run(1)
    result = executor.resume(paused.thread_id, 1)

    assert world.names() == ["note", "note"]
    assert result.output == ['{"effect": 2}', 1]


def test_an_effect_of_unknown_fate_waits_for_a_person(graph, world):
    world.plan("paid", acts_then_raises(TimeoutError("no answer")))

    def paying(given, ctx):
        return ctx.once("pay", lambda: world.act("paid"))

    executor = graph(("pay", paying))
    doubtful = executor.run(1)
    turn = turn_of(doubtful)

    assert doubtful.interrupted
    assert doubtful.interrupt_payload == {"tool": "once:pay", "args": {}}
    assert "Whether `once:pay` happened is not known" in doubtful.error
    with pytest.raises(TransitionNotAllowed, match="settled"):
        executor.resume(doubtful.thread_id, Approve())
    settle(only(turn), "happened", result="paid")
    assert resume(turn) == "completed"
    assert world.names() == ["paid"]
    assert executor.result(doubtful.thread_id).output == "paid"


# gated calls inside a node


def pay_node(given, ctx):
    return ctx.call_tool("pay", {"order": "o1", "amount": "10"})["status"]


def test_a_gated_call_of_a_node_is_answered_with_a_decision(graph, world):
    executor = graph(("pay", pay_node), ("done", done))

    paused = executor.run(1)
    assert paused.interrupt_payload == {
        "tool": "pay",
        "args": {"order": "o1", "amount": "10"},
    }
    result = executor.resume(paused.thread_id, Approve())

    assert result.output == {"done": "ok"}
    assert world.names() == ["pay"]


def test_a_gated_call_takes_nothing_but_a_decision(graph, world):
    executor = graph(("pay", pay_node))
    paused = executor.run(1)

    with pytest.raises(TypeError, match="decision"):
        executor.resume(paused.thread_id, "yes")
    with pytest.raises(DecisionNotAllowed):
        executor.resume(paused.thread_id, Respond("yes"))

    assert executor.resume(paused.thread_id, Reject("no")).output == "rejected"
    assert world.names() == []


def test_calls_that_wait_together_are_decided_one_by_one(graph, world):
    def batch(given, ctx):
        calls = [
            {"id": name, "name": "mail", "args": {"to": name}} for name in ("a", "b")
        ]
        return [one["status"] for one in ctx.call_tools(calls)]

    executor = graph(("mail", batch))
    first = executor.run(1)
    second = executor.resume(first.thread_id, Approve())

    assert (first.waiting, second.waiting) == (2, 1)
    assert [first.interrupt_payload["args"], second.interrupt_payload["args"]] == [
        {"to": "a"},
        {"to": "b"},
    ]
    assert world.names() == []
    assert executor.resume(first.thread_id, Edit({"to": "c"})).output == ["ok", "ok"]
    assert world.effects == [("mail", {"to": "a"}), ("mail", {"to": "c"})]


# who answers, and where


def test_the_second_is_told_who_answered(graph, reviewer):
    executor = graph(("ask", ask))
    paused = executor.run(1)
    executor.resume(paused.thread_id, "yes", by=reviewer, via="admin")

    with pytest.raises(AlreadyDecided) as told:
        executor.resume(paused.thread_id, "no")

    assert told.value.decided_by == "rita"
    assert told.value.decided_at == only(turn_of(paused)).decided_at
    assert "rita already decided" in told.value.detail


def test_the_right_to_answer_is_checked(graph, make_user):
    executor = graph(("ask", ask))
    paused = executor.run(1)

    with pytest.raises(ReviewerNotAllowed):
        executor.resume(
            paused.thread_id, "yes", by=make_user("v", "view_pendinginterrupt")
        )

    assert executor.result(paused.thread_id).interrupted


def test_whoever_asked_for_it_may_not_answer(graph, reviewer):
    executor = graph(("ask", ask))
    paused = executor.run(1, requested_by=reviewer)

    with pytest.raises(ReviewerNotAllowed):
        executor.resume(paused.thread_id, "yes", by=reviewer)


def test_an_answer_through_the_services_is_run_by_a_worker(graph):
    executor = graph(("ask", ask), ("done", done))
    paused = executor.run(1)

    services.decide(paused.interrupt_id, Respond(None), by=None, via="test")
    owed = executor.result(paused.thread_id)
    assert (owed.status, owed.error) == ("ready", "A worker runs this thread next.")
    assert run_owed() == ["completed"]

    assert executor.result(paused.thread_id).output == {
        "done": {"input": 1, "approved": None}
    }


def test_a_resume_tells_no_worker_that_would_only_come_first(
    graph, settings, monkeypatch
):
    from hitl_approvals import dispatchers

    told = []
    monkeypatch.setattr(dispatchers, "wake", told.append)
    executor = graph(("ask", ask))
    paused = executor.run(1)

    executor.resume(paused.thread_id, "yes")

    assert told == []


def test_an_answer_whose_process_died_before_the_run_is_run_by_a_worker(graph):
    executor = graph(("ask", ask))
    paused = executor.run(1)

    with armed("decide.after_commit", die), pytest.raises(Crash):
        executor.resume(paused.thread_id, 0)

    with pytest.raises(AlreadyDecided):
        executor.resume(paused.thread_id, 1)
    assert run_owed() == ["completed"]
    assert executor.result(paused.thread_id).output == {"input": 1, "approved": 0}


def test_the_sweeper_announces_what_no_resume_came_to_run(graph, settings, monkeypatch):
    from hitl_approvals import dispatchers

    told = []
    monkeypatch.setattr(
        dispatchers, "wake", lambda turn_id: told.append(turn_id) or True
    )
    settings.HITL_APPROVALS = {"DISPATCHER": "celery", "HINT_AFTER": 0.001}
    executor = graph(("ask", ask))
    paused = executor.run(1)
    with armed("decide.after_commit", die), pytest.raises(Crash):
        executor.resume(paused.thread_id, 0)
    AgentTurn.objects.update(dispatched_at=PAST)

    assert services.sweep().announced == 1

    assert told == [turn_of(paused).pk]


# runs that cannot be made, and runs that fail


def test_a_run_inside_a_transaction_is_refused(graph, transactional_db):
    executor = graph(("ask", ask))
    with transaction.atomic(), pytest.raises(UnsafeContext, match="start_turn"):
        executor.run(1)
    assert AgentTurn.objects.count() == 0
    paused = executor.run(1)

    with transaction.atomic(), pytest.raises(UnsafeContext, match="resume"):
        executor.resume(paused.thread_id, "yes")

    assert executor.result(paused.thread_id).interrupted


def test_a_run_behind_another_of_its_thread_waits_and_says_so(graph):
    executor = graph(("ask", ask))
    first = executor.run(1, "t")

    second = executor.run(2, "t")

    assert (second.status, second.interrupted, second.output) == ("ready", False, None)
    assert "Another run of this thread is not over" in second.error
    assert executor.resume("t", "yes").output == {"input": 1, "approved": "yes"}
    assert run_owed() == ["suspended"]
    assert executor.result("t").interrupted
    assert executor.resume("t", "too").output == {"input": 2, "approved": "too"}
    assert first.interrupted


def test_a_run_behind_another_of_its_thread_can_be_refused(graph, settings):
    settings.HITL_APPROVALS = {**settings.HITL_APPROVALS, "THREAD_POLICY": "refuse"}
    executor = graph(("ask", ask))
    executor.run(1, "t")

    with pytest.raises(ThreadBusy):
        executor.run(2, "t")


def test_an_error_in_a_node_is_tried_again_and_said(graph, world):
    failures = [ValueError("the model is away")]

    def flaky(given):
        if failures:
            raise failures.pop()
        return given

    executor = graph(*counting(world, "before"), ("flaky", flaky))
    failed = executor.run(1)

    assert (failed.status, failed.output) == ("ready", None)
    assert "ValueError: the model is away" in failed.error
    make_due(turn_of(failed))
    assert executor.resume(failed.thread_id).status == "completed"
    assert world.names() == ["before"]


def test_a_node_can_end_the_thread_for_good(graph):
    def hopeless(given):
        raise TurnFailed("no use")

    result = graph(("hopeless", hopeless)).run(1)

    assert (result.status, result.error) == ("failed", "no use")


def test_an_output_that_cannot_be_recorded_names_its_node(graph):
    result = graph(("odd", lambda given: {1, 2})).run(1)

    assert result.status == "ready"
    assert "Node `odd` returned something that cannot be recorded" in result.error


def test_the_same_start_key_finds_the_same_thread(graph):
    executor = graph(("ask", ask))

    first = executor.run(1, key="k")

    assert executor.run(1, key="k") == first


def test_options_reach_the_nodes(graph):
    executor = graph(("look", lambda given, ctx: ctx.execute_options))

    assert executor.run(1, execute_options={"a": 1}).output == {"a": 1}


# changed graphs


def test_a_stopped_turn_goes_on_once_the_node_is_back(graph):
    paused = graph(("ask", ask), ("done", done)).run(1)
    renamed = graph(("asks", ask), ("done", done))
    stopped = renamed.resume(paused.thread_id, "yes")
    assert stopped.status == "needs_attention"
    assert "Node `ask`" in stopped.error
    turn = turn_of(paused)
    assert events(turn) == ["turn_needs_attention"]
    assert only(turn).status == "decided"

    executor = graph(("ask", ask), ("done", done))
    services.retry(turn.pk, by=None, via="test")

    assert executor.resume(paused.thread_id).output == {
        "done": {"input": 1, "approved": "yes"}
    }


def test_a_restarted_turn_takes_the_graph_as_it_is_now(graph, world):
    paused = graph(*counting(world, "one"), ("ask", ask)).run(1)
    executor = graph(*counting(world, "other"), ("ask", ask))
    assert executor.resume(paused.thread_id, "yes").status == "needs_attention"

    services.restart(turn_of(paused).pk, by=None, via="test")
    again = executor.resume(paused.thread_id)

    assert again.interrupted
    assert world.names() == ["one", "other"]
    assert executor.resume(paused.thread_id, "yes").output["input"] == [1, "other"]
    assert [one.node for one in executor.list_checkpoints(paused.thread_id)] == [
        "other",
        "ask",
        "ask",
    ]


def test_a_renamed_node_is_noticed_before_its_effect_is_repeated(graph, world):
    def paying(given, ctx):
        ctx.once("pay", lambda: world.act("paid"))
        raise RuntimeError("after the effect")

    failed = graph(("pay", paying)).run(1)
    make_due(turn_of(failed))

    stopped = graph(("pays", paying)).resume(failed.thread_id)

    assert stopped.status == "needs_attention"
    assert "Node `pay` of graph `g` was under way" in stopped.error
    assert world.names() == ["paid"]


def test_a_state_of_another_version_is_a_visible_stop(graph):
    executor = graph(("ask", ask))
    paused = executor.run(1)
    AgentTurn.objects.update(state={"version": 99})

    stopped = executor.resume(paused.thread_id, "yes")

    assert stopped.status == "needs_attention"
    assert "another version" in stopped.error


def test_a_turn_of_another_version_is_left_to_workers_that_have_it(graph):
    paused = graph(("ask", ask)).run(1)
    executor = graph(("ask", ask), version="2")

    assert executor.resume(paused.thread_id, "yes").status == "ready"
    accepting = graph(("ask", ask), version="2", accepts=["1"])

    assert accepting.resume(paused.thread_id).status == "completed"


# names


def test_a_graph_on_the_rows_needs_a_name(db):
    with pytest.raises(HitlConfigurationError, match=r'name="transfer"'):
        DurableExecutor([("ask", ask)])
    with pytest.raises(HitlConfigurationError, match="MemoryCheckpointStore"):
        DurableExecutor([("ask", ask)], store=DjangoCheckpointStore())


def test_two_graphs_of_one_name_are_refused(graph):
    graph(("ask", ask))
    DurableExecutor([("ask", ask)], name="g")

    with pytest.raises(HitlConfigurationError, match="Two agents are called `g`"):
        DurableExecutor([("ask", done)], name="g")


def test_an_agent_that_is_no_graph_is_told_how_to_be_one(make_definition):
    from hitl_approvals.agents import base

    with pytest.raises(HitlConfigurationError, match="DurableExecutor"):
        base.load(make_definition)


@pytest.fixture
def make_definition():
    from hitl_approvals.registry import AgentDefinition

    return AgentDefinition(name="x", target=ask, kind="graph")


def test_a_thread_of_another_graph_is_not_found(graph):
    one = graph(("ask", ask), name="one")
    other = graph(("ask", ask), name="other")
    paused = one.run(1, "t")

    other.run(2, "u")
    with pytest.raises(InterruptNotFound):
        other.resume("u", "yes", interrupt_id=paused.interrupt_id)
    assert other.list_checkpoints("t") == []
    assert len(DjangoCheckpointStore().list("t")) == 1
    assert DjangoCheckpointStore("other").list("t") == []


# what a node is handed


def test_a_node_is_handed_a_context(graph):
    seen = {}

    def look(given, ctx):
        assert isinstance(ctx, GraphContext)
        seen.update(node=ctx.node, thread=ctx.thread_id, id=ctx.id)
        return ctx.deadline

    result = graph(("look", look)).run(1, "my thread")

    assert seen == {"node": "look", "thread": "my thread", "id": turn_of(result).pk}


def test_a_tool_is_gated_as_a_function_too(graph, world):
    from tests.support.agents import mail

    executor = graph(("mail", lambda given: mail(to="a")))
    paused = executor.run(1)

    assert paused.interrupt_payload == {"tool": "mail", "args": {"to": "a"}}
    world.plan("mail", returns("sent"))
    assert executor.resume(paused.thread_id, Approve()).output == "sent"


def test_deleting_a_thread_cancels_what_is_open_and_keeps_the_rest(graph):
    executor = graph(("ask", ask))
    paused = executor.run(1)

    DjangoCheckpointStore().delete(paused.thread_id)

    result = executor.result(paused.thread_id)
    assert (result.status, result.error) == ("cancelled", "The thread is cancelled.")
    assert only(turn_of(paused)).outcome_status == "withdrawn"
    assert len(executor.list_checkpoints(paused.thread_id)) == 1


def test_turns_of_other_agents_are_no_checkpoints(graph, world):
    other = begin([call("mail", "m", to="a")], thread_id="t")
    AgentTurn.objects.filter(pk=other.pk).update(state=["of", "its", "own"])

    assert DjangoCheckpointStore().list("t") == []
    assert DjangoCheckpointStore().load_by_id(str(only(other).pk)) is None
