"""LangGraph's store over an agent, compared with LangGraph's in-memory store."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any

import pytest
from langgraph.store.base import GetOp, InvalidNamespaceError, ListNamespacesOp, MatchCondition, PutOp, SearchOp
from langgraph.store.memory import InMemoryStore
from session_agent import AsyncSessionAgent, PayloadTooLargeError, SessionAgent
from session_agent.langgraph import SessionAgentStore


def shown(result: Any) -> Any:
    """A result without its times, and items in an order of their own: no store promises one."""
    if isinstance(result, list):
        items: list[Any] = [shown(one) for one in result]
        return items if all(isinstance(one, tuple) and one[0] != "item" for one in items) else sorted(items, key=repr)
    return ("item", result.namespace, result.key, result.value) if hasattr(result, "namespace") else result


NAMESPACES = [("a",), ("a", "b"), ("a", "b", "c"), ("users", "ann"), ("users", "bob", "facts"), ("é", "😀 x"), ("a/b", '"', "\\")]
FILTERS: list[dict[str, Any] | None] = [
    None, {"n": 1}, {"n": {"$gt": 2}}, {"n": {"$gte": 1, "$lt": 4}}, {"n": {"$ne": 3}}, {"tag": {"$eq": "x"}}, {"deep": {"one": 1}}, {"list": [1, 2]}, {"none": None},
]


def a_value(chance: random.Random) -> dict[str, Any]:
    return {"n": chance.randint(0, 5), "tag": chance.choice(["x", "y", "\0😀\u2028"]), "deep": {"one": chance.randint(0, 1), "f": 0.5}, "list": [1, chance.randint(1, 3)], "none": None}


def an_operation(chance: random.Random) -> Any:
    namespace, key = chance.choice(NAMESPACES), chance.choice(["k", "key two", "../x", "é" * 300])
    kind = chance.randint(0, 9)
    if kind < 5:
        return PutOp(namespace, key, None if kind == 0 else a_value(chance))
    if kind < 7:
        return GetOp(namespace, key)
    if kind < 9:
        return SearchOp(namespace[: chance.randint(0, 2)], chance.choice(FILTERS), limit=100)
    depth = chance.choice([None, 1, 2])
    match = chance.choice([None, (MatchCondition("prefix", ("a", "*")),), (MatchCondition("suffix", ("ann",)),)])
    return ListNamespacesOp(match_conditions=match, max_depth=depth, limit=100)


def test_random_play_matches_the_in_memory_store(agent: SessionAgent) -> None:
    ours, theirs = SessionAgentStore(agent), InMemoryStore()
    chance = random.Random(11)
    for _ in range(60):
        ops = [an_operation(chance) for _ in range(chance.randint(1, 4))]
        # A namespace that lost its last item is still listed in memory.
        empty = {namespace for namespace, items in theirs._data.items() if not items}
        for namespace in empty:
            del theirs._data[namespace]
        assert [shown(one) for one in ours.batch(ops)] == [shown(one) for one in theirs.batch(ops)], ops


def test_items_have_timestamps_and_are_replaced_whole(agent: SessionAgent) -> None:
    store = SessionAgentStore(agent)
    assert store.get(("a",), "k") is None and store.search(("a",)) == [] and store.list_namespaces() == []
    store.delete(("a",), "k")
    store.put(("a",), "k", {"x": 1, "y": 2})
    first = store.get(("a",), "k")
    store.put(("a",), "k", {"z": 3})
    second = store.get(("a",), "k")
    assert first is not None and second is not None
    assert second.value == {"z": 3} and second.created_at == first.created_at <= first.updated_at <= second.updated_at
    assert second.created_at.tzinfo is not None
    store.delete(("a",), "k")
    assert store.get(("a",), "k") is None


def test_a_query_matches_words_within_a_namespace(agent: SessionAgent) -> None:
    store = SessionAgentStore(agent)
    for n, text in enumerate(["Ann likes green tea.", "Bob likes coffee.", "The tea is green."]):
        store.put(("users", "ann" if n != 1 else "bob"), f"k{n}", {"text": text, "n": n})
    store.put(("users", "ann"), "hidden", {"text": "tea"}, index=False)
    store.put(("other",), "k", {"text": "green tea"})
    found = store.search(("users",), query="tea")
    assert {item.key for item in found} == {"k0", "k2"} and all(item.score is not None for item in found)
    assert [item.key for item in store.search(("users",), query="tea", filter={"n": {"$gt": 1}})] == ["k2"]
    assert [item.key for item in store.search(("users", "bob"), query="coffee", limit=1)] == ["k1"]
    assert len(store.search(("users",), query="tea", limit=1, offset=1)) == 1
    assert len(store.search(("users",), limit=2)) == 2 and len(store.search(("users",), limit=2, offset=3)) == 1


def test_unsupported_features_are_refused(agent: SessionAgent) -> None:
    store = SessionAgentStore(agent)
    with pytest.raises(NotImplementedError):
        store.put(("a",), "k", {"x": 1}, ttl=5)
    with pytest.raises(InvalidNamespaceError):
        store.put(("a.b",), "k", {"x": 1})
    with pytest.raises(ValueError):
        store.put(("a" * 3000,), "k", {"x": 1})
    with pytest.raises((TypeError, ValueError)):
        store.put(("a",), "k", {"x": float("nan")})
    with pytest.raises(TypeError):
        store.batch([PutOp(("a",), "good", {"x": 1}), PutOp(("a",), "bad", {"x": object()})])
    assert store.search(("a",)) == []
    with pytest.raises(PayloadTooLargeError):
        store.put(("a",), "k", {"x": "y" * 70_000})


def test_async_methods_and_a_second_process(agent: SessionAgent, open_async: Callable[[], AsyncSessionAgent]) -> None:
    async def run() -> None:
        async with open_async() as other:
            store = SessionAgentStore(other)
            await asyncio.gather(*[store.aput(("a", str(n)), "k", {"n": n}) for n in range(30)])
            item = await store.aget(("a", "7"), "k")
            assert item is not None and item.value == {"n": 7}
            assert len(await store.asearch(("a",), limit=100)) == 30
            assert await store.alist_namespaces(prefix=("a",), max_depth=1) == [("a",)]
            await store.adelete(("a", "7"), "k")

    asyncio.run(run())
    store = SessionAgentStore(agent)
    assert len(store.search(("a",), limit=100)) == 29
    # The agent's own model may read what the graph stored, and not write it.
    block = agent.get_block(label="langgraph")
    assert block is not None and (block["kind"], block["modelWrites"]) == ("searchable", False)
