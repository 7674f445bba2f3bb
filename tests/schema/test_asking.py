"""schemathesis against the running example site, as everybody who may call."""

from __future__ import annotations

import pytest

from tests.schema.asking import Result, ask
from tests.schema.conftest import Site

pytestmark = pytest.mark.schema

RUNS = {
    # Whoever may do it, over chains of requests too.
    "each": ("--max-examples", "40"),
    # And each of them whatever it is, most of which is refused.
    "reviewer": ("--max-examples", "6", "--phases", "fuzzing"),
    "backend": ("--max-examples", "6", "--phases", "fuzzing"),
    "client": ("--max-examples", "6", "--phases", "fuzzing"),
}
LEAST_CASES = 3000


def test_every_answer_is_as_described(site: Site, capsys: pytest.CaptureFixture[str]):
    document = site.document()
    expected = sum(
        method in ("get", "post")
        for methods in document["paths"].values()
        for method in methods
    )

    results: dict[str, Result] = {
        actor: ask(
            site.document(),
            f"{site.address}/api",
            site.tokens,
            actor,
            site.folder,
            *options,
        )
        for actor, options in RUNS.items()
    }

    failures = sum(each.failures for each in results.values())
    cases = sum(each.cases for each in results.values())
    with capsys.disabled():
        print(
            f"\nschema: operations={results['each'].operations} cases={cases} "
            f"failures={failures}"
        )
    assert not failures, "\n".join(
        each.told for each in results.values() if each.failures
    )
    assert results["each"].operations == expected
    assert cases >= LEAST_CASES
    logged = (site.folder / "web.log").read_text()
    assert "Traceback" not in logged
