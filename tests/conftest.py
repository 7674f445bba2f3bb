"""What every test can use: a header that names the database, and a broker."""

from __future__ import annotations

import gc
import os
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any

import pytest
from django.conf import settings

from tests.servers.redis import redis_server
from tests.servers.service import ServerMissingError, ServerUnreachableError, in_ci

if TYPE_CHECKING:
    from celery import Celery

_DATABASE = {"db", "transactional_db", "live_server", "client", "admin_client"}


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """Assert the invariants after the test's own body, while its rows are there."""
    result = yield
    marked = pyfuncitem.get_closest_marker("django_db") is not None
    excused = pyfuncitem.get_closest_marker("breaks_invariants") is not None
    if (marked or _DATABASE & set(pyfuncitem.fixturenames)) and not excused:
        from tests.invariants import assert_invariants

        # Reading it all once more says nothing new, and takes a tenth of the time.
        assert_invariants(verified=False)
    return result


def pytest_configure() -> None:
    from tests import emptying

    emptying.install()


def pytest_collection_finish() -> None:
    """Keep the collector from all that stays: thousands of tests, and what they import."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


def pytest_report_header() -> list[str]:
    database = settings.DATABASES["default"]
    # Empty where a site keeps everything in a database of another name.
    engine = database.get("ENGINE", "none").rpartition(".")[2]
    return [f"database: {engine}, {database.get('NAME', '')}"]


@pytest.fixture
def celery_app(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Celery]:
    """A site's Celery app, current for one test; its broker is the test's to name."""
    from celery import Celery, _state

    # Celery prefers this to the app's own setting, and `make test` names its broker so.
    monkeypatch.delenv("CELERY_BROKER_URL", raising=False)
    before, default = _state._tls.current_app, _state.default_app
    settings.HITL_APPROVALS = {"DISPATCHER": "celery"}
    made = Celery("site", set_as_current=True)
    yield made
    _state._set_current_app(before)
    _state.set_default_app(default)
    made.close()


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
        if in_ci() or isinstance(error, ServerUnreachableError):
            raise
        pytest.skip(str(error))
