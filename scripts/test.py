"""Runs the suite on real servers and says what ran, and what did not.

    python -m scripts.test                        SQLite, then PostgreSQL, with coverage
    python -m scripts.test --suite crash          one of the suites that are left out of it
    python -m scripts.test --suite mariadb        the suite on MariaDB
    python -m scripts.test -k thread              what follows is handed to pytest

The last line printed is pytest's own.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from typing import NoReturn

from tests.servers.postgresql import postgresql
from tests.servers.redis import redis_server
from tests.servers.service import (
    ServerMissingError,
    ServerUnreachableError,
    Service,
    in_ci,
)
from tests.workspace import ROOT, remove_abandoned_files, run_name

COVERAGE_DATA = ROOT / ".artifacts" / "coverage" / "data"
"""Every process adds an ending of its own to this name."""
DATABASE_FREE = ("tests/architecture", "tests/docs", "tests/model", "tests/unit")
"""Tests that no database can change: they run once, on SQLite."""
SUITE_SECONDS = 480
"""What the whole run may take on two cores."""

_CLOSING_LINE = re.compile(
    r"=*\s*(no tests ran|\d+ (passed|failed|errors?|skipped|deselected|x\w+|warnings?))"
    r".* in \d+\.\d+s.*"
)
_ANSI = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True)
class Suite:
    """A suite that the plain run leaves out."""

    marker: str
    about: str
    target: str


@dataclass(frozen=True)
class Run:
    """One call of pytest."""

    label: str
    settings: str
    arguments: tuple[str, ...] = ()


@dataclass(frozen=True)
class Outcome:
    """What one call of pytest came to."""

    run: Run
    code: int
    closing_line: str

    def __str__(self) -> str:
        """Return the closing line without its frame."""
        text = _ANSI.sub("", self.closing_line).strip("= \n")
        return f"{self.run.label}: {text or f'pytest ended with {self.code}'}"


def suites() -> list[Suite]:
    """Read the suites that need a make target of their own from the markers."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    found = []
    for marker in project["tool"]["pytest"]["markers"]:
        match = re.fullmatch(r"(\w+): (.*) \(make ([\w-]+)\)", marker)
        if match:
            found.append(Suite(*match.groups()))
    return found


def is_closing_line(line: str) -> bool:
    """Tell whether a line is the one that pytest ends with."""
    return _CLOSING_LINE.fullmatch(_ANSI.sub("", line).strip()) is not None


def plan(suite: str | None, stack: ExitStack) -> tuple[list[Run], dict[str, str]]:
    """Bring up the servers for a suite and return its runs and its environment.

    Raises:
        ServerMissingError: A server is missing that the suite cannot do without.
    """
    skip_database_free = tuple(f"--ignore={folder}" for folder in DATABASE_FREE)
    environment = _provide(stack, redis_server, "Redis", required=False)
    if suite == "mariadb":
        # Its driver is not among what other suites need.
        from tests.servers.mariadb import mariadb

        environment |= _provide(stack, mariadb, "MariaDB", required=True)
        others = [each.marker for each in suites() if each.marker != "mariadb"]
        main_suite = ("-m", f"not ({' or '.join(others)})")
        runs = [Run("MariaDB", "mariadb", (*skip_database_free, *main_suite))]
        return runs, environment

    only = ["-m", suite] if suite else []
    runs = [Run("SQLite", "sqlite", tuple(only))]
    if suite != "browser":
        database = _provide(stack, postgresql, "PostgreSQL", required=False)
        if database:
            runs.append(Run("PostgreSQL", "postgres", (*skip_database_free, *only)))
        environment |= database
    return runs, environment


def run_pytest(
    run: Run, extra: Sequence[str], environment: dict[str, str], *, coverage: bool
) -> Outcome:
    """Run pytest, passing its output on but for the closing line."""
    command = [sys.executable]
    if coverage:
        command += ["-m", "coverage", "run", f"--data-file={COVERAGE_DATA}"]
    command += ["-m", "pytest", f"--ds=tests.settings.{run.settings}"]
    command += ["--color=yes"] if sys.stdout.isatty() else []
    _headline(run.label)

    closing_line = ""
    with subprocess.Popen(
        [*command, *run.arguments, *extra],
        cwd=ROOT,
        env={**os.environ, **environment, "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        text=True,
        errors="replace",
    ) as process:
        assert process.stdout is not None  # noqa: S101  asked for above
        try:
            for line in process.stdout:
                if closing_line:
                    print(closing_line, end="")
                closing_line = line if is_closing_line(line) else ""
                if not closing_line:
                    print(line, end="", flush=True)
        except BaseException:
            process.terminate()
            raise
    return Outcome(run, process.returncode, closing_line)


def report_coverage() -> None:
    """Combine what every run and every child process measured, and print it."""
    _headline("coverage of the package")
    coverage = [sys.executable, "-m", "coverage"]
    data = f"--data-file={COVERAGE_DATA}"
    combined = subprocess.run([*coverage, "combine", "--quiet", data], cwd=ROOT)
    if combined.returncode == 0:
        subprocess.run([*coverage, "report", data], cwd=ROOT)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what was asked for and return the exit code of the worst run."""
    parser = argparse.ArgumentParser(description="Run the suite on real servers.")
    names = [suite.marker for suite in suites()]
    parser.add_argument("--suite", choices=names, help="a suite that is left out else")
    options, extra = parser.parse_known_args(arguments)
    signal.signal(signal.SIGTERM, _stop)
    remove_abandoned_files()
    run_name()  # named here, so that the children of every run inherit it
    shutil.rmtree(COVERAGE_DATA.parent, ignore_errors=True)
    COVERAGE_DATA.parent.mkdir(parents=True)
    started = time.monotonic()
    whole_suite = options.suite is None and not extra

    with ExitStack() as stack:
        try:
            runs, environment = plan(options.suite, stack)
        except ServerMissingError as error:
            print(error, file=sys.stderr)
            return 1
        outcomes = [
            # Measured once: on the second database it would say the same, and cost more.
            run_pytest(
                run,
                extra,
                environment,
                coverage=whole_suite and run.settings == "sqlite",
            )
            for run in runs
        ]

    if whole_suite:
        report_coverage()
    _headline("what ran")
    for outcome in outcomes:
        print(f"  {outcome}")
    if whole_suite:
        _tell_what_was_left_out()
        took = time.monotonic() - started
        print(
            f"The whole run took {took:.0f} s of the {SUITE_SECONDS} s it may take.\n"
        )
    last = next((each for each in outcomes if each.code), outcomes[-1])
    print(last.closing_line, end="", flush=True)
    return last.code


def _provide(
    stack: ExitStack,
    server: Callable[[], AbstractContextManager[Service]],
    product: str,
    *,
    required: bool,
) -> dict[str, str]:
    try:
        service = stack.enter_context(server())
    except ServerUnreachableError:
        raise
    except ServerMissingError as error:
        if required or in_ci():
            raise
        print(f"{product}: MISSING, what needs it does not run ({error})")
        return {}
    print(service, flush=True)
    return service.exports()


def _tell_what_was_left_out() -> None:
    _headline("left out, each with a command of its own")
    for suite in suites():
        print(f"  make {suite.target:<14} {suite.marker}: {suite.about}")
    print()


def _headline(text: str) -> None:
    print(f"\n--- {text} {'-' * (75 - len(text))}", flush=True)


def _stop(number: int, frame: object) -> NoReturn:
    # The servers that were started here are stopped on the way out.
    sys.exit(128 + number)


if __name__ == "__main__":
    sys.exit(main())
