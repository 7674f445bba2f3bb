"""Audit events are inserted in one place, where what is owed because of them is too."""

from __future__ import annotations

import ast

import pytest

from tests.architecture.test_who_writes import PACKAGE, calls, names_in, sources

FUNNEL = "hitl_approvals/services/recording.py"
INSERTS = {"abulk_create", "acreate", "asave", "bulk_create", "create", "save"}
EVENTS = {"InterruptEvent", "event", "events", "first", "late", "told", "written"}
"""What an event, or a queryset of them, is called in services."""


def inserts(tree: ast.Module) -> list[str]:
    """Return the calls of a module that insert events, as far as one can see."""
    return [
        f"line {node.lineno}: .{name}()"
        for node, name, receiver in calls(tree)
        if receiver is not None
        if (name in INSERTS and names_in(receiver) & EVENTS)
        or (name == "insert" and any(names_in(one) & EVENTS for one in node.args))
    ]


def test_one_module_inserts_events():
    found = {name for name, tree in sources(PACKAGE) if inserts(tree)}

    assert found == {FUNNEL}


@pytest.mark.parametrize(
    "line",
    [
        "event.save(force_insert=True)",
        "rows.events().bulk_create(written)",
        "rows.insert(events)",
        "InterruptEvent(type='raised').save()",
        "InterruptEvent.objects.create(type='raised')",
    ],
)
def test_the_lint_sees_an_insert(line):
    assert inserts(ast.parse(line))


@pytest.mark.parametrize("line", ["row.save()", "record_events(events)"])
def test_the_lint_leaves_others_alone(line):
    assert not inserts(ast.parse(line))
