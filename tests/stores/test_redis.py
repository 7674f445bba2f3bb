"""The store in Redis keeps the contract, with a real server and other processes."""

from __future__ import annotations

import asyncio
import builtins
import os
import subprocess
import sys
from uuid import uuid4

import pytest
import redis
import redis.asyncio

from hitl_approvals.exceptions import MissingExtra
from hitl_approvals.stores.redis import RedisInterruptStore
from hitl_approvals.testing.interrupt_store_contract import InterruptStoreContract
from hitl_approvals.testing.interrupt_store_harness import a_record, ids_of
from tests.workspace import ROOT


class OnRedis(InterruptStoreContract):
    @pytest.fixture(autouse=True)
    def _server(self, redis_url):
        self.url = redis_url
        self.prefix = f"test {uuid4()}:"
        self.clients = []
        yield
        own = redis.Redis.from_url(redis_url)
        for name in own.scan_iter(match=f"{self.prefix}*"):
            own.delete(name)
        own.close()
        for client in self.clients:
            client.close()

    def client(self, **options):
        made = redis.Redis.from_url(self.url, **options)
        self.clients.append(made)
        return made

    def in_another_process(self):
        return (
            "from hitl_approvals.stores.redis import RedisInterruptStore\n"
            f"store = RedisInterruptStore({self.url!r}, prefix={self.prefix!r})\n"
        )


class TestByUrl(OnRedis):
    def make_store(self):
        store = RedisInterruptStore(self.url, prefix=self.prefix)
        self.clients.append(store._connected())
        return store


class TestWithAClientThatReadsBytes(OnRedis):
    def make_store(self):
        return RedisInterruptStore(client=self.client(), prefix=self.prefix)


class TestWithAClientThatReadsText(OnRedis):
    def make_store(self):
        client = self.client(decode_responses=True)
        return RedisInterruptStore(client=client, prefix=self.prefix)


class TestWithAnAsyncClient(OnRedis):
    def make_store(self):
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return RedisInterruptStore(client=self.client(), prefix=self.prefix)
        client = redis.asyncio.Redis.from_url(self.url)
        self.async_client = client
        return RedisInterruptStore(client=client, prefix=self.prefix)

    def run_async(self, play):
        async def whole():
            try:
                await play()
            finally:
                await self.async_client.aclose()

        asyncio.run(whole())

    def test_the_plain_verbs_say_that_it_is_async(self):
        async def play():
            store = self.make_store()
            for verb in (store.load, store.take, store.delete, store.list):
                with pytest.raises(TypeError, match="async client"):
                    verb("x")

        self.run_async(play)


class TestWhatRedisIsAsked(OnRedis):
    def make_store(self):
        return RedisInterruptStore(client=self.client(), prefix=self.prefix)

    def test_one_value_an_interrupt_and_one_index(self, store):
        records = [a_record(), a_record()]
        for record in records:
            store.save(record)
        client = self.client(decode_responses=True)

        names = set(client.scan_iter(match=f"{self.prefix}*"))

        ids = {record.interrupt_id for record in records}
        values = {f"{self.prefix}record:{one}" for one in ids}
        assert names == {*values, f"{self.prefix}ids"}
        assert set(client.zrange(f"{self.prefix}ids", 0, -1)) == ids
        for one in ids:
            store.delete(one)
        assert set(client.scan_iter(match=f"{self.prefix}*")) == set()

    def test_neither_keys_nor_scan_is_ever_asked(self, store):
        asked = []
        client = self.client()
        plain = client.execute_command

        def spy(*command, **options):
            asked.append(str(command[0]).upper())
            return plain(*command, **options)

        client.execute_command = spy
        store = RedisInterruptStore(client=client, prefix=self.prefix)
        record = a_record()

        store.save(record)
        store.load(record.interrupt_id)
        store.list()
        store.list("0")
        store.take(record.interrupt_id)
        store.delete(record.interrupt_id)

        assert set(asked) == {"EVAL", "GET", "ZRANGEBYLEX", "MGET"}

    def test_a_prefix_of_keys_is_literal_too(self):
        star = RedisInterruptStore(client=self.client(), prefix=f"{self.prefix}*")
        other = RedisInterruptStore(client=self.client(), prefix=f"{self.prefix}a")
        record = a_record()

        other.save(record)

        assert star.list() == []
        assert ids_of(other.list()) == {record.interrupt_id}

    def test_an_interrupt_that_redis_evicted_is_not_listed(self, store):
        kept, evicted = a_record(), a_record()
        store.save(kept)
        store.save(evicted)

        self.client().delete(f"{self.prefix}record:{evicted.interrupt_id}")

        assert ids_of(store.list()) == {kept.interrupt_id}
        assert store.take(evicted.interrupt_id) is None

    def test_there_is_nothing_to_migrate(self, store):
        assert store.schema() == ""

    def test_two_processes_take_at_once_and_one_gets_it(self, store):
        go = f"{self.prefix}go"
        program = self.in_another_process() + (
            "import redis\n"
            f"client = redis.Redis.from_url({self.url!r})\n"
            "store.list()\n"
            "while True:\n"
            f"    client.rpush({go!r} + ':ready', 1)\n"
            f"    wanted = client.blpop({go!r}, timeout=30)[1].decode()\n"
            "    if not wanted:\n"
            "        break\n"
            "    found = store.take(wanted)\n"
            "    told = 'none' if found is None else found.key\n"
            f"    client.rpush({go!r} + ':told', told)\n"
        )
        children = [
            subprocess.Popen([sys.executable, "-c", program], cwd=ROOT)
            for _ in range(3)
        ]
        client = self.client(decode_responses=True)

        def let_go(wanted):
            for _child in children:
                assert client.blpop(f"{go}:ready", timeout=30)
            client.rpush(go, *[wanted] * len(children))

        for _ in range(3):
            record = a_record()
            store.save(record)
            let_go(record.interrupt_id)

            told = [client.blpop(f"{go}:told", timeout=30)[1] for _ in children]

            assert told.count("none") == len(children) - 1
            taken = store.load(record.interrupt_id)
            assert taken is not None
            assert taken.key in told
        let_go("")
        assert [child.wait(60) for child in children] == [0, 0, 0]


def test_a_missing_driver_is_named_with_its_pip_line_on_first_use(monkeypatch):
    plain = builtins.__import__

    def absent(name, *arguments, **options):
        if name == "redis":
            raise ImportError("No module named 'redis'")
        return plain(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", absent)
    store = RedisInterruptStore("redis://127.0.0.1:1")

    with pytest.raises(
        MissingExtra, match=r'pip install "django-hitl-approvals\[redis\]"'
    ):
        store.load("x")


def test_passing_a_client_imports_no_driver():
    program = (
        "import sys\n"
        "from hitl_approvals import RedisInterruptStore\n"
        "class Client:\n"
        "    def get(self, name): return None\n"
        "store = RedisInterruptStore(client=Client())\n"
        "assert store.load('x') is None\n"
        "print('redis' in sys.modules)\n"
    )
    environment = {**os.environ}
    environment.pop("DJANGO_SETTINGS_MODULE", None)
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
    )

    assert done.stdout.strip() == "False", done.stderr


@pytest.mark.parametrize("given", [{}, {"url": "redis://x", "client": object()}])
def test_a_store_needs_a_url_or_a_client_and_not_both(given):
    with pytest.raises(TypeError, match="either url= or client="):
        RedisInterruptStore(**given)
