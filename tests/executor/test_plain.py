"""The in-process loop over a store: effects, errors, and processes that come too late."""

from __future__ import annotations

import logging
import threading
from datetime import date

import pytest

from hitl_approvals import (
    ApprovalRejected,
    Approve,
    Checkpoint,
    DurableExecutor,
    Edit,
    InterruptSuspended,
    MemoryCheckpointStore,
    Reject,
    ToolFailed,
    ToolNotStarted,
)
from hitl_approvals.exceptions import (
    AlreadyDecided,
    DecisionNotAllowed,
    HitlConfigurationError,
    NotInTurn,
    PayloadRejected,
    RunDiverged,
    ThreadBusy,
)
from tests.concurrency.meeting import errors, together
from tests.support.agents import mail


class Died(BaseException):
    """The process ended here: nothing after it is saved."""


@pytest.fixture
def store():
    return MemoryCheckpointStore()


def graph(store, *nodes):
    return DurableExecutor(nodes, store=store)


def ask(given, ctx):
    return [given, ctx.interrupt("may I?")]


# effects


def test_an_effect_is_had_once_over_pauses_errors_and_new_objects(store):
    effects, failures = [], [ValueError("after it")]

    def paying(given, ctx):
        paid = ctx.once("pay", lambda: effects.append("paid") or len(effects))
        if failures:
            raise failures.pop()
        return [paid, ctx.interrupt("and now?")]

    nodes = [("pay", paying)]
    with pytest.raises(ValueError, match="after it"):
        graph(store, *nodes).run(1, "t")
    assert graph(store, *nodes).result("t").status == "ready"

    assert graph(store, *nodes).resume("t").interrupted
    assert graph(store, *nodes).resume("t", 2).output == [1, 2]
    assert effects == ["paid"]


def test_an_effect_whose_process_died_in_it_is_not_repeated_in_silence(store, caplog):
    effects, deaths = [], [Died()]

    def charge():
        effects.append("charged")
        if deaths:
            raise deaths.pop()
        return "charged"

    executor = graph(
        store, ("ask", ask), ("pay", lambda given, ctx: ctx.once("charge", charge))
    )
    thread = executor.run(1).thread_id
    with pytest.raises(Died):
        executor.resume(thread, "yes")

    for _attempt in range(2):
        with pytest.raises(
            RunDiverged, match="Whether `charge` of node `pay` happened"
        ):
            executor.resume(thread)
    assert effects == ["charged"]

    # A person found out that it had not happened.
    asked = executor.list_checkpoints(thread)[1]
    assert asked.node == "ask"
    assert executor.resume(executor.fork(thread, asked.id)).output == "charged"


def test_a_fork_leaves_out_an_effect_of_unknown_fate_and_shows_it(store, caplog):
    deaths = [Died()]

    def paying(given, ctx):
        first = ctx.once("first", lambda: 1)
        try:
            second = ctx.once("second", lambda: die(deaths) or 2)
        except ValueError:
            second = "failed"
        return [first, second, ctx.interrupt("go on?")]

    def die(deaths):
        if deaths:
            raise deaths.pop()

    executor = graph(store, ("pay", paying))
    thread = "t"
    with pytest.raises(Died):
        executor.run(1, thread)
    begun = store.load(thread)
    assert begun.record["effects"]["second"] == {"status": "begun"}
    # A pause that still has it on record, as after an error that the node swallowed.
    store.save(
        begun.with_changes(
            id="pause",
            kind="pause",
            position=begun.position + 1,
            record={
                **begun.record,
                "asked": {"label": "question 1", "payload": "go on?", "schema": None},
            },
        )
    )

    with caplog.at_level(logging.WARNING, logger="hitl_approvals"):
        fork = executor.fork(thread)

    assert "['second']" in caplog.text
    assert store.load(fork).record["left_out"] == ["second"]
    assert store.load(fork).record["effects"] == {
        "first": {"status": "done", "result": 1}
    }
    assert executor.resume(fork, "yes").output == [1, 2, "yes"]


def test_an_effect_that_failed_with_nothing_done_is_told_and_not_tried_again(store):
    tried = []

    def decline():
        tried.append(1)
        raise ToolFailed("card declined")

    def paying(given, ctx):
        try:
            ctx.once("pay", decline)
        except ApprovalRejected as failure:
            return [failure.reason, ctx.interrupt("and now?")]

    executor = graph(store, ("pay", paying))
    done = executor.resume(executor.run(1).thread_id, 1)

    assert done.output == ["card declined", 1]
    assert tried == [1]


