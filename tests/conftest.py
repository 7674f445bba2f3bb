"""What every test can use: a header that names the database, and a broker."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from django.conf import settings

from tests.servers.redis import redis_server
from tests.servers.service import ServerMissingError, in_ci


def pytest_report_header() -> list[str]:
    database = settings.DATABASES["default"]
    engine = database["ENGINE"].rpartition(".")[2]
    return [f"database: {engine}, {database['NAME']}"]


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    """A Redis database of this run's own; `make test` hands one over."""
    given = os.environ.get("HITL_TEST_REDIS_URL")
    if given:
        yield given
        return
    try:
        with redis_server() as service:
            yield service.url
    except ServerMissingError as error:
        if in_ci():
            raise
        pytest.skip(str(error))
