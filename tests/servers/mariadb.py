"""Finds MariaDB, or starts the one that the system has installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import parse_qs, quote, urlsplit

import pymysql
import pymysql.cursors

from tests.servers.service import CONNECT_SECONDS, Kind, ServerMissingError, Service
from tests.workspace import is_abandoned_database

START_SECONDS = 30


@contextmanager
def mariadb() -> Iterator[Service]:
    """Yield a MariaDB server on which databases can be made.

    Raises:
        ServerMissingError: There is none, or not the one that is named.
    """
    with ExitStack() as stack:
        url, product, origin = MARIADB.locate(stack)
        _drop_abandoned(url)
        yield Service("database", product, url, origin, MARIADB.variables)


@contextmanager
def start_mariadb() -> Iterator[str]:
    """Start the system's MariaDB on a socket and in a folder of its own.

    Raises:
        ServerMissingError: It is not installed, or does not start.
    """
    install = shutil.which("mariadb-install-db") or shutil.which("mysql_install_db")
    server = shutil.which("mariadbd") or shutil.which("mysqld")
    if install is None or server is None:
        raise ServerMissingError(
            "MariaDB is not running here: install mariadb-server, or name a server in "
            f"{MARIADB.variables[0]}"
        )
    folder = Path(tempfile.mkdtemp(prefix="hitl-mariadb-"))
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        common = [f"--datadir={folder / 'data'}"]
        if os.geteuid() == 0:
            # It refuses to run as root, and its user has to get in.
            folder.chmod(0o755)
            shutil.chown(folder, "mysql")
            common.append("--user=mysql")
        prepare = [install, *common, "--auth-root-authentication-method=normal"]
        try:
            subprocess.run(prepare, check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError) as error:
            raise ServerMissingError(f"MariaDB does not start: {error}") from error
        socket = folder / "server.sock"
        common += ["--skip-networking", f"--socket={socket}"]
        process = subprocess.Popen(
            [server, "--no-defaults", *common],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        stack.callback(process.wait)
        stack.callback(process.terminate)
        url = f"mysql://root@localhost/?unix_socket={quote(str(socket))}"
        _wait_for(url, process)
        yield url


def _wait_for(url: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            _version(url)
        except pymysql.Error as error:
            if time.monotonic() > deadline or process.poll() is not None:
                raise ServerMissingError(f"MariaDB does not start: {error}") from error
            time.sleep(0.1)
        else:
            return


def _connect(url: str) -> pymysql.Connection[pymysql.cursors.Cursor]:
    parts = urlsplit(url)
    return pymysql.connect(
        host=parts.hostname or "127.0.0.1",
        port=parts.port or 3306,
        user=parts.username or "root",
        password=parts.password or "",
        unix_socket=parse_qs(parts.query).get("unix_socket", [None])[0],
        connect_timeout=CONNECT_SECONDS,
    )


def _version(url: str) -> str:
    with _connect(url) as connection:
        version = str(connection.get_server_info())
    product = "MariaDB" if "MariaDB" in version else "MySQL"
    return f"{product} {version.removeprefix('5.5.5-').partition('-')[0]}"


def _drop_abandoned(url: str) -> None:
    with _connect(url) as connection, connection.cursor() as cursor:
        cursor.execute("SHOW DATABASES")
        for (name,) in cursor.fetchall():
            if is_abandoned_database(name):
                cursor.execute(f"DROP DATABASE `{name}`")


MARIADB = Kind(
    variables=("HITL_TEST_MARIADB_URL",),
    schemes=("mariadb", "mysql"),
    local="mysql://root@127.0.0.1:3306/",
    version=_version,
    errors=(pymysql.Error,),
    start=start_mariadb,
)
