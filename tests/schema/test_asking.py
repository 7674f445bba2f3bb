"""schemathesis against the running example site, as everybody who may call."""

from __future__ import annotations

import pytest

from tests.schema.asking import Result, ask
from tests.schema.conftest import Site

pytestmark = pytest.mark.schema

RUNS: tuple[tuple[str, tuple[str, ...]], ...] = (
    # Whoever may do it: every value at its bounds and beyond, then chains of requests,
    # then whatever comes to mind.
    ("each", ("--phases", "examples,coverage")),
    ("each", ("--phases", "stateful", "--max-examples", "15", "--max-time", "60")),
    ("each", ("--phases", "fuzzing", "--max-examples", "12")),
    # And each of them whatever it is, most of which is refused.
    ("reviewer", ("--phases", "fuzzing", "--max-examples", "4")),
    ("backend", ("--phases", "fuzzing", "--max-examples", "4")),
    ("client", ("--phases", "fuzzing", "--max-examples", "4")),
)
LEAST_CASES = 2000


def test_every_answer_is_as_described(site: Site, capsys: pytest.CaptureFixture[str]):
    document = site.document()
    expected = sum(
        method in ("get", "post")
        for methods in document["paths"].values()
        for method in methods
    )

    results: list[Result] = [
        ask(
            site.document(),
            f"{site.address}/api",
            site.tokens,
            actor,
            site.folder,
            *options,
        )
        for actor, options in RUNS
    ]

    failures = sum(each.failures for each in results)
    cases = sum(each.cases for each in results)
    operations = max(each.operations for each in results)
    with capsys.disabled():
        print(f"\nschema: operations={operations} cases={cases} failures={failures}")
    assert not failures, "\n".join(each.told for each in results if each.failures)
    assert operations == expected
    assert cases >= LEAST_CASES
    logged = (site.folder / "web.log").read_text()
    assert "Traceback" not in logged
