"""`DjangoCheckpointSaver`: LangGraph's checkpointer on Django's connections."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from typing import Any

from asgiref.sync import sync_to_async
from django.apps import apps
from django.db import router
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    get_checkpoint_id,
)
from langgraph.checkpoint.serde.base import SerializerProtocol

from hitl_approvals.checkpoints import models, pruning, rows, translating
from hitl_approvals.checkpoints.keys import key_of
from hitl_approvals.checkpoints.lending import connection_of
from hitl_approvals.checkpoints.running import VERBS, OneRun, Put, PutWrites
from hitl_approvals.checkpoints.strict import StrictSerializer
from hitl_approvals.exceptions import HitlConfigurationError

APP = "hitl_approvals.checkpoints"
PAGE = 100
"""How many checkpoints are read at a time."""


class DjangoCheckpointSaver(BaseCheckpointSaver[str]):
    """Keeps the checkpoints of LangGraph threads in the site's database.

    The synchronous methods may be called on any thread, and leave no connection open on
    a thread that had none. The asynchronous ones use the connection of the code that
    waits for them: under `async_to_sync` they are part of its transaction.

    Args:
        using: The database; by default the one that the routers write checkpoints to.
        allow: Classes of yours that the graph's state may hold.
        serde: Another serializer, such as LangGraph's encrypting one round a
            `StrictSerializer`; `allow` is said there then.

    Raises:
        HitlConfigurationError: The app is not installed, or both `allow` and `serde`
            are given.
    """

    def __init__(
        self,
        using: str | None = None,
        *,
        allow: Iterable[type | tuple[str, str]] = (),
        serde: SerializerProtocol | None = None,
    ) -> None:
        if not apps.is_installed(APP):
            raise HitlConfigurationError(
                f'Add "{APP}" to INSTALLED_APPS and migrate: checkpoints have tables.'
            )
        allow = tuple(allow)
        if serde is not None and allow:
            raise HitlConfigurationError(
                "`allow` is for the saver's own serializer: give it to the one in "
                "`serde` instead."
            )
        super().__init__(serde=serde or StrictSerializer(allow=allow))
        self._using = using

    @property
    def using(self) -> str:
        """The database. Checkpoints are read there too: a replica may lag behind."""
        return self._using or router.db_for_write(models.Checkpoint)

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return the checkpoint that a config names, or the latest of its thread.

        Raises:
            CheckpointTooNew: A newer LangGraph wrote it.
            TypeNotAllowed: It holds a type that is not allowed.
        """
        return self.read(config)()

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002  LangGraph's name
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Yield checkpoints, newest first; of all threads if no config says which.

        Raises:
            CheckpointTooNew: A newer LangGraph wrote one of them.
            TypeNotAllowed: One holds a type that is not allowed.
        """
        for page in self._pages(config, filter, before, limit):
            yield from page

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Save a checkpoint and the values that are new with it; return its config.

        Raises:
            TypeNotAllowed: A value has a type that is not allowed; nothing is saved.
        """
        return self.put_step([Put(config, checkpoint, metadata, new_versions)])

    def put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Save what a task wrote after a checkpoint.

        An error, an interrupt or an answer replaces the one before; a task that ran
        again and wrote anything else does not change what it wrote first.

        Raises:
            TypeNotAllowed: A value has a type that is not allowed; nothing is saved.
        """
        alias = self.using
        made, replace = translating.as_writes(
            self.serde, config, writes, task_id, task_path
        )
        with connection_of(alias) as connection:
            rows.save_writes(connection, made, replace=replace)

    def delete_thread(self, thread_id: str) -> None:
        """Delete everything of a thread, in one transaction."""
        self.prune([thread_id], strategy="delete")

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete the checkpoints that some runs saved, and what belongs to them alone.

        Raises:
            NotImplementedError: One of their threads uses a `DeltaChannel`, whose later
                values are rebuilt from them; nothing is deleted.
        """
        alias = self.using
        with connection_of(alias):
            pruning.delete_runs(alias, [key_of(str(one)) for one in run_ids])

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy everything of a thread to another one, in one transaction.

        Raises:
            ValueError: The other thread has checkpoints already.
        """
        alias = self.using
        with connection_of(alias):
            pruning.copy_thread(alias, str(source_thread_id), str(target_thread_id))

    def prune(
        self, thread_ids: Sequence[str], *, strategy: str = "keep_latest"
    ) -> None:
        """Delete threads, or all but the latest checkpoint of each of their namespaces.

        A subgraph's call goes with the checkpoint that it was called from. Each thread
        is pruned in a transaction of its own; a run may go on meanwhile, but not fork
        from a checkpoint that is being deleted.

        Raises:
            TypeError: `thread_ids` is a single text.
            ValueError: There is no such strategy.
            NotImplementedError: A thread uses a `DeltaChannel`, whose latest value is
                rebuilt from older checkpoints; nothing is pruned.
        """
        if isinstance(thread_ids, str):
            raise TypeError("thread_ids must be a sequence of thread ids, not a str")
        if strategy not in {"keep_latest", "delete"}:
            raise ValueError(f"there is no strategy {strategy!r}")
        alias = self.using
        keys = [key_of(str(one)) for one in thread_ids]
        with connection_of(alias):
            if strategy == "delete":
                pruning.delete_threads(alias, keys)
            else:
                pruning.keep_latest(alias, keys)

    def one_run(self) -> OneRun:
        """Return this saver for one run of a graph: its verbs take fewer statements."""
        return OneRun(self, joins=_has_own_verbs_only(self))

    def read(self, config: RunnableConfig) -> Callable[[], CheckpointTuple | None]:
        """Read what `get_tuple` returns; each call of the result makes it anew.

        Raises:
            CheckpointTooNew: A newer LangGraph wrote it.
        """
        alias, place = self.using, translating.place_of(config)
        with connection_of(alias):
            row = rows.read_checkpoint(alias, place, get_checkpoint_id(config) or None)
            if row is None:
                return lambda: None
            found = translating.unpacked(self.serde, row)
            values = rows.read_values(alias, place, sorted(found.slots))
            writes = rows.read_writes(alias, place, [row.checkpoint_id])

        fresh = [found]

        def made() -> CheckpointTuple:
            one = fresh.pop() if fresh else translating.unpacked(self.serde, row)
            pending = writes.get(row.checkpoint_id, ())
            return translating.as_tuple(self.serde, one, values, pending)

        return made

    def put_step(
        self, puts: Sequence[Put], writes: Iterable[PutWrites] = ()
    ) -> RunnableConfig:
        """Do as `put` and `put_writes`, all or nothing; return the last put's config.

        The puts are of one thread. The writes are those of tasks, none of them an
        error, an interrupt or an answer.

        Raises:
            TypeNotAllowed: A value has a type that is not allowed; nothing is saved.
        """
        alias = self.using
        saved = [translating.as_rows(self.serde, *put) for put in puts]
        written = [translating.as_writes(self.serde, *one)[0] for one in writes]
        *before, row = [row for row, _ in saved]
        with connection_of(alias) as connection:
            rows.save_checkpoint(
                connection,
                row,
                [value for _, values in saved for value in values],
                [write for some in written for write in some],
                before=before,
            )
        return translating.config_of(
            puts[-1].config["configurable"]["thread_id"],
            row.checkpoint_ns,
            row.checkpoint_id,
        )

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Do as `get_tuple`, on the connection of whoever waits."""
        return await sync_to_async(self.get_tuple)(config)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002  LangGraph's name
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """Do as `list`, on the connection of whoever waits."""
        pages = self._pages(config, filter, before, limit)

        def turned() -> Sequence[CheckpointTuple] | None:
            return next(pages, None)

        while (page := await sync_to_async(turned)()) is not None:
            for found in page:
                yield found

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Do as `put`, on the connection of whoever waits."""
        return await sync_to_async(self.put)(config, checkpoint, metadata, new_versions)

    async def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Do as `put_writes`, on the connection of whoever waits."""
        await sync_to_async(self.put_writes)(config, writes, task_id, task_path)

    async def adelete_thread(self, thread_id: str) -> None:
        """Do as `delete_thread`, on the connection of whoever waits."""
        await sync_to_async(self.delete_thread)(thread_id)

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Do as `delete_for_runs`, on the connection of whoever waits."""
        await sync_to_async(self.delete_for_runs)(run_ids)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Do as `copy_thread`, on the connection of whoever waits."""
        await sync_to_async(self.copy_thread)(source_thread_id, target_thread_id)

    async def aprune(
        self, thread_ids: Sequence[str], *, strategy: str = "keep_latest"
    ) -> None:
        """Do as `prune`, on the connection of whoever waits."""
        await sync_to_async(self.prune)(thread_ids, strategy=strategy)

    def get_next_version(self, current: str | None, channel: None) -> str:
        """Return a version above this one, as LangGraph's own savers number them."""
        number = 0 if current is None else int(str(current).partition(".")[0])
        # Two branches that come to the same number hold different values under it.
        return f"{number + 1:032}.{random.getrandbits(64):016x}"

    def _pages(
        self,
        config: RunnableConfig | None,
        wanted: dict[str, Any] | None,
        before: RunnableConfig | None,
        limit: int | None,
    ) -> Iterator[Sequence[CheckpointTuple]]:
        """Yield checkpoints a page at a time; no connection is held between two."""
        wanted = wanted or {}
        alias, where = self.using, translating.where_of(config)
        bound = get_checkpoint_id(before) if before else None
        after: rows.Stored | None = None
        while limit is None or limit > 0:
            size = PAGE if limit is None or wanted else min(limit, PAGE)
            with connection_of(alias):
                found = rows.read_page(
                    alias, where, after=after, before=bound, size=size
                )
                fitting = [
                    one
                    for one in (translating.unpacked(self.serde, row) for row in found)
                    if all(one.metadata.get(key) == wanted[key] for key in wanted)
                ]
                page = self._tuples_of(alias, fitting[:limit])
            yield page
            if len(found) < size:
                return
            limit = None if limit is None else limit - len(page)
            after = found[-1]

    def _tuples_of(
        self, alias: str, found: Sequence[translating.Unpacked]
    ) -> Sequence[CheckpointTuple]:
        """Add to checkpoints what is stored apart, with two questions a namespace."""
        groups: dict[rows.Place, list[translating.Unpacked]] = {}
        for one in found:
            groups.setdefault(one.row.place, []).append(one)
        values, writes = {}, {}
        for place, group in groups.items():
            slots = {slot for one in group for slot in one.slots}
            values[place] = rows.read_values(alias, place, sorted(slots))
            ids = [one.row.checkpoint_id for one in group]
            writes[place] = rows.read_writes(alias, place, ids)
        return [
            translating.as_tuple(
                self.serde,
                one,
                values[one.row.place],
                writes[one.row.place].get(one.row.checkpoint_id, ()),
            )
            for one in found
        ]


def _has_own_verbs_only(saver: DjangoCheckpointSaver) -> bool:
    """Tell whether a saver does all by the verbs of its class, and they are ours."""
    return not any(
        verb in vars(saver)
        or getattr(type(saver), verb) is not getattr(DjangoCheckpointSaver, verb)
        for verb in VERBS
    )
