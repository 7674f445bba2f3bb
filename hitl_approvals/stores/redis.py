"""Interrupts in Redis or Valkey: one JSON value an interrupt, and an index of the ids.

Never `KEYS`, never `SCAN`: the index is a sorted set whose members are ordered as bytes,
so a literal prefix is a range of it. What changes two keys, or depends on what stands in
one, is a Lua script. In a cluster, put a hash tag into the prefix (`"{hitl}:"`).
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Generator
from dataclasses import replace
from typing import Any, TypeAlias
from uuid import uuid4

from hitl_approvals.exceptions import MissingExtra
from hitl_approvals.stores.base import (
    PENDING,
    TAKEN,
    InterruptRecord,
    Records,
    conflict,
)

_SAVE = """
local known = redis.call('GET', KEYS[1])
if known then return known end
redis.call('SET', KEYS[1], ARGV[1])
redis.call('ZADD', KEYS[2], 0, ARGV[2])
return false
"""
_SWAP = """
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2])
return 1
"""
_DELETE = """
redis.call('DEL', KEYS[1])
redis.call('ZREM', KEYS[2], ARGV[1])
return 1
"""

# A store that waits forever for its server holds up everybody's agent.
_TIMEOUTS = {"socket_timeout": 10, "socket_connect_timeout": 5}

Commands: TypeAlias = Generator[tuple[Any, ...], Any, Any]
"""The commands of one operation; it is sent what each of them returned."""


class RedisInterruptStore:
    """Interrupts in Redis; processes may share it.

    Args:
        url: Where Redis is; its driver is imported on first use.
        client: A connected client instead, sync or async; nothing is imported then.
        prefix: Stands before every key.

    Raises:
        TypeError: Neither or both of `url` and `client` were given.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        client: Any = None,
        prefix: str = "hitl_approvals:interrupts:",
    ) -> None:
        if (url is None) == (client is None):
            raise TypeError("RedisInterruptStore needs either url= or client=.")
        self._url = url
        self._client = client
        self._prefix = prefix
        self._index = f"{prefix}ids"

    def save(self, record: InterruptRecord) -> None:
        """Keep a new interrupt; the same id with the same content changes nothing.

        Raises:
            InterruptConflict: The id is in use for another request.
            PayloadRejected: Something in the request is not JSON.
            MissingExtra: The driver is not installed.
        """
        self._run(self._saving(record))

    def load(self, interrupt_id: str) -> InterruptRecord | None:
        """Return an interrupt that was not deleted, taken or not; else None."""
        return _read(self._run(self._loading(interrupt_id)))

    def take(
        self, interrupt_id: str, *, key: str | None = None
    ) -> InterruptRecord | None:
        """Claim an interrupt; None if it is not there or another key has it."""
        found: InterruptRecord | None = self._run(self._taking(interrupt_id, key))
        return found

    def release(self, interrupt_id: str, *, key: str) -> None:
        """Make an interrupt pending again if this key has it; else change nothing."""
        self._run(self._releasing(interrupt_id, key))

    def delete(self, interrupt_id: str) -> None:
        """Forget an interrupt; one that is not there is no error."""
        self._run(self._deleting(interrupt_id))

    def list(self, prefix: str = "") -> Records:
        """Return what was not deleted, ordered by id; the prefix is literal."""
        found: Records = self._run(self._listing(prefix))
        return found

    def schema(self) -> str:
        """Return nothing: there is no table to make."""
        return ""

    async def asave(self, record: InterruptRecord) -> None:
        """Do what `save` does, without blocking the event loop."""
        await self._arun(self._saving(record))

    async def aload(self, interrupt_id: str) -> InterruptRecord | None:
        """Do what `load` does, without blocking the event loop."""
        return _read(await self._arun(self._loading(interrupt_id)))

    async def atake(
        self, interrupt_id: str, *, key: str | None = None
    ) -> InterruptRecord | None:
        """Do what `take` does, without blocking the event loop."""
        found: InterruptRecord | None = await self._arun(
            self._taking(interrupt_id, key)
        )
        return found

    async def arelease(self, interrupt_id: str, *, key: str) -> None:
        """Do what `release` does, without blocking the event loop."""
        await self._arun(self._releasing(interrupt_id, key))

    async def adelete(self, interrupt_id: str) -> None:
        """Do what `delete` does, without blocking the event loop."""
        await self._arun(self._deleting(interrupt_id))

    async def alist(self, prefix: str = "") -> Records:
        """Do what `list` does, without blocking the event loop."""
        found: Records = await self._arun(self._listing(prefix))
        return found

    def _name(self, interrupt_id: str) -> str:
        return f"{self._prefix}record:{interrupt_id}"

    def _saving(self, record: InterruptRecord) -> Commands:
        name, text = self._name(record.interrupt_id), record.to_text()
        known = _read(
            (
                yield (
                    "eval",
                    _SAVE,
                    2,
                    name,
                    self._index,
                    text,
                    record.interrupt_id,
                )
            )
        )
        if known is not None and known.content != record.content:
            raise conflict(record.interrupt_id)

    def _loading(self, interrupt_id: str) -> Commands:
        return (yield ("get", self._name(interrupt_id)))

    def _taking(self, interrupt_id: str, key: str | None) -> Commands:
        # Made once: a swap whose answer got lost is repeated by the driver.
        mine = key or uuid4().hex
        name = self._name(interrupt_id)
        while True:
            text = yield ("get", name)
            record = _read(text)
            if record is None:
                return None
            if record.key is not None:
                return record if record.key == mine else None
            taken = replace(record, status=TAKEN, key=mine)
            if (yield ("eval", _SWAP, 1, name, text, taken.to_text())):
                return taken

    def _releasing(self, interrupt_id: str, key: str) -> Commands:
        name = self._name(interrupt_id)
        text = yield ("get", name)
        record = _read(text)
        if record is not None and record.key == key:
            free = replace(record, status=PENDING, key=None)
            # Only this key can change a taken record, so one try is enough.
            yield ("eval", _SWAP, 1, name, text, free.to_text())

    def _deleting(self, interrupt_id: str) -> Commands:
        name = self._name(interrupt_id)
        yield ("eval", _DELETE, 2, name, self._index, interrupt_id)

    def _listing(self, prefix: str) -> Commands:
        start = prefix.encode()
        # No byte of UTF-8 is 0xFF: everything that begins with the prefix is below.
        low, high = (b"[" + start, b"(" + start + b"\xff") if start else (b"-", b"+")
        ids = yield ("zrangebylex", self._index, low, high)
        if not ids:
            return []
        names = [
            self._name(one if isinstance(one, str) else one.decode()) for one in ids
        ]
        texts = yield ("mget", names)
        return [record for text in texts if (record := _read(text)) is not None]

    def _run(self, commands: Commands) -> Any:
        client = self._connected()
        if _is_async(client):
            commands.close()
            raise TypeError(
                "This store has an async client; use asave, aload, atake, adelete and "
                "alist, or give it a sync one."
            )
        answer = None
        try:
            while True:
                command, *arguments = commands.send(answer)
                answer = getattr(client, command)(*arguments)
        except StopIteration as done:
            return done.value

    async def _arun(self, commands: Commands) -> Any:
        client = self._connected()
        if not _is_async(client):
            return await asyncio.to_thread(self._run, commands)
        answer = None
        try:
            while True:
                command, *arguments = commands.send(answer)
                answer = await getattr(client, command)(*arguments)
        except StopIteration as done:
            return done.value

    def _connected(self) -> Any:
        if self._client is None:
            try:
                import redis
            except ImportError as error:
                raise MissingExtra(
                    "RedisInterruptStore(url=...) needs the Redis driver: "
                    'pip install "django-hitl-approvals[redis]"'
                ) from error
            # A sync client serves any thread and any event loop; an async one belongs
            # to the loop that first used it.
            self._client = redis.Redis.from_url(str(self._url), **_TIMEOUTS)
        return self._client


def _is_async(client: Any) -> bool:
    return any(
        inspect.iscoroutinefunction(getattr(client, name, None))
        for name in ("execute_command", "get")
    )


def _read(text: str | bytes | None) -> InterruptRecord | None:
    return None if text is None else InterruptRecord.from_text(text)
