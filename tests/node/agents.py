"""The two agents as commands, and one job that may have to be started several times."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from tests.node.gate import SECONDS, Gate, Moment, Step
from tests.node.node import node
from tests.servers.service import in_ci
from tests.workspace import ROOT

SCRIPTS = ROOT / "example_project" / "remote_agents"
KINDS = ("curl", "node")
MOST_STARTS = 30


def command(kind: str) -> list[str]:
    """Return how an agent of this kind is started."""
    if kind == "node":
        return [node(), str(SCRIPTS / "refund.ts")]
    assert shutil.which("curl"), "curl is missing: apt-get install curl"
    return ["sh", str(SCRIPTS / "refund.sh")]


def curl_is_here() -> bool:
    """Tell whether there is `curl`; where it has to be, its absence is an error."""
    found = shutil.which("curl") is not None
    assert found or not in_ci(), "curl is missing: apt-get install curl"
    return found


@dataclass
class Job:
    """One refund that an agent is to make, and all processes that try to."""

    kind: str
    folder: Path
    environment: dict[str, str]
    name: str = "refund-7"
    words: tuple[str, ...] = ("1152921504606846977", "49.90")
    told: list[str] = field(default_factory=list)
    """What each process that ended by itself printed."""

    @property
    def state(self) -> Path:
        return self.folder / self.name

    def knows(self) -> set[str]:
        """Return the facts that its processes have noted; drafts do not count."""
        return {file.name for file in self.state.iterdir() if file.name[0] != "."}

    def start(self) -> subprocess.Popen[str]:
        """Start a process in a group of its own."""
        # The token and the addresses, and nothing else of this process.
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        return subprocess.Popen(
            [*command(self.kind), self.name, *self.words],
            cwd=self.folder,
            env={"PATH": path, **self.environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def run(self) -> int:
        """Run a process to its end and return what it ended with."""
        return self.end(self.start())

    def end(self, process: subprocess.Popen[str]) -> int:
        """Wait for the end of a process and return what it ended with."""
        try:
            self.told.append(process.communicate(timeout=SECONDS)[0])
        except BaseException:
            kill(process)
            raise
        return process.returncode

    def run_to(self, gate: Gate, step: Step, moment: Moment = "before") -> None:
        """Run a process to where it sends this request, or is answered; kill it there."""
        with gate.holding(step, moment) as stop:
            agent = self.start()
            stop.wait()
            kill(agent)

    def run_until_over(self) -> list[int]:
        """Start it again as long as it says so; return what each process ended with."""
        codes = [self.run()]
        while codes[-1] == 1 and len(codes) < MOST_STARTS:
            codes.append(self.run())
        return codes


def kill(process: subprocess.Popen[str]) -> None:
    """Kill an agent with everything that it has started, and see it gone."""
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
