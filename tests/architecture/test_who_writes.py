"""Only services write rows, and only the database tells the time there."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from hitl_approvals import tasks
from tests.workspace import ROOT

PACKAGE = ROOT / "hitl_approvals"
SERVICES = PACKAGE / "services"
OURS = {
    "AgentClient",
    "AgentTurn",
    "Delivery",
    "DeliveryChannel",
    "IdempotencyRecord",
    "InterruptEvent",
    "PendingInterrupt",
    "ReviewQueue",
    "TurnStep",
}
MOVES_TIME = {"hitl_approvals/testing/agent_contract_rows.py"}
"""Lets a test's time pass by changing rows; nothing of the package imports it."""
ANOTHER_APPS = {"hitl_approvals/checkpoints/pruning.py"}
"""Writes the rows of an app that knows no service; its saver's inserts are written out."""
COMPILES = {"hitl_approvals/statements/inserting.py"}
"""Executes what `services.rows` hands it."""
ALWAYS = {
    "abulk_create",
    "abulk_update",
    "acreate",
    "adelete",
    "aget_or_create",
    "asave",
    "aupdate",
    "aupdate_or_create",
    "bulk_create",
    "bulk_update",
    "get_or_create",
    "update_or_create",
}
"""Nothing but a queryset or a row has these."""
ON_QUERYSETS = {"create", "delete", "insert", "update"}
"""Dicts, sets and forms have them too: the receiver has to look like a queryset."""
STORES = {"store", "_store"}
"""What an interrupt store is called where it is used; its verbs are not a queryset's."""
QUERIES = {
    "all",
    "annotate",
    "exclude",
    "filter",
    "get_queryset",
    "objects",
    "statements",
    "using",
    "where",
}
CLOCKS = {
    ("datetime", "now"),
    ("datetime", "today"),
    ("datetime", "utcnow"),
    ("date", "today"),
    ("time", "time"),
    ("time", "time_ns"),
    ("timezone", "now"),
}


def sources(folder: Path) -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(folder.rglob("*.py")):
        yield str(path.relative_to(ROOT)), ast.parse(path.read_text())


def calls(tree: ast.Module) -> Iterator[tuple[ast.Call, str, ast.expr | None]]:
    """Yield each call with the last name of what is called, and its receiver."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute):
                yield node, node.func.attr, node.func.value
            elif isinstance(node.func, ast.Name):
                yield node, node.func.id, None


def names_in(node: ast.AST) -> set[str]:
    return {
        name
        for part in ast.walk(node)
        for name in (getattr(part, "id", None), getattr(part, "attr", None))
        if name is not None
    }


def writes(tree: ast.Module, *, a_store: bool = False) -> Iterator[str]:
    """Yield the calls of a module that write rows of ours, as far as one can see."""
    stores = STORES | {"self"} if a_store else STORES
    for node, name, receiver in calls(tree):
        if receiver is None:
            continue
        names = names_in(receiver)
        a_query = bool(names & (QUERIES | OURS)) or "rows" in names
        if names & stores and not a_query:
            continue
        if (
            name in ALWAYS
            or (name in ON_QUERYSETS and a_query)
            or (name in {"save", "delete"} and not isinstance(receiver, ast.Call))
            or (name == "save" and names & OURS)
        ):
            yield f"line {node.lineno}: .{name}()"


def clocks(tree: ast.Module) -> Iterator[str]:
    for node, name, receiver in calls(tree):
        owner = getattr(receiver, "attr", None) or getattr(receiver, "id", None)
        if name == "Now" or (owner, name) in CLOCKS:
            yield f"line {node.lineno}: {name}()"


def test_only_services_write_rows():
    elsewhere = {
        name: found
        for name, tree in sources(PACKAGE)
        if "/services/" not in name and "/migrations/" not in name
        if name not in ANOTHER_APPS
        if name not in MOVES_TIME | COMPILES
        if (found := list(writes(tree, a_store="/stores/" in name)))
    }

    assert elsewhere == {}


def test_only_the_database_tells_the_time_in_services():
    found = {
        name: told for name, tree in sources(SERVICES) if (told := [*clocks(tree)])
    }

    assert found == {}


def test_nothing_is_left_to_the_brokers_clock():
    """ETA, countdown and retry keep a due time in a worker's memory, not in the row."""
    found = []
    for name, tree in sources(PACKAGE):
        for node, called, _receiver in calls(tree):
            late = {word.arg for word in node.keywords} & {"eta", "countdown"}
            if late or called in {"apply_async", "retry_task", "autoretry_for"}:
                found.append(f"{name}:{node.lineno}")
            if called == "retry" and "self" in names_in(node.func):
                found.append(f"{name}:{node.lineno}")

    assert found == []


def test_the_tasks_never_retry_by_themselves():
    for task in (tasks.run_turn, tasks.sweep, tasks.deliver):
        assert task.max_retries == 0
        assert task.ignore_result is True
        assert not getattr(task, "autoretry_for", ())


@pytest.mark.parametrize(
    "line",
    [
        "AgentTurn.objects.create(a=1)",
        "rows.turns().filter(pk=1).update(a=1)",
        "rows.where(AgentTurn, pk=1).update(a=1)",
        "statements.where('default', model).update(a=1)",
        "statements.insert('default', new)",
        "PendingInterrupt.objects.filter(pk=1).delete()",
        "row.save()",
        "turn.delete()",
        "AgentTurn(a=1).save()",
        "visible_to(user).filter(pk=1).update(a=1)",
        "queryset.bulk_create(found)",
        "ReviewQueue.objects.get_or_create(slug='x')",
        "store.rows.filter(pk=1).delete()",
        "self.save()",
    ],
)
def test_the_lint_sees_a_write(line):
    assert list(writes(ast.parse(line)))


@pytest.mark.parametrize(
    "line",
    [
        "found.update(a=1)",
        "hashlib.sha256().update(b'x')",
        "super().save(commit=False)",
        "AgentTurn.objects.filter(pk=1).first()",
        "store.save(record)",
        "gate.store.adelete(interrupt_id)",
    ],
)
def test_the_lint_leaves_others_alone(line):
    assert not list(writes(ast.parse(line)))


@pytest.mark.parametrize(
    "line",
    [
        "Now()",
        "functions.Now()",
        "timezone.now()",
        "django.utils.timezone.now()",
        "datetime.now(UTC)",
        "datetime.datetime.now()",
        "time.time()",
    ],
)
def test_the_lint_sees_a_clock(line):
    assert list(clocks(ast.parse(line)))


@pytest.mark.parametrize("line", ["DbNow()", "run.clock.now()", "time.monotonic()"])
def test_the_lint_leaves_the_databases_clock_alone(line):
    assert not list(clocks(ast.parse(line)))
