"""Runs the suite on real servers and says what ran, and what did not.

    python -m scripts.test                        SQLite and PostgreSQL
    python -m scripts.test --everywhere           the same, each test on both of them
    python -m scripts.test --coverage             the same, and what it covers
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
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from typing import NoReturn

from scripts.placement import NO_DATABASE, ON_POSTGRESQL, ON_SQLITE
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
    environment: dict[str, str] = field(default_factory=dict)
    """Its servers: each run has a broker database of its own."""


@dataclass(frozen=True)
class Outcome:
    """What one call of pytest came to."""

    run: Run
    code: int
    closing_line: str
    told: list[str] = field(default_factory=list)

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


def skip(*paths: str) -> tuple[str, ...]:
    """Return the arguments that leave folders and files out."""
    return tuple(f"--ignore={path}" for path in paths)


def plan(suite: str | None, stack: ExitStack, *, shared: bool) -> list[Run]:
    """Bring up the servers for a suite and return its runs.

    Args:
        suite: What of the tests that the plain run leaves out; None is the plain run.
        stack: Keeps the servers.
        shared: Whether the two runs share out what one database is enough for.

    Raises:
        ServerMissingError: A server is missing that the suite cannot do without.
    """
    broker = _provide(stack, redis_server, "Redis", required=False)
    if suite == "mariadb":
        # Its driver is not among what other suites need.
        from tests.servers.mariadb import mariadb

        database = _provide(stack, mariadb, "MariaDB", required=True)
        others = [each.marker for each in suites() if each.marker != "mariadb"]
        main_suite = ("-m", f"not ({' or '.join(others)})")
        arguments = (*skip(*NO_DATABASE), *main_suite)
        return [Run("MariaDB", "mariadb", arguments, broker | database)]

    only = ["-m", suite] if suite else []
    if suite == "engines":
        # Its environment lacks what other folders need to be collected.
        only.append("tests/engines")
    runs = [Run("SQLite", "sqlite", tuple(only), broker)]
    if suite != "browser":
        database = _provide(stack, postgresql, "PostgreSQL", required=False)
        if database:
            # The runs go on at the same time: neither may take the other's messages.
            broker = _provide(stack, redis_server, "Redis", required=False)
            first, second = (
                (skip(*ON_POSTGRESQL), skip(*ON_SQLITE)) if shared else ((), ())
            )
            runs = [
                Run("SQLite", "sqlite", (*first, *only), runs[0].environment),
                Run("PostgreSQL", "postgres", (*second, *only), broker | database),
            ]
    if suite == "engines":
        from tests.servers.mariadb import mariadb

        database = _provide(stack, mariadb, "MariaDB", required=False)
        if database:
            # Of all that is in this suite, only the checkpointer has tables of its own.
            checkpoints = sorted(ROOT.glob("tests/engines/test_checkpoints*.py"))
            paths = [str(path.relative_to(ROOT)) for path in checkpoints]
            runs.append(Run("MariaDB", "mariadb", ("-m", suite, *paths), database))
    return runs


def run_all(
    runs: Sequence[Run], extra: Sequence[str], *, coverage: bool
) -> list[Outcome]:
    """Run pytest on every database at the same time; tell the runs one after the other.

    Coverage is measured on the first: on another database it would say the same, and
    cost more.
    """
    with ThreadPoolExecutor(len(runs)) as pool:
        others = [
            pool.submit(run_pytest, run, extra, told=[], coverage=False)
            for run in runs[1:]
        ]
        try:
            _headline(runs[0].label)
            outcomes = [run_pytest(runs[0], extra, told=None, coverage=coverage)]
            for run, other in zip(runs[1:], others, strict=True):
                _headline(run.label)
                outcome = other.result()
                print("".join(outcome.told), end="", flush=True)
                outcomes.append(outcome)
        except BaseException:
            for process in list(_under_way):
                process.terminate()
            raise
    return outcomes


_under_way: set[subprocess.Popen[str]] = set()
"""Runs of pytest that are not over, so that none outlives this process."""


def run_pytest(
    run: Run, extra: Sequence[str], *, told: list[str] | None, coverage: bool
) -> Outcome:
    """Run pytest; print its output, or keep it in `told`, but for the closing line."""
    command = [sys.executable]
    if coverage:
        command += ["-m", "coverage", "run", f"--data-file={COVERAGE_DATA}"]
    command += ["-m", "pytest", f"--ds=tests.settings.{run.settings}"]
    command += ["--color=yes"] if sys.stdout.isatty() else []

    def tell(line: str) -> None:
        if told is None:
            print(line, end="", flush=True)
        else:
            told.append(line)

    closing_line = ""
    with subprocess.Popen(
        [*command, *run.arguments, *extra],
        cwd=ROOT,
        env={**os.environ, **run.environment, "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        text=True,
        errors="replace",
    ) as process:
        assert process.stdout is not None  # noqa: S101  asked for above
        _under_way.add(process)
        try:
            for line in process.stdout:
                if closing_line:
                    tell(closing_line)
                closing_line = line if is_closing_line(line) else ""
                if not closing_line:
                    tell(line)
        except BaseException:
            process.terminate()
            raise
        finally:
            _under_way.discard(process)
    return Outcome(run, process.returncode, closing_line, told or [])


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
    parser.add_argument(
        "--everywhere", action="store_true", help="each test on both databases"
    )
    parser.add_argument("--coverage", action="store_true", help="measure it; slower")
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
            shared = whole_suite and not options.everywhere
            runs = plan(options.suite, stack, shared=shared)
        except ServerMissingError as error:
            print(error, file=sys.stderr)
            return 1
        outcomes = run_all(runs, extra, coverage=options.coverage)

    if options.coverage:
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
