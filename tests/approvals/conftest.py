"""The stores that a gate and a resume have to work over."""

from __future__ import annotations

from uuid import uuid4

import pytest
import redis

from hitl_approvals import MemoryInterruptStore, RedisInterruptStore
from tests.support.fixtures import make_user  # noqa: F401  pytest finds it by name


@pytest.fixture
def redis_prefix(redis_url):
    prefix = f"test {uuid4()}:"
    yield prefix
    client = redis.Redis.from_url(redis_url)
    for name in client.scan_iter(match=f"{prefix}*"):
        client.delete(name)
    client.close()


@pytest.fixture
def redis_store(redis_url, redis_prefix):
    client = redis.Redis.from_url(redis_url)
    yield RedisInterruptStore(client=client, prefix=redis_prefix)
    client.close()


@pytest.fixture(params=["memory", "redis"])
def store(request):
    if request.param == "memory":
        return MemoryInterruptStore()
    return request.getfixturevalue("redis_store")
