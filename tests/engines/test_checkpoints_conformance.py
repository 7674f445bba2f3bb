"""LangGraph's own suite for checkpointers, all of it, on every database."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db import connection

pytestmark = [pytest.mark.engines, pytest.mark.django_db(transaction=True)]
BASE = {"put": 17, "put_writes": 10, "get_tuple": 10, "list": 16, "delete_thread": 5}
OPTIONAL = {"delete_for_runs": 7, "copy_thread": 8, "prune": 8}


async def validated(database: str, *, one_run: bool = False) -> Any:
    from langgraph.checkpoint.conformance import checkpointer_test, validate

    from hitl_approvals.checkpoints import DjangoCheckpointSaver

    @checkpointer_test(name=f"DjangoCheckpointSaver on {database}")
    async def ours() -> Any:
        saver = DjangoCheckpointSaver()
        yield saver.one_run().saver if one_run else saver

    return await validate(ours)


@pytest.mark.parametrize(
    "run",
    [
        pytest.param(async_to_sync(validated), id="on the caller's thread"),
        pytest.param(lambda name: asyncio.run(validated(name)), id="in a loop alone"),
        pytest.param(
            lambda name: async_to_sync(validated)(name, one_run=True),
            id="as one run of an agent uses it",
        ),
    ],
)
def test_it_passes_langgraphs_own_suite(
    run: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    report = run(connection.display_name)

    passed = {name: one.tests_passed for name, one in report.results.items()}
    with capsys.disabled():
        report.print_report()
        base = sum(passed[name] for name in BASE)
        optional = ", ".join(f"{name} {passed[name]}" for name in OPTIONAL)
        print(f"  base {base} of {sum(BASE.values())} tests; {optional}")
    assert [one.failures for one in report.results.values() if one.failures] == []
    assert passed == BASE | OPTIONAL
    assert report.conformance_level() == "FULL"
