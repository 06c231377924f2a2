"""The items of LangGraph's store, as entries of a searchable block."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from langgraph.store.base import GetOp, Item, ListNamespacesOp, Op, PutOp, Result, SearchItem, SearchOp

from .._http import gather_async
from .._items import (
    MOST_HITS,
    PAGE,
    Namespace,
    is_item,
    item_of,
    key_of,
    listed,
    metadata_of,
    namespace_of,
    newest_puts,
    passes,
    search_item_of,
    text_of,
    where_of,
)
from ..errors import BlockNotFoundError, ForbiddenError
from ..types import Entry
from .agent import AsyncSessionAgent


class AsyncItems:
    def __init__(self, agent: AsyncSessionAgent, label: str) -> None:
        self._agent = agent
        self._label = label

    async def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Runs operations: first the reads, then the writes."""
        operations = list(ops)
        results: list[Result] = [None] * len(operations)
        reads = [(n, op) for n, op in enumerate(operations) if not isinstance(op, PutOp)]
        found = await gather_async(*[self._read(op) for _, op in reads])
        for (n, _), result in zip(reads, found, strict=True):
            results[n] = result
        puts = newest_puts([op for op in operations if isinstance(op, PutOp)])
        # All of them are checked before one is written.
        written = [(op, "" if op.value is None else text_of(op.value), metadata_of(op)) for op in puts]
        await gather_async(*[self._put(op, text, named) for op, text, named in written])
        return results

    async def _read(self, op: Op) -> Result:
        try:
            if isinstance(op, GetOp):
                return await self._get(op)
            if isinstance(op, SearchOp):
                return await (self._find(op) if op.query else self._list(op))
            if isinstance(op, ListNamespacesOp):
                return await self._namespaces(op)
        except BlockNotFoundError:
            # Nothing was written yet.
            return None if isinstance(op, GetOp) else cast("list[SearchItem]", [])
        raise ValueError(f"The store knows no operation `{type(op).__name__}`.")

    async def _get(self, op: GetOp) -> Item | None:
        entry = await self._agent.get_entry(label=self._label, key=key_of(op.namespace, op.key))
        return item_of(entry) if entry is not None else None

    async def _find(self, op: SearchOp) -> list[SearchItem]:
        """The best hits of a query."""
        wanted = op.offset + op.limit
        if op.limit <= 0 or op.offset < 0:
            return []
        hits = await self._agent.search_context(
            label=self._label,
            query=op.query,
            limit=MOST_HITS if op.filter else max(1, min(MOST_HITS, wanted)),
            **where_of(op.namespace_prefix, indexed=True),
        )
        found = [hit for hit in hits["results"] if is_item(hit) and passes(op, hit)][op.offset : wanted]
        keys = [hit.get("key") or "" for hit in found]
        # A hit does not say when its entry was made.
        entries = await gather_async(*[self._agent.get_entry(label=self._label, key=key) for key in keys])
        return [
            search_item_of(entry, hit["score"])
            for entry, hit in zip(entries, found, strict=True)
            if entry is not None
        ]

    async def _list(self, op: SearchOp) -> list[SearchItem]:
        found: list[Entry] = []
        if op.limit <= 0 or op.offset < 0:
            return []
        async for entry in self._agent.entries(label=self._label, limit=PAGE, **where_of(op.namespace_prefix)):
            if is_item(entry) and passes(op, entry):
                found.append(entry)
            if len(found) >= op.offset + op.limit:
                break
        return [search_item_of(entry, None) for entry in found[op.offset :]]

    async def _namespaces(self, op: ListNamespacesOp) -> list[Namespace]:
        namespaces: set[Namespace] = set()
        async for entry in self._agent.entries(label=self._label, limit=PAGE):
            if is_item(entry):
                namespaces.add(namespace_of(entry))
        return listed(op, namespaces)

    async def _put(self, op: PutOp, text: str, named: dict[str, Any]) -> None:
        key = key_of(op.namespace, op.key)
        if op.value is None:
            try:
                await self._agent.delete_entry(label=self._label, key=key)
            except BlockNotFoundError:
                pass
            return
        fields: dict[str, Any] = {"label": self._label, "key": key, "content": text, "metadata": named}
        try:
            await self._set(fields)
        except BlockNotFoundError:
            await self._define()
            await self._set(fields)

    async def _set(self, fields: dict[str, Any]) -> None:
        """Writes as the agent, because a graph also stores the output of a model. A token that may not do so
        writes in its own name."""
        try:
            await self._agent.call("setEntry", {**fields, "source": "agent"})
        except ForbiddenError as error:
            if error.details.get("field") != "source":
                raise
            await self._agent.call("setEntry", fields)

    async def _define(self) -> None:
        await self._agent.define_block(
            label=self._label, kind="searchable", description="What a graph of LangGraph stores", model_writes=False
        )
