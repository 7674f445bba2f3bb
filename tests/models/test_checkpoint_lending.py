"""A thread that borrows a connection leaves none open; one that has its own keeps it."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context

import pytest
from django.db import DatabaseError, connection, connections, transaction

from hitl_approvals.checkpoints import apps, close_idle_connections, lending
from hitl_approvals.checkpoints.lending import Lender, connection_of
from hitl_approvals.exceptions import UnsafeContext
from tests.support.checkpoints import checkpoint, counts, save

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def lender(monkeypatch):
    """Lend by a lender of the test's own, who keeps everything until told otherwise."""
    monkeypatch.setattr(lending, "IDLE_SECONDS", 3600)
    monkeypatch.setattr(Lender, "_close_what_idles", lambda self: None)
    monkeypatch.setattr(lending, "_lender", Lender())
    yield lending._lender
    close_idle_connections()


def on_a_thread(function):
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function).result()


def saved(number):
    with connection_of("default") as lent:
        lending_rows(lent, number)
        return lent


def lending_rows(lent, number):
    from hitl_approvals.checkpoints import rows

    rows.save_checkpoint(lent, checkpoint("t", number), [])


def still_open():
    return [
        one
        for one in connections.all(initialized_only=True)
        if one.connection is not None
    ]


def test_a_thread_of_its_own_borrows_and_leaves_nothing_open(lender):
    def work():
        lent = saved(1)
        return lent, connections.all(initialized_only=True)

    lent, left = on_a_thread(work)

    assert left == []
    assert lent is not connection
    assert lent.connection is not None
    close_idle_connections()
    assert lent.connection is None
    assert counts() == (1, 0, 0)


def test_one_connection_serves_threads_that_come_one_after_the_other(lender):
    used = {
        id(on_a_thread(lambda number=number: saved(number))) for number in (1, 2, 3)
    }

    assert len(used) == 1
    assert counts() == (3, 0, 0)


def test_threads_at_the_same_time_have_one_each_and_all_are_closed(lender):
    together = threading.Barrier(3)

    def work(number):
        with connection_of("default") as lent:
            lent.ensure_connection()
            together.wait(timeout=20)
            return lent

    with ThreadPoolExecutor(3) as pool:
        lent = list(pool.map(work, range(3)))

    assert len({id(one) for one in lent}) == 3
    close_idle_connections("default")
    assert [one.connection for one in lent] == [None, None, None]


def test_no_more_than_a_few_are_lent_at_a_time(lender):
    lent = [lender.take("default") for _ in range(lending.LIMIT)]
    pool = ThreadPoolExecutor(1)
    waiting = pool.submit(saved, 1)
    assert not waiting.done()
    lent[0].ensure_connection()
    lender.give_back(lent[0], sound=True)

    assert waiting.result(timeout=20) is lent[0]
    for one in lent[1:]:
        lender.give_back(one, sound=True)
    pool.shutdown()
    # The last of them were never opened, so there was nothing to keep.
    assert [each for _since, each in lender._idle["default"]] == [lent[0]]


def test_the_main_thread_uses_and_keeps_djangos_own():
    with connection_of("default") as used:
        save(checkpoint("t", 1))

    assert used is connections["default"]
    assert used.connection is not None


def test_an_open_connection_of_a_thread_is_used_and_left_open():
    def work():
        connection.ensure_connection()
        try:
            used = saved(1)
            return used is connections["default"], len(still_open())
        finally:
            connection.close()

    assert on_a_thread(work) == (True, 1)


def test_a_transaction_of_the_thread_covers_what_is_saved():
    def work():
        try:
            with transaction.atomic():
                saved(1)
                raise RuntimeError
        except RuntimeError:
            return counts()
        finally:
            connection.close()

    assert on_a_thread(work) == (0, 0, 0)


def test_a_connection_on_which_something_failed_is_not_lent_again(lender):
    seen = []

    def fail():
        with connection_of("default") as lent:
            seen.append(lent)
            lent.cursor().execute("SELECT nothing FROM nowhere")

    with pytest.raises(DatabaseError):
        on_a_thread(fail)
    assert seen[0].connection is None
    assert on_a_thread(lambda: saved(1)) is not seen[0]


def test_what_is_saved_is_committed_whatever_the_site_does_itself(lender, monkeypatch):
    # Opened before: this thread's own must go on committing what empties the tables.
    connection.ensure_connection()
    monkeypatch.setitem(connections.settings["default"], "AUTOCOMMIT", False)
    on_a_thread(lambda: saved(1))
    close_idle_connections()

    assert counts() == (1, 0, 0)


def test_a_connection_that_cannot_be_made_does_not_count_as_lent(lender):
    def fail():
        with connection_of("no database"):
            pass

    for _ in range(lending.LIMIT):
        with pytest.raises(KeyError, match="no database"):
            on_a_thread(fail)

    # One more than the limit would wait for ever for one of them to be given back.
    assert lender._lent["no database"] == 0


def test_what_idles_is_closed_by_itself(monkeypatch):
    monkeypatch.undo()
    monkeypatch.setattr(lending, "IDLE_SECONDS", 0.01)
    monkeypatch.setattr(lending, "_lender", Lender())

    lent = on_a_thread(lambda: saved(1))
    closer = lending._lender._closer
    if closer is not None:
        closer.join(timeout=20)

    assert lent.connection is None
    assert lending._lender._closer is None


def test_tables_that_were_migrated_are_met_by_new_connections(lender):
    lent = on_a_thread(lambda: saved(1))
    apps._let_go(using="default")

    assert lent.connection is None


def test_a_forked_child_lends_its_own_and_forgets_none_of_its_parents(lender):
    lent = on_a_thread(lambda: saved(1))
    lending._start_anew()
    try:
        assert on_a_thread(lambda: saved(2)) is not lent
        assert lending._of_the_parent == [lender]
        assert lent.connection is not None
    finally:
        lending._of_the_parent.clear()
        lender.close_idle()


def test_a_thread_never_waits_for_the_transaction_that_waits_for_it():
    """SQLite only: elsewhere both can write, and what the thread saves is committed."""
    with transaction.atomic():
        # InnoDB locks the gaps beside a new row, so there only one of the two may write.
        if connection.vendor != "mysql":
            save(checkpoint("t", 1))
        with connection_of("default"):
            context = copy_context()
        pool = ThreadPoolExecutor(1)
        task = pool.submit(context.run, saved, 2)
        if connection.vendor == "sqlite":
            with pytest.raises(UnsafeContext, match="inside a transaction"):
                task.result()
        else:
            task.result()
        pool.shutdown()
        transaction.set_rollback(True)

    assert counts() == (0 if connection.vendor == "sqlite" else 1, 0, 0)
