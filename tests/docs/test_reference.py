"""The reference pages name what the code has, all of it and nothing else."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import get_overloads

import hitl_approvals
from hitl_approvals import (
    AsyncGraphContext,
    AsyncTurn,
    GraphContext,
    Turn,
    checks,
    exceptions,
    permissions,
    results,
    services,
    testing,
    tool,
)
from hitl_approvals.api.errors import status_of
from hitl_approvals.conf import DEFAULTS
from hitl_approvals.enums import EventType, ToolMode
from hitl_approvals.exceptions import HitlApprovalsError
from hitl_approvals.registry import Tool
from tests.docs.blocks import DOCS
from tests.docs.tables import Table, code, tables_of

REFERENCE = DOCS / "reference"
RAISED_BY_SITES = "Raised by your code"
RAISED_TO_SITES = "Raised to your code"


def test_every_setting_is_documented_with_its_default() -> None:
    table = tables_of(REFERENCE / "settings.md")["Settings"]

    documented = {
        code(row["key"]): ast.literal_eval(code(row["default"])) for row in table
    }

    assert documented == DEFAULTS


def test_every_system_check_is_documented() -> None:
    page = (REFERENCE / "checks.md").read_text(encoding="utf-8")

    documented = re.findall(r"^## (hitl_approvals\.[EIW]\d{3})$", page, re.MULTILINE)

    assert documented == sorted(set(_check_ids()))


def test_every_refusal_is_documented_with_its_code_and_status() -> None:
    table = tables_of(REFERENCE / "exceptions.md")["Refusals"]

    documented = {code(row["class"]): (code(row["code"]), row["HTTP"]) for row in table}

    assert documented == {
        error.__name__: (error.code, _http(error)) for error in _refusals()
    }


def test_every_other_exception_is_documented() -> None:
    tables = tables_of(REFERENCE / "exceptions.md")
    ours = {
        name
        for name, value in vars(exceptions).items()
        if inspect.isclass(value) and value.__module__ == exceptions.__name__
    }

    documented = _names(tables[RAISED_BY_SITES]) | _names(tables[RAISED_TO_SITES])

    assert documented == ours - {error.__name__ for error in _refusals()}


def test_every_audit_event_is_documented() -> None:
    tables = tables_of(REFERENCE / "events.md")

    documented = [code(row["event"]) for row in tables["Interrupts"] + tables["Turns"]]

    assert sorted(documented) == sorted(EventType.values)


def test_every_public_name_is_documented() -> None:
    tables = tables_of(REFERENCE / "python.md")

    assert _names(tables["hitl_approvals"]) == set(hitl_approvals.__all__)
    assert _names(tables["hitl_approvals.services"]) == set(services.__all__)
    assert _names(tables["hitl_approvals.testing"]) == set(testing.__all__)


def test_every_verb_of_a_turn_and_a_tool_is_documented() -> None:
    tables = tables_of(REFERENCE / "python.md")
    tool_attributes = {"request", "arequest", "unguarded"}

    assert _names(tables["Turn"]) == _public(Turn)
    assert _names(tables["Tool"]) == tool_attributes <= _public(Tool)
    for context in (AsyncTurn, GraphContext, AsyncGraphContext):
        assert _public(Turn) <= _public(context), context


def test_documented_signatures_take_what_the_functions_take() -> None:
    tables = tables_of(REFERENCE / "python.md")
    wrong = []
    for module, heading in (
        (hitl_approvals, "hitl_approvals"),
        (services, "hitl_approvals.services"),
        (testing, "hitl_approvals.testing"),
    ):
        for row in tables[heading]:
            name = code(row["name"])
            shown = re.search(rf"`@?{name}\((?P<inside>[^`]+)\)`", row[_other(row)])
            if (
                shown
                and shown["inside"] != "..."
                and _parameters(shown["inside"]) != _real(getattr(module, name))
            ):
                wrong.append(name)

    assert wrong == []


def test_every_verb_of_an_executor_is_documented() -> None:
    page = REFERENCE / "python.md"
    table = tables_of(page)["DurableExecutor"]
    verbs = {
        name: value
        for name, value in vars(hitl_approvals.DurableExecutor).items()
        if inspect.isfunction(value) and not name.startswith("_")
    }

    assert {*_names(table), *(f"a{name}" for name in _names(table))} == set(verbs)
    for row in table:
        name = code(row["name"])
        shown = re.search(rf"`{name}\((?P<inside>[^`]+)\)`", row[_other(row)])
        assert shown is not None
        assert _parameters(shown["inside"]) == _real(verbs[name])[1:]
        assert f"`a{name}`" in page.read_text(encoding="utf-8")


def test_every_right_is_documented() -> None:
    table = tables_of(DOCS / "explanation" / "security.md")["Rights"]
    rights = {
        value.partition(".")[2]
        for name, value in vars(permissions).items()
        if name.isupper() and str(value).startswith("hitl_approvals.")
    }

    assert _names(table) == rights


def test_every_option_of_a_tool_is_documented_with_its_default() -> None:
    table = tables_of(DOCS / "how-to" / "declare-a-tool.md")["Options"]
    with_options = get_overloads(tool)[1]
    options = inspect.signature(with_options).parameters

    documented = {
        code(row["option"]): ast.literal_eval(code(row["default"])) for row in table
    }

    assert documented == {name: option.default for name, option in options.items()}


def test_every_mode_of_a_tool_is_documented() -> None:
    tables = tables_of(DOCS / "how-to" / "declare-a-tool.md")
    table = tables["What a crash in the middle means"]

    documented = [ast.literal_eval(code(row["`effect`"])) for row in table]

    assert sorted(documented) == sorted(ToolMode.values)


def test_every_status_of_a_message_is_documented() -> None:
    table = tables_of(DOCS / "how-to" / "write-an-agent.md")["Tool calls"]

    assert [code(row["status"]) for row in table] == [
        results.OK,
        results.ERROR,
        results.REJECTED,
        results.EXPIRED,
        results.UNKNOWN,
    ]


def test_every_command_is_documented() -> None:
    package = DOCS.parent / "hitl_approvals"
    table = tables_of(REFERENCE / "python.md")["Commands"]

    documented = {code(row["command"]).removeprefix("manage.py ") for row in table}

    commands = package.rglob("management/commands/hitl_*.py")
    assert documented == {path.stem for path in commands}


def _check_ids() -> list[str]:
    folder = Path(inspect.getfile(checks)).parent
    sources = [path.read_text(encoding="utf-8") for path in folder.glob("*.py")]
    return re.findall(r'"(hitl_approvals\.[EIW]\d{3})"', "".join(sources))


def _refusals(
    base: type[HitlApprovalsError] = HitlApprovalsError,
) -> Iterator[type[HitlApprovalsError]]:
    yield base
    for error in base.__subclasses__():
        # Other tests may define their own.
        if error.__module__ == exceptions.__name__:
            yield from _refusals(error)


def _http(error: type[HitlApprovalsError]) -> str:
    status = status_of(error())
    return "none" if status is None else str(status)


def _names(table: Table) -> set[str]:
    return {code(next(iter(row.values()))) for row in table}


def _other(row: dict[str, str]) -> str:
    return next(column for column in row if column != "name")


def _parameters(inside: str) -> list[str]:
    names = [part.partition("=")[0].strip() for part in inside.split(", ")]
    return [name for name in names if name != "*"]


def _real(function: Callable[..., object]) -> list[str]:
    return list(inspect.signature(function).parameters)


def _public(kind: type) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}