def test_an_effect_that_never_left_is_tried_again(store):
    tried = []

    def connect():
        tried.append(1)
        if len(tried) == 1:
            raise ToolNotStarted("no connection")
        return "sent"

    executor = graph(store, ("send", lambda given, ctx: ctx.once("send", connect)))
    with pytest.raises(ToolNotStarted):
        executor.run(1, "t")

    assert executor.resume("t").output == "sent"


def test_a_step_is_recorded_with_the_pause_and_read_back_as_its_type(store):
    calls = []

    def today():
        calls.append(1)
        return date(2026, 11, 29)

    def planning(given, ctx):
        days = [ctx.step("today", today, result_type=date) for _ in range(2)]
        ctx.interrupt("go on?")
        return [f"{day:%Y}" for day in days]

    executor = graph(store, ("plan", planning))
    done = executor.resume(executor.run(1).thread_id, 1)

    assert done.output == ["2026", "2026"]
    assert len(calls) == 2


def test_what_a_node_has_on_record_is_its_own(store):
    def noting(given, ctx):
        return [given, ctx.once("k", lambda: ctx.node), ctx.interrupt("?", key="k")]

    executor = graph(store, ("one", noting), ("two", noting))
    thread = executor.run(0).thread_id
    executor.resume(thread, 1)

    assert executor.resume(thread, 2).output == [[0, "one", 1], "two", 2]


# errors


def test_an_error_in_a_node_is_raised_and_the_thread_goes_on_from_there(store):
    ran, failures = [], [ValueError("away")]

    def flaky(given):
        ran.append("flaky")
        if failures:
            raise failures.pop()
        return given

    executor = graph(
        store, ("before", lambda given: ran.append("before")), ("f", flaky)
    )
    with pytest.raises(ValueError, match="away"):
        executor.run(1, "t")
    stopped = executor.result("t")
    assert (stopped.status, stopped.output) == ("ready", None)
    assert "resume(thread_id)" in stopped.error

    assert executor.resume("t").status == "completed"
    assert ran == ["before", "flaky", "flaky"]


def test_what_is_no_json_is_refused_with_the_name_of_its_node(store):
    executor = graph(store, ("odd", lambda given: {1, 2}))

    with pytest.raises(PayloadRejected, match="Node `odd`"):
        executor.run(1)
    with pytest.raises(PayloadRejected):
        executor.run(object())
    with pytest.raises(PayloadRejected, match="no JSON schema"):
        graph(
            store,
            ("a", lambda given, ctx: ctx.interrupt(1, response_schema={"type": "x"})),
        ).run(1)


@pytest.mark.parametrize("decision", [Approve(), Edit({"a": 1})])
def test_a_question_can_be_neither_approved_nor_edited(store, decision):
    executor = graph(store, ("ask", ask))
    thread = executor.run(1).thread_id

    with pytest.raises(DecisionNotAllowed, match="respond, reject"):
        executor.resume(thread, decision)

    assert executor.result(thread).interrupted


def test_a_refusal_is_told_as_one(store):
    executor = graph(store, ("ask", ask))
    thread = executor.run(1).thread_id
    with pytest.raises(ApprovalRejected, match="no"):
        executor.resume(thread, Reject("no"))

    with pytest.raises(AlreadyDecided) as told:
        executor.resume(thread, "yes")

    assert told.value.decision == "reject"


def test_a_suspension_that_is_not_this_graphs_is_the_callers(store):
    def foreign(given, ctx):
        raise InterruptSuspended("elsewhere")

    with pytest.raises(InterruptSuspended):
        graph(store, ("odd", foreign)).run(1)


@pytest.mark.parametrize("verb", ["call_tool", "call_tools"])
def test_gated_calls_need_the_rows(store, verb):
    executor = graph(store, ("call", lambda given, ctx: getattr(ctx, verb)("mail", {})))

    with pytest.raises(NotInTurn, match="name="):
        executor.run(1)
    with pytest.raises(NotInTurn):
        graph(store, ("mail", lambda given: mail(to="a"))).run(1)


@pytest.mark.parametrize(
    "call",
    [
        lambda executor: executor.run(1, key="k"),
        lambda executor: executor.run(1, requested_by="somebody"),
        lambda executor: executor.run(1, execute_options={}),
        lambda executor: executor.resume("t", 1, by="somebody"),
        lambda executor: executor.fork("t", via="admin"),
    ],
)
def test_what_only_the_rows_can_honor_is_refused(store, call):
    executor = graph(store, ("ask", ask))
    executor.run(1, "t")

    with pytest.raises(TypeError, match="needs Django's rows"):
        call(executor)


@pytest.mark.parametrize("odd", [MemoryCheckpointStore, "memory", {}])
def test_what_is_no_store_is_refused(odd):
    with pytest.raises(HitlConfigurationError, match="is no checkpoint store"):
        graph(odd, ("ask", ask))


