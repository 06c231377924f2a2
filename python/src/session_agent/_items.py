"""How the items of LangGraph's store are named, stored and filtered. Pure functions."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, cast

from langgraph.store.base import Item, ListNamespacesOp, MatchCondition, PutOp, SearchItem, SearchOp

from .types import Entry, EntryDetails, FoundEntry

# An entry's key has at most 512 bytes, and its metadata 4 KiB.
KEY_BYTES = 512
METADATA_BYTES = 4096

# A search by words reads this many of the best hits, and a page lists this many entries.
MOST_HITS = 100
PAGE = 200

Namespace = tuple[str, ...]


def key_of(namespace: Namespace, key: str) -> str:
    """One key of several names, which no other names give."""
    text = json.dumps([*namespace, key], separators=(",", ":"))
    if len(text) <= KEY_BYTES and "\\" not in text and "/" not in text:
        return text
    return hashlib.sha256(text.encode()).hexdigest()


def metadata_of(op: PutOp) -> dict[str, Any]:
    named: dict[str, Any] = {"namespace": list(op.namespace), "key": op.key, "indexed": op.index is not False}
    for n, label in enumerate(op.namespace):
        named[f"ns{n}"] = label
    if len(json.dumps(named, ensure_ascii=False).encode()) > METADATA_BYTES:
        raise ValueError("The namespace and the key of an item can have at most 2 KB in total.")
    return named


def where_of(prefix: Sequence[str], *, indexed: bool = False) -> dict[str, Any]:
    """The parameter `where` of what reads the items below a prefix, or nothing."""
    tests: dict[str, Any] = {f"ns{n}": label for n, label in enumerate(prefix)}
    if indexed:
        tests["indexed"] = True
    return {"where": {"metadata": tests}} if tests else {}


def text_of(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def is_item(entry: Entry | FoundEntry) -> bool:
    """Whether the store wrote an entry. Others in the block are none of its business."""
    return isinstance((entry.get("metadata") or {}).get("namespace"), list)


def item_of(entry: Entry | EntryDetails) -> Item:
    return Item(**fields_of(entry))


def search_item_of(entry: Entry | EntryDetails, score: float | None) -> SearchItem:
    return SearchItem(**fields_of(entry), score=score)


def fields_of(entry: Entry | EntryDetails) -> dict[str, Any]:
    named = cast("dict[str, Any]", entry.get("metadata"))
    return {
        "value": json.loads(entry["content"]),
        "key": named["key"],
        "namespace": tuple(named["namespace"]),
        "created_at": time_of(entry["createdAt"]),
        "updated_at": time_of(entry["updatedAt"]),
    }


def time_of(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)


def namespace_of(entry: Entry) -> Namespace:
    return tuple(cast("list[str]", (entry.get("metadata") or {})["namespace"]))


def passes(op: SearchOp, entry: Entry | FoundEntry) -> bool:
    value: Any = json.loads(entry["content"]) if op.filter else {}
    return all(compares(value.get(name), wanted) for name, wanted in (op.filter or {}).items())


OPERATORS = {"$eq", "$ne", "$gt", "$gte", "$lt", "$lte"}


def compares(value: Any, wanted: Any) -> bool:
    """As LangGraph's own stores compare."""
    if isinstance(wanted, dict):
        tests = cast("dict[str, Any]", wanted)
        if any(name.startswith("$") for name in tests):
            return all(applies(value, operator, than) for operator, than in tests.items())
        if not isinstance(value, dict):
            return False
        fields = cast("dict[str, Any]", value)
        return all(compares(fields.get(name), one) for name, one in tests.items())
    if isinstance(wanted, (list, tuple)):
        items = cast("Sequence[Any]", wanted)
        if not isinstance(value, list) or len(cast("list[Any]", value)) != len(items):
            return False
        return all(compares(one, other) for one, other in zip(cast("list[Any]", value), items, strict=True))
    return value == wanted


def applies(value: Any, operator: str, than: Any) -> bool:
    if operator not in OPERATORS:
        raise ValueError(f"Unsupported operator: {operator}")
    if operator in ("$eq", "$ne"):
        return (value == than) == (operator == "$eq")
    try:
        left, right = float(value), float(than)
    except (TypeError, ValueError):
        # A value that is not a number is neither more nor less than one.
        return False
    return {"$gt": left > right, "$gte": left >= right, "$lt": left < right, "$lte": left <= right}[operator]


def listed(op: ListNamespacesOp, namespaces: set[Namespace]) -> list[Namespace]:
    matching = [one for one in namespaces if all(matches(condition, one) for condition in op.match_conditions or ())]
    cut = matching if op.max_depth is None else {one[: op.max_depth] for one in matching}
    return sorted(cut)[op.offset : op.offset + op.limit]


def matches(condition: MatchCondition, namespace: Namespace) -> bool:
    path = cast("Sequence[str]", condition.path)
    if len(namespace) < len(path):
        return False
    if condition.match_type not in ("prefix", "suffix"):
        raise ValueError(f"Unsupported match type: {condition.match_type}")
    part = namespace[: len(path)] if condition.match_type == "prefix" else namespace[len(namespace) - len(path) :]
    return all(wanted in ("*", label) for label, wanted in zip(part, path, strict=True))


def newest_puts(ops: Sequence[PutOp]) -> list[PutOp]:
    """Of several writes of one item in a batch, the last one counts."""
    return list({(op.namespace, op.key): op for op in ops}.values())
