from __future__ import annotations

import socket
import subprocess
import sys

import pytest
import redis

from tests.servers.postgresql import POSTGRESQL, postgresql
from tests.servers.redis import MARKER, REDIS, redis_server, start_redis
from tests.servers.service import ServerUnreachableError, Service
from tests.workspace import checkout_name, run_name


@pytest.fixture
def valkey():
    with start_redis() as url:
        yield url


@pytest.fixture
def no_server_is_named(monkeypatch):
    for variable in POSTGRESQL.variables + REDIS.variables:
        monkeypatch.delenv(variable, raising=False)
    return monkeypatch


@pytest.fixture
def closed_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def connect(url: str, number: int) -> redis.Redis:
    return redis.Redis.from_url(f"{url}/{number}", decode_responses=True)


def test_a_named_server_that_does_not_answer_is_not_replaced(
    no_server_is_named, closed_port
):
    url = f"postgresql://postgres@127.0.0.1:{closed_port}/postgres"
    no_server_is_named.setenv("DATABASE_URL", url)

    with (
        pytest.raises(ServerUnreachableError, match="named by DATABASE_URL"),
        postgresql(),
    ):
        pass


def test_a_database_url_of_another_kind_names_no_postgresql():
    named = POSTGRESQL.named({"DATABASE_URL": "sqlite:///site.db"})

    assert named is None


def test_a_variable_of_our_own_with_another_kind_of_url_is_an_error():
    with pytest.raises(ServerUnreachableError, match="postgres or postgresql"):
        POSTGRESQL.named({"HITL_TEST_POSTGRES_URL": "sqlite:///site.db"})


def test_a_service_says_where_it_is_without_its_password():
    service = Service(
        "broker", "Redis 7.0.15", "redis://me:secret@cache:6379/9", "found", ()
    )

    assert str(service) == "broker: Redis 7.0.15 at cache:6379/9 (found)"


def test_a_redis_database_that_holds_something_is_left_alone(
    no_server_is_named, valkey
):
    no_server_is_named.setenv("REDIS_URL", f"{valkey}/0")
    with connect(valkey, 9) as client:
        client.set("somebody's", "value")

        with redis_server() as service:
            taken = service.url

        assert taken == f"{valkey}/10"
        assert client.keys() == ["somebody's"]


def test_a_redis_database_is_empty_after_the_run(no_server_is_named, valkey):
    no_server_is_named.setenv("REDIS_URL", valkey)
    with connect(valkey, 9) as client:
        with redis_server():
            client.set("a task", "queued")
            assert client.get(MARKER) == run_name()

        assert client.keys() == []


def test_two_runs_never_share_a_redis_database(no_server_is_named, valkey):
    no_server_is_named.setenv("REDIS_URL", valkey)

    with redis_server() as first, redis_server() as second:
        assert first.url != second.url


def test_a_redis_database_of_a_killed_run_is_taken_over(no_server_is_named, valkey):
    no_server_is_named.setenv("REDIS_URL", valkey)
    gone = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    with connect(valkey, 9) as client:
        client.set(MARKER, f"{checkout_name()}_{gone}")
        client.set("a task", "queued")

        with redis_server() as service:
            assert service.url == f"{valkey}/9"
            assert client.keys() == [MARKER]
