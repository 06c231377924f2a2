"""LangGraph's threads in one agent.

A thread has a session for each checkpoint namespace, and one session more for pending writes. In a
namespace's session each checkpoint is an event. It follows its parent, and the values that it changed come
before it. The namespace's leaf is its newest checkpoint, so a writer that did not read the newest one is
refused. Pending writes have a session of their own, because an append moves the leaf.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from typing import Any, TypeAlias, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    get_checkpoint_metadata,
)
from langgraph.checkpoint.serde.base import SerializerProtocol

from .._http import gather_async
from .._layout import (
    CHECKPOINT,
    NAMESPACE,
    VALUE,
    WRITE,
    Stored,
    checkpoints_of,
    decode,
    encode,
    id_of,
    marker_of,
    value_id,
    writes_of,
)
from ..errors import AlreadyExistsError, MessageNotFoundError, SessionNotFoundError
from ..types import NewEvent, SessionEvent, UiMessage
from .agent import AsyncSessionAgent

PAGE = 50
COPIED = 200
DELETED = 200

Values: TypeAlias = dict[str, Any]


class AsyncThreads:
    def __init__(self, agent: AsyncSessionAgent, may_fork: bool) -> None:
        self._agent = agent
        self._may_fork = may_fork

    async def find(self, serde: SerializerProtocol, config: RunnableConfig) -> CheckpointTuple | None:
        thread, namespace, checkpoint_id = place_of(config)
        if thread is None:
            return None
        session = self._agent.session(checkpoints_of(thread, namespace))
        try:
            if checkpoint_id is not None:
                text = text_of(await session.get_message(message_id=id_of(checkpoint_id)))
            else:
                newest = await session.load_events(tail=True, limit=1, actions=[CHECKPOINT])
                text = newest[0]["content"] if newest else None
        except (SessionNotFoundError, MessageNotFoundError):
            return None
        if not text:
            return None
        return await self._tuple_of(serde, thread, namespace, json.loads(text), {})

    async def list(
        self,
        serde: SerializerProtocol,
        config: RunnableConfig | None,
        filter: Mapping[str, Any] | None,
        before: RunnableConfig | None,
        limit: int | None,
    ) -> AsyncGenerator[CheckpointTuple, None]:
        thread, namespace, checkpoint_id = place_of(config or {"configurable": {}})
        names_namespace = "checkpoint_ns" in (config or {}).get("configurable", {})
        earlier = before.get("configurable", {}).get("checkpoint_id") if before else None
        left = limit
        async for of_thread, of_namespace in self._places(thread):
            if names_namespace and of_namespace != namespace:
                continue
            # A value that several checkpoints share is read once.
            values: Values = {}
            async for stored in self._down(of_thread, of_namespace):
                if left is not None and left <= 0:
                    return
                if checkpoint_id is not None and stored["id"] != checkpoint_id:
                    continue
                if earlier and stored["id"] >= earlier:
                    continue
                metadata = decode(serde, stored["metadata"])
                if not all(metadata.get(name) == value for name, value in (filter or {}).items()):
                    continue
                yield await self._tuple_of(serde, of_thread, of_namespace, stored, values)
                left = None if left is None else left - 1

    async def put(
        self,
        serde: SerializerProtocol,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        thread = needed(config, "thread_id")
        _, namespace, parent = place_of(config)
        rest: dict[str, Any] = {**checkpoint}
        values: dict[str, Any] = rest.pop("channel_values", {})
        stored: Stored = {
            "id": checkpoint["id"],
            "checkpoint": encode(serde, rest),
            "metadata": encode(serde, get_checkpoint_metadata(config, metadata)),
            "channels": list(values),
        }
        if parent is not None:
            stored["parent"] = parent
        events: list[NewEvent] = [
            {"id": value_id(channel, version), "action": VALUE, "content": encode(serde, values[channel])}
            for channel, version in new_versions.items()
            if channel in values
        ]
        text = json.dumps(stored, ensure_ascii=False, separators=(",", ":"))
        events.append({"id": id_of(checkpoint["id"]), "action": CHECKPOINT, "content": text})
        parent_id = None if parent is None else id_of(parent)
        append: dict[str, Any] = {"events": events, "parentId": parent_id}
        # The first checkpoint has no parent to compare. A fork that the program requests is not a
        # stale write.
        if parent is not None and not self._may_fork and metadata.get("source") not in ("fork", "update"):
            append["expectedLeafId"] = parent_id
        await self._append(thread, namespace, append)
        return config_of(thread, namespace, checkpoint["id"])

    async def put_writes(
        self,
        serde: SerializerProtocol,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str,
    ) -> None:
        thread, checkpoint_id = needed(config, "thread_id"), needed(config, "checkpoint_id")
        _, namespace, _ = place_of(config)
        marker = marker_of(namespace, checkpoint_id)
        events: list[NewEvent] = []
        for n, (channel, value) in enumerate(writes):
            index = WRITES_IDX_MAP.get(channel, n)
            write = {"task": task_id, "path": task_path, "index": index, "channel": channel, "value": encode(serde, value)}
            events.append(
                {
                    "id": id_of(namespace, checkpoint_id, task_id, index),
                    "parentId": marker,
                    "action": WRITE,
                    "content": json.dumps(write, ensure_ascii=False, separators=(",", ":")),
                }
            )
        session = self._agent.session(writes_of(thread))
        first: NewEvent = {"id": marker, "parentId": None, "action": VALUE, "content": ""}
        try:
            outcome = await session.append_events(events=[first, *events])
        except SessionNotFoundError:
            await self._create(writes_of(thread), {"langgraph": "writes", "thread": thread})
            outcome = await session.append_events(events=[first, *events])
        # A task's writes stay. An error or an interrupt of a second try takes the first one's place.
        for appended, event, (channel, _) in zip(outcome["events"][1:], events, writes, strict=True):
            if not appended["inserted"] and channel in WRITES_IDX_MAP:
                parts = [{"type": "text", "text": event.get("content")}]
                await session.update_message(message={"id": event.get("id"), "role": "user", "parts": parts})

    async def delete(self, thread: str) -> None:
        async for of_thread, namespace in self._places(thread):
            await self._agent.delete_session(session_id=checkpoints_of(of_thread, namespace))
        # It names the others, so it goes last.
        await self._agent.delete_session(session_id=writes_of(thread))

    async def prune(self, threads: Sequence[str], strategy: str) -> None:
        for thread in threads:
            if strategy == "delete":
                await self.delete(thread)
                continue
            if strategy != "keep_latest":
                raise ValueError(f"A strategy is `keep_latest` or `delete`, not `{strategy}`.")
            async for of_thread, namespace in self._places(thread):
                cursor: str | None = None
                while True:
                    body: dict[str, Any] = {"retention": {"runsKept": 1}, "cursor": cursor}
                    if cursor is None:
                        del body["cursor"]
                    session = self._agent.session(checkpoints_of(of_thread, namespace))
                    cursor = (await session.call("applyRetention", body)).get("cursor")
                    if cursor is None:
                        break

    async def delete_for_runs(self, serde: SerializerProtocol, runs: Collection[str]) -> None:
        if not runs:
            return
        async for thread, namespace in self._places(None):
            gone: list[str] = []
            markers: list[str] = []
            kept: set[str] = set()
            async for stored in self._down(thread, namespace):
                versions = decode(serde, stored["checkpoint"]).get("channel_versions", {})
                values = [value_id(channel, versions.get(channel)) for channel in stored["channels"]]
                if decode(serde, stored["metadata"]).get("run_id") in runs:
                    gone += [id_of(stored["id"]), *values]
                    markers.append(marker_of(namespace, stored["id"]))
                else:
                    kept.update(values)
            await self._delete_events(checkpoints_of(thread, namespace), [id for id in gone if id not in kept])
            for marker in markers:
                writes = [message["id"] for message in await self._writes_messages(thread, marker)]
                await self._delete_events(writes_of(thread), [*writes, marker])

    async def copy(self, source: str, target: str) -> None:
        """An interrupted copy continues when it is repeated."""
        names = [namespace async for _, namespace in self._places(source)]
        if not names:
            return
        await self._create(writes_of(target), {"langgraph": "writes", "thread": target})
        await self._copy_events(writes_of(source), writes_of(target))
        for namespace in names:
            about = {"langgraph": "checkpoints", "thread": target, "namespace": namespace}
            await self._create(checkpoints_of(target, namespace), about)
            await self._copy_events(checkpoints_of(source, namespace), checkpoints_of(target, namespace))

    async def _copy_events(self, source: str, target: str) -> None:
        after = 0
        while True:
            page = await self._agent.session(source).load_events(after_seq=after, limit=COPIED)
            if not page:
                return
            after = page[-1]["seq"]
            events: list[NewEvent] = [
                {
                    "id": event["id"],
                    "parentId": event["parentId"],
                    "action": event["action"],
                    "content": event.get("content") or "",
                }
                for event in page
            ]
            await self._agent.session(target).append_events(events=events)

    async def _delete_events(self, session_id: str, ids: Sequence[str]) -> None:
        for at in range(0, len(ids), DELETED):
            await self._agent.delete_events(session_id=session_id, event_ids=ids[at : at + DELETED])

    async def _tuple_of(
        self, serde: SerializerProtocol, thread: str, namespace: str, stored: Stored, values: Values
    ) -> CheckpointTuple:
        checkpoint = decode(serde, stored["checkpoint"])
        versions = checkpoint.get("channel_versions", {})
        session = self._agent.session(checkpoints_of(thread, namespace))
        ids = {channel: value_id(channel, versions.get(channel)) for channel in stored["channels"]}
        missing = [id for id in dict.fromkeys(ids.values()) if id not in values]
        read = [session.get_message(message_id=id) for id in missing]
        for id, message in zip(missing, await gather_async(*read), strict=True):
            values[id] = text_of(message)
        texts = {channel: values[id] for channel, id in ids.items() if values[id] is not None}
        checkpoint["channel_values"] = {channel: decode(serde, text) for channel, text in texts.items()}
        parent = stored.get("parent")
        return CheckpointTuple(
            config=config_of(thread, namespace, stored["id"]),
            checkpoint=checkpoint,
            metadata=decode(serde, stored["metadata"]),
            parent_config=None if parent is None else config_of(thread, namespace, parent),
            pending_writes=await self._writes_at(serde, thread, namespace, stored["id"]),
        )

    async def _writes_messages(self, thread: str, marker: str) -> Sequence[UiMessage]:
        try:
            return (await self._agent.session(writes_of(thread)).get_branches(message_id=marker))["messages"]
        except (SessionNotFoundError, MessageNotFoundError):
            return []

    async def _writes_at(
        self, serde: SerializerProtocol, thread: str, namespace: str, checkpoint_id: str
    ) -> list[tuple[str, str, Any]]:
        """The pending writes of a checkpoint, in the order in which a superstep applies them."""
        messages = await self._writes_messages(thread, marker_of(namespace, checkpoint_id))
        writes = [json.loads(text_of(message) or "") for message in messages]
        writes.sort(key=lambda write: (write["path"], write["task"], write["index"]))
        return [(write["task"], write["channel"], decode(serde, write["value"])) for write in writes]

    async def _places(self, thread: str | None) -> AsyncGenerator[tuple[str, str], None]:
        """The namespaces of a thread, or of all threads."""
        threads: list[str] = [] if thread is None else [thread]
        if thread is None:
            async for session in self._agent.sessions(limit=500):
                about = session["metadata"] or {}
                if about.get("langgraph") == "writes":
                    threads.append(about["thread"])
        for one in threads:
            try:
                async for event in self._agent.session(writes_of(one)).events(actions=[NAMESPACE]):
                    if event["content"]:
                        yield one, json.loads(event["content"])
            except SessionNotFoundError:
                pass

    async def _down(self, thread: str, namespace: str) -> AsyncGenerator[Stored, None]:
        """The stored checkpoints of a namespace, from the newest to the oldest."""
        session = self._agent.session(checkpoints_of(thread, namespace))
        body: dict[str, Any] = {"tail": True, "limit": PAGE, "actions": [CHECKPOINT]}
        while True:
            try:
                page = cast("list[SessionEvent]", await session.call("loadEvents", body))
            except SessionNotFoundError:
                return
            if not page:
                return
            for event in reversed(page):
                yield json.loads(event.get("content") or "")
            body["beforeSeq"] = page[0]["seq"]

    async def _append(self, thread: str, namespace: str, append: Mapping[str, Any]) -> None:
        """Appends to a namespace, whose session is made when the first checkpoint comes."""
        session = self._agent.session(checkpoints_of(thread, namespace))
        try:
            await session.call("appendEvents", append)
            return
        except SessionNotFoundError:
            pass
        await self._create(writes_of(thread), {"langgraph": "writes", "thread": thread})
        # The thread knows its namespaces before there is anything in them.
        named: NewEvent = {
            "id": id_of("namespace", namespace),
            "parentId": None,
            "action": NAMESPACE,
            "content": json.dumps(namespace, ensure_ascii=False),
        }
        await self._agent.session(writes_of(thread)).append_events(events=[named])
        about = {"langgraph": "checkpoints", "thread": thread, "namespace": namespace}
        await self._create(checkpoints_of(thread, namespace), about)
        await session.call("appendEvents", append)

    async def _create(self, id: str, metadata: Mapping[str, Any]) -> None:
        """Creates a session, unless it is there."""
        try:
            await self._agent.create_session(id=id, metadata=metadata)
        except AlreadyExistsError:
            pass


def place_of(config: RunnableConfig) -> tuple[str | None, str, str | None]:
    """The thread, the namespace and the checkpoint that a config names."""
    named = config.get("configurable", {})
    thread, checkpoint_id = named.get("thread_id"), named.get("checkpoint_id")
    return None if thread is None else str(thread), named.get("checkpoint_ns") or "", checkpoint_id or None


def needed(config: RunnableConfig, field: str) -> str:
    """A field of a config that a write needs."""
    value = config.get("configurable", {}).get(field)
    if value is None:
        raise ValueError(f'The config has no `configurable.{field}`, as in {{"configurable": {{"{field}": "1"}}}}.')
    return str(value)


def config_of(thread: str, namespace: str, id: str) -> RunnableConfig:
    return {"configurable": {"thread_id": thread, "checkpoint_ns": namespace, "checkpoint_id": id}}


def text_of(message: UiMessage | None) -> str | None:
    return message["parts"][0].get("text") if message and message["parts"] else None
