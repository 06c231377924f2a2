"""LangGraph's checkpointer and its store over an agent.

    pip install session-agent[langgraph]
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal
from uuid import uuid4

try:
    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import (
        BaseCheckpointSaver,
        ChannelVersions,
        Checkpoint,
        CheckpointMetadata,
        CheckpointTuple,
    )
    from langgraph.checkpoint.serde.base import SerializerProtocol
    from langgraph.store.base import BaseStore, Op, Result
except ImportError as error:
    raise ImportError("LangGraph is not installed: `pip install session-agent[langgraph]`.") from error

from ._async.items import AsyncItems
from ._async.threads import AsyncThreads
from ._both import Agent, both
from ._layout import PortableSerializer
from ._sync.items import Items
from ._sync.threads import Threads

__all__ = ["PortableSerializer", "SessionAgentSaver", "SessionAgentStore"]

VERSION_DIGITS = 16


class SessionAgentSaver(BaseCheckpointSaver[str]):
    """Keeps LangGraph's threads in an agent. All threads of a saver are in one agent.

    `agent` may be a `SessionAgent` or an `AsyncSessionAgent`: the saver opens the other one for the methods
    of that kind. `stale_writers` is the treatment of a checkpoint whose parent is not the newest of its
    thread. "refuse": `put` raises `LeafMovedError`. "fork": the thread gets a second branch unseen, which is
    what most savers do. A fork that the program asks for, by `update_state` or by replaying a checkpoint, is
    always possible.
    """

    def __init__(
        self,
        agent: Agent,
        *,
        serde: SerializerProtocol | None = None,
        stale_writers: Literal["refuse", "fork"] = "refuse",
    ) -> None:
        super().__init__(serde=serde or PortableSerializer())
        blocking, waiting = both(agent)
        self._threads = Threads(blocking, stale_writers == "fork")
        self._async_threads = AsyncThreads(waiting, stale_writers == "fork")

    def get_next_version(self, current: str | int | None, channel: None) -> str:
        """Two branches of a thread never give two values the same version."""
        number = 0 if current is None else int(str(current).partition(".")[0])
        return f"{number + 1:0{VERSION_DIGITS}}.{uuid4().hex[:8]}"

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        return self._threads.find(self.serde, config)

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: Mapping[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        return self._threads.list(self.serde, config, filter, before, limit)

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        return self._threads.put(self.serde, config, checkpoint, metadata, new_versions)

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        self._threads.put_writes(self.serde, config, writes, task_id, task_path)

    def delete_thread(self, thread_id: str) -> None:
        self._threads.delete(str(thread_id))

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Deletes the checkpoints of these runs, their pending writes, and the values that no other uses.

        It reads all threads of the agent.
        """
        self._threads.delete_for_runs(self.serde, set(run_ids))

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        self._threads.copy(str(source_thread_id), str(target_thread_id))

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """`keep_latest` keeps the newest checkpoint of each namespace with the values that it uses, `delete`
        none. `keep_latest` needs the Worker's secret, and is not for graphs with a `DeltaChannel`."""
        self._threads.prune([str(thread) for thread in thread_ids], strategy)

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        return await self._async_threads.find(self.serde, config)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: Mapping[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        async for one in self._async_threads.list(self.serde, config, filter, before, limit):
            yield one

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        return await self._async_threads.put(self.serde, config, checkpoint, metadata, new_versions)

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        await self._async_threads.put_writes(self.serde, config, writes, task_id, task_path)

    async def adelete_thread(self, thread_id: str) -> None:
        await self._async_threads.delete(str(thread_id))

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        await self._async_threads.delete_for_runs(self.serde, set(run_ids))

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        await self._async_threads.copy(str(source_thread_id), str(target_thread_id))

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        await self._async_threads.prune([str(thread) for thread in thread_ids], strategy)


class SessionAgentStore(BaseStore):
    """LangGraph's store, in a searchable block of an agent: an item is an entry.

    A query matches the words of the value, and its meaning if the agent has `vectors`; items that don't
    match are left out. A block can have 10,000 entries of 64 KiB. There is no `ttl`, and `index` with a list of
    fields searches the whole value.
    """

    supports_ttl = False

    def __init__(self, agent: Agent, *, label: str = "langgraph") -> None:
        blocking, waiting = both(agent)
        self._items = Items(blocking, label)
        self._async_items = AsyncItems(waiting, label)

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        return self._items.batch(ops)

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        return await self._async_items.batch(ops)
