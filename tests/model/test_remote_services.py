"""The services do to a remote agent's row exactly what its model does, move by move.

What the database holds of a state is far less than what the model knows. For each such
view that is reachable, and for each thing that a client, a person or the sweeper may
try there, the real row is brought there by the services and the attempt is compared.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable
from copy import copy
from typing import Any, NamedTuple

import pytest

from hitl_approvals import Approve, Reject, services
from hitl_approvals.exceptions import HitlApprovalsError
from hitl_approvals.models import DbNow, PendingInterrupt
from hitl_approvals.services import decisions, overdue, remote_failover
from tests.model import remote
from tests.model.remote import RemoteModel, Row
from tests.support.remote import (
    ask,
    decided,
    fetch,
    give_back,
    pass_time,
    report,
    withdraw,
)
from tests.support.undoing import undone


class View(NamedTuple):
    """What the database holds of a state of the model."""

    status: str
    decision: str
    fetched: bool
    late: bool
    given_up: bool


BORN = View("pending", "", False, False, False)


def view_of(row: Row) -> View:
    return View(row.status, row.decision, row.key != 0, row.late, row.given_up)


def seen(pk: Any) -> View:
    row = PendingInterrupt.objects.annotate(now=DbNow()).get(pk=pk)
    late = row.execute_by is not None and row.execute_by <= row.now
    return View(
        status=row.status,
        decision={"approve": "approve", None: ""}.get(row.decision, "refuse"),
        fetched=row.consumed_at is not None,
        late=late,
        given_up=row.outcome_status == "given_up",
    )


def expire(row: PendingInterrupt) -> None:
    pass_time(row, "expires_at")
    decisions.expire(row.pk)


def time_passes(row: PendingInterrupt) -> None:
    PendingInterrupt.objects.filter(pk=row.pk, execute_by__isnull=False).exclude(
        status__in=("resolved", "cancelled", "in_doubt")
    ).update(execute_by=DbNow())


def lapse(row: PendingInterrupt) -> None:
    for late in overdue.unfetched():
        overdue.lapse(late)


def outcome_due(row: PendingInterrupt) -> None:
    pass_time(row, "outcome_due")
    for late in overdue.unreported():
        overdue.doubt(late)


def settle(answer: Any) -> Callable[[PendingInterrupt], Any]:
    return lambda row: services.settle(row.pk, answer, by=None, via="test")


def after(decision: str) -> Callable[[Any], bool]:
    return lambda move: move.state.decision == decision


VERBS: dict[str, tuple[set[str], Callable[[PendingInterrupt], Any]]] = {
    "approve": ({remote.DECIDES_REMOTE}, lambda row: decided(row, Approve())),
    "refuse": ({remote.DECIDES_REMOTE}, lambda row: decided(row, Reject("no"))),
    "expire": ({remote.EXPIRES_REMOTE}, expire),
    "withdraw": ({remote.WITHDRAWS}, withdraw),
    "time passes": ({remote.TIME_PASSES}, time_passes),
    "lapse": ({remote.LAPSES_REMOTE}, lapse),
    "outcome due": ({remote.OUTCOME_DUE}, outcome_due),
    "hold": ({remote.HOLDS_REMOTE}, lambda row: remote_failover.doubt_unfetched()),
    "settle happened": ({remote.SETTLES_REMOTE}, settle("happened")),
    "settle give up": ({remote.GIVES_UP_REMOTE}, settle("give_up")),
    "settle run again": (set(), settle("run_again")),
    "fetch": (
        {
            remote.CONSUMES,
            remote.ANSWER_LOST,
            remote.CONSUMES_REFUSAL,
            remote.REPEATS_KEY,
        },
        fetch,
    ),
    "fetch with another key": (set(), lambda row: fetch(row, key="another")),
    "give back": ({remote.GIVES_BACK}, give_back),
    "give back under another key": (set(), lambda row: give_back(row, key="another")),
    "report": ({remote.REPORTS, remote.REPORTS_LATE}, report),
    "report not knowing": (
        {remote.REPORTS_UNKNOWN},
        lambda row: report(row, "unknown"),
    ),
    "report under another key": (set(), lambda row: report(row, key="another")),
}
MEANS = {"approve": after("approve"), "refuse": after("refuse")}
"""Two verbs of one label, told apart by what is decided."""
OUTSIDE = {
    remote.RAISES_REMOTE,
    remote.ACTS_REMOTELY,
    remote.CANNOT_TELL,
    remote.CLIENT_KILLED,
}
"""The birth of the row, from which all start, and what no service is asked for."""
FIRST = "fetch with another key"
"""The one verb besides `fetch` that finds a decision nobody has: then its key is first."""

Ends = dict[tuple[View, str], set[View]]


def explored() -> tuple[dict[View, list[str]], Ends]:
    """Return the shortest way to each view by verbs, and where each verb may end."""
    model = RemoteModel()
    todo: deque[Row] = deque([model.initial()])
    known = {model.initial()}
    ends: Ends = defaultdict(set)
    while todo:
        row = todo.popleft()
        for move in model.moves(row):
            for verb, (labels, _act) in VERBS.items():
                if move.label in labels and MEANS.get(verb, _any)(move):
                    ends[view_of(row), verb].add(view_of(move.state))
            if move.state not in known:
                known.add(move.state)
                todo.append(move.state)
    ways: dict[View, list[str]] = {BORN: []}
    reached = deque([BORN])
    while reached:
        view = reached.popleft()
        for verb in VERBS:
            for end in ends.get((view, verb), ()):
                if end not in ways:
                    ways[end] = [*ways[view], verb]
                    reached.append(end)
    return ways, ends


def _any(move: Any) -> bool:
    return True


WAYS, ENDS = explored()


def test_every_move_of_the_model_is_tried() -> None:
    tried = set().union(*(labels for labels, _act in VERBS.values()))

    assert tried | OUTSIDE == set(remote.LABELS)
    assert not tried & OUTSIDE
    assert len(WAYS) > 12
    assert {view for view, _verb in ENDS} <= set(WAYS)


@pytest.mark.django_db
@pytest.mark.parametrize("view", WAYS, ids=lambda view: ", ".join(WAYS[view]) or "born")
def test_the_services_do_what_the_model_does_and_nothing_else(view: View) -> None:
    """Wherever the model moves, the row moves too; elsewhere it stays."""
    row = ask()
    for verb in WAYS[view]:
        VERBS[verb][1](row)
    assert seen(row.pk) == view

    for verb, (_labels, act) in VERBS.items():
        refused = None
        with undone():
            try:
                act(copy(row))
            except HitlApprovalsError as error:
                refused = error
            found = seen(row.pk)

        allowed = ENDS.get((view, verb), set())
        if verb == FIRST and not view.fetched:
            allowed = ENDS.get((view, "fetch"), set())
        assert {found} == (allowed or {view}), (verb, refused)
    assert seen(row.pk) == view
