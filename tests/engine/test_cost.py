"""What one cycle costs in commits and statements: the budget of the design."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.db import connection, connections
from django.test.utils import CaptureQueriesContext

from hitl_approvals import Approve, Turn, agent, run_turn, services, start_turn, tool
from hitl_approvals.models import PendingInterrupt, ReviewQueue
from hitl_approvals.statements import kept

SENT: list[str] = []
CONTROL = ("BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE", "SET ", "START ")


@tool(name="cost_send", effect="unsafe", queue="cost")
def cost_send(text: str) -> str:
    """Send something."""
    SENT.append(text)
    return "sent"


@agent("cost", tools=[cost_send])
def cost(turn: Turn, prompt: str) -> str:
    reply = turn.step("model", _first)
    told = turn.call_tools(reply["tool_calls"])
    return str(turn.step("model", _last, told))


def _first() -> dict[str, Any]:
    call = {"id": "a", "name": "cost_send", "args": {"text": "hello"}}
    return {"content": "I will send it.", "tool_calls": [call]}


def _last(told: list[dict[str, Any]]) -> str:
    return f"done: {told[0]['content']}"


def _reviewer() -> User:
    group = Group.objects.create(name="reviewers")
    group.permissions.add(Permission.objects.get(codename="decide_pendinginterrupt"))
    user = User.objects.create_user("rita")
    user.groups.add(group)
    queue = ReviewQueue.objects.create(slug="cost")
    queue.groups.add(group)
    return User.objects.get(pk=user.pk)


def _cost(queries: CaptureQueriesContext) -> tuple[int, list[str]]:
    """Return the number of writing commits, and the statements between them."""
    commits, statements, inside, wrote = 0, [], False, False
    for query in queries.captured_queries:
        sql = query["sql"].strip()
        upper = sql.upper()
        if upper.startswith(("BEGIN", "START TRANSACTION")):
            inside, wrote = True, False
        elif upper.startswith("COMMIT"):
            commits += wrote
            inside = False
        elif upper.startswith(CONTROL):
            continue
        else:
            statements.append(sql)
            writes = not upper.startswith("SELECT")
            wrote = wrote or writes
            commits += writes and not inside
    return commits, statements


def _cycle(settings: Any, reviewer: User) -> None:
    settings.HITL_APPROVALS = {"DISPATCHER": "inline"}
    turn = start_turn("cost", "go", run=True)
    settings.HITL_APPROVALS = {"DISPATCHER": "worker"}
    pk = PendingInterrupt.objects.values_list("pk", flat=True).get(turn=turn.pk)
    services.decide(pk, Approve(), by=reviewer, via="test")
    settings.HITL_APPROVALS = {"DISPATCHER": "inline"}
    assert run_turn(turn.pk) == "completed"


@pytest.mark.django_db(transaction=True)
def test_a_cycle_takes_at_most_seven_commits_and_twenty_seven_statements(
    settings: Any,
) -> None:
    reviewer = _reviewer()
    SENT.clear()

    with CaptureQueriesContext(connection) as queries:
        _cycle(settings, reviewer)
    commits, statements = _cost(queries)
    own = 1  # the test's own read of the id

    assert SENT == ["hello"]
    print(f"cost of a cycle: commits={commits} statements={len(statements) - own}")
    assert commits <= 7
    assert len(statements) - own <= 27


@pytest.mark.django_db(transaction=True)
def test_a_decision_reads_nothing_of_what_its_turn_was_asked_and_holds(
    settings: Any,
) -> None:
    """A turn's state may be megabytes, and no decision asks for it."""
    reviewer = _reviewer()
    settings.HITL_APPROVALS = {"DISPATCHER": "worker"}
    turn = start_turn("cost", "go", run=True)
    pk = PendingInterrupt.objects.values_list("pk", flat=True).get(turn=turn.pk)

    with CaptureQueriesContext(connection) as queries:
        services.decide(pk, Approve(), by=reviewer, via="test")

    read = " ".join(one["sql"] for one in queries.captured_queries)
    quoted = connection.ops.quote_name
    table = quoted("hitl_approvals_agentturn")
    assert f"{table}.{quoted('requested_by_id')}" in read
    for column in ("input", "execute_options", "state", "output"):
        assert f"{table}.{quoted(column)}" not in read


@pytest.mark.django_db(transaction=True)
def test_a_second_cycle_compiles_nothing_of_ours(settings: Any) -> None:
    """Else something that varies was taken for a part of a statement's shape."""
    reviewer = _reviewer()
    own = kept.of(connections["default"])
    own.clear()
    _cycle(settings, reviewer)
    compiled = set(own)

    _cycle(settings, User.objects.get(pk=reviewer.pk))

    assert len(compiled) > 15
    assert set(own) == compiled


@pytest.mark.django_db(transaction=True)
def test_a_cycle_holds_where_the_server_binds_and_prepares(settings: Any) -> None:
    """What the docs advise on PostgreSQL; SQLite always binds so."""
    options = dict(connection.settings_dict["OPTIONS"])
    if connection.vendor == "postgresql":
        connection.settings_dict["OPTIONS"] |= {
            "server_side_binding": True,
            "prepare_threshold": 1,
        }
        connection.close()
    reviewer = _reviewer()
    SENT.clear()
    try:
        for _again in range(4):
            _cycle(settings, User.objects.get(pk=reviewer.pk))
    finally:
        connection.settings_dict["OPTIONS"] = options
        connection.close()

    assert SENT == ["hello"] * 4
