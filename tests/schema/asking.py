"""Asks a running site everything that its OpenAPI document allows, and what it does not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.api.conformance import strict
from tests.workspace import ROOT

SECONDS = 600
CONFIGURATION = """\
# Seconds; the longest wait that is asked for is far below.
request-timeout = 20

[checks]
max_response_time = 20

[checks.positive_data_acceptance]
# What fits the document may be refused for what it does not say: arguments that do not
# fit their tool, a cursor that no list gave out, a row that is decided or withdrawn.
expected-statuses = ["2xx", "400", "401", "403", "404", "409", "410", "423", "429"]

[[operations]]
# Each entry is refused by itself, in an answer that is 200.
include-operation-id = "interrupts_decide_many"
checks.negative_data_rejection.expected-statuses = [
  "200", "400", "401", "403", "404", "405", "406", "411", "415", "429",
]
"""


@dataclass(frozen=True)
class Result:
    """What came of one run of schemathesis."""

    operations: int
    cases: int
    failures: int
    told: str


def ask(
    document: dict[str, Any],
    url: str,
    tokens: dict[str, str],
    actor: str,
    folder: Path,
    *options: str,
) -> Result:
    """Run schemathesis as one actor.

    Args:
        document: As the site gave it out.
        url: Where its API is.
        tokens: The `Authorization` of each actor.
        actor: One of them, or `each`: whoever may do it.
        folder: For the document, the configuration and the report.
        options: More of its own.
    """
    described = folder / "openapi.json"
    described.write_text(json.dumps(as_asked(document)))
    configuration = folder / "schemathesis.toml"
    configuration.write_text(CONFIGURATION)
    report = folder / f"{actor}.json"
    done = subprocess.run(
        [
            str(Path(sys.executable).with_name("schemathesis")),
            *("--config-file", str(configuration), "--no-color"),
            *("run", str(described), "--url", url, "--checks", "all"),
            *("--continue-on-failure", "--generation-database", "none"),
            *("--report", "json", "--report-json-path", str(report)),
            *options,
        ],
        cwd=folder,  # it keeps notes where it runs
        env={
            **os.environ,
            "SCHEMATHESIS_HOOKS": "tests.schema.hooks",
            "PYTHONPATH": str(ROOT),
            "HITL_SCHEMA_URL": url,
            "HITL_SCHEMA_ACTOR": actor,
            "HITL_SCHEMA_TOKENS": json.dumps(tokens),
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    if not report.exists():
        raise AssertionError(done.stdout)
    found = json.loads(report.read_text())
    return Result(
        operations=found["operations"]["tested"],
        cases=found["test_cases"]["generated"],
        failures=len(found["failures"]) + len(found["errors"]),
        told=done.stdout,
    )


def as_asked(document: dict[str, Any]) -> dict[str, Any]:
    """Return a document that is stricter with answers, and knows of empty parameters.

    In answers a field that it does not name is a fault. An empty query parameter counts
    as one that is not there, which the document leaves out for the sake of clients.
    """
    asked = {**document, "components": strict(document["components"])}
    for methods in asked["paths"].values():
        for parameter in methods.get("get", {}).get("parameters", ()):
            shape = parameter.get("schema", {})
            if parameter.get("in") == "query" and {"format", "enum"} & set(shape):
                parameter["schema"] = {
                    "anyOf": [shape, {"type": "string", "maxLength": 0}]
                }
    return asked