def test_tools_need_the_rows(store):
    with pytest.raises(HitlConfigurationError, match="tools= needs"):
        DurableExecutor([("ask", ask)], store=store, tools=[mail])


# one thread, several callers


def test_a_thread_that_is_not_over_takes_no_other_run(store):
    executor = graph(store, ("ask", ask))
    executor.run(1, "t")

    with pytest.raises(ThreadBusy, match="nothing was started"):
        executor.run(2, "t")

    assert executor.resume("t", "yes").output == [1, "yes"]
    executor.run(2, "t")
    assert executor.resume("t", "again").output == [2, "again"]
    assert [one.kind for one in executor.list_checkpoints("t")] == ["pause", "node"] * 2


def test_of_runs_that_meet_in_one_thread_one_runs(store):
    for number in range(5):
        ran = []
        executor = graph(store, ("go", lambda given, *, ran=ran: ran.append(given)))
        thread = f"t{number}"

        results = together(
            *(lambda n=n, e=executor, t=thread: e.run(n, t) for n in range(4))
        )

        # One that comes after the end is a run of its own.
        busy = errors(results)
        assert {type(one) for one in busy} <= {ThreadBusy}
        assert len(ran) == 4 - len(busy)


def test_who_takes_a_thread_over_leaves_the_other_nothing_to_do(store):
    """A process that was thought dead: its next move fails, its effect never begins."""
    inside, go = threading.Event(), threading.Event()
    effects, told = [], []

    def slow(given, ctx):
        if not inside.is_set():
            inside.set()
            assert go.wait(10)
            return ctx.once("pay", lambda: effects.append("zombie"))
        return ctx.once("pay", lambda: effects.append("taken over") or "paid")

    executor = graph(store, ("slow", slow))

    def zombie():
        try:
            executor.run(1, "t")
        except ThreadBusy as busy:
            told.append(busy)

    thread = threading.Thread(target=zombie)
    thread.start()
    assert inside.wait(10)
    done = executor.resume("t")
    go.set()
    thread.join(10)

    assert done.output == "paid"
    assert effects == ["taken over"]
    assert len(told) == 1
    assert executor.result("t") == done


def test_a_node_that_swallows_that_it_was_overtaken_writes_nothing(store):
    def stubborn(given, ctx):
        if given == "zombie":
            last = store.load("t")
            store.save(last.with_changes(id=next_id(last), position=last.position + 1))
        try:
            return ctx.once("pay", lambda: "paid")
        except Exception:  # noqa: BLE001  that is what is tested
            return "went on"

    def next_id(last):
        from hitl_approvals import canonical

        return canonical.key_digest("checkpoint", "t", last.id)

    executor = graph(store, ("stubborn", stubborn))

    with pytest.raises(ThreadBusy):
        executor.run("zombie", "t")

    assert store.load("t").history == []


def test_a_fork_takes_over_the_run_of_its_point_only(store):
    executor = graph(store, ("ask", ask))
    executor.run(1, "t")
    executor.resume("t", "first")
    executor.run(2, "t")
    executor.resume("t", "second")
    first, _done, second, _over = executor.list_checkpoints("t")

    forks = [executor.fork("t", one) for one in (None, first.id, second.id)]

    assert [executor.resume(fork, "x").output for fork in forks] == [
        [2, "x"],
        [1, "x"],
        [2, "x"],
    ]
    assert [len(executor.list_checkpoints(fork)) for fork in forks] == [2, 2, 2]


# values


def test_nothing_is_shared_between_a_thread_and_its_fork(store):
    def change(given, ctx):
        given["lines"].append(ctx.interrupt("add?"))
        return given

    source = {"lines": ["a"]}
    executor = graph(store, ("change", change))
    thread = executor.run(source).thread_id
    fork = executor.fork(thread)
    source["lines"].append("later")

    forked = executor.resume(fork, "f")
    forked.output["lines"].append("changed by the caller")
    done = executor.resume(thread, "o")

    assert done.output == {"lines": ["a", "o"]}
    assert executor.result(fork).output == {"lines": ["a", "f"]}


@pytest.mark.parametrize(
    "value", [{}, {"id": "x"}, {"created_at": "yesterday"}, {"created_at": None}]
)
def test_what_is_no_checkpoint_is_refused(value):
    with pytest.raises(PayloadRejected, match="no checkpoint"):
        Checkpoint.from_json(value)


def test_a_checkpoint_holds_json_only():
    with pytest.raises(PayloadRejected):
        Checkpoint(id="1", thread_id="t", node="n", pending_input=object())
