"""How LangGraph's threads and items are named and written in an agent: the layout of `session-agent/langgraph`
for JavaScript, so that both languages can continue the same threads. No input or output."""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Callable
from typing import Any, NotRequired, TypedDict, cast

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from .types import Action

# Ids longer than this are hashed. The API takes 200 characters, counted as JavaScript counts.
LONGEST_ID = 200

# A message that is a user's or the system's stays one event. Neighboring answers of an assistant would
# read as one message.
CHECKPOINT: Action = "user_message"
WRITE: Action = "user_message"
VALUE: Action = "system_instruction"
NAMESPACE: Action = "system_instruction"


class Stored(TypedDict):
    """A checkpoint as stored in its event."""

    id: str
    parent: NotRequired[str]
    checkpoint: str
    metadata: str
    channels: list[str]


def id_of(*names: str | int | float | None) -> str:
    """One id of several names, which no other names give."""
    text = json.dumps(names, ensure_ascii=False, separators=(",", ":"))
    if len(text.encode("utf-16-le", "surrogatepass")) // 2 <= LONGEST_ID:
        return text
    return hashlib.sha256(text.encode()).hexdigest()


def checkpoints_of(thread: str, namespace: str) -> str:
    return id_of("checkpoints", thread, namespace)


def writes_of(thread: str) -> str:
    return id_of("writes", thread)


def marker_of(namespace: str, checkpoint_id: str) -> str:
    return id_of("at", namespace, checkpoint_id)


def value_id(channel: str, version: str | int | float | None) -> str:
    return id_of("value", channel, version)


def encode(serde: SerializerProtocol, value: Any) -> str:
    """The serializer's bytes as one text: their type, a colon, then JSON or base64."""
    kind, data = serde.dumps_typed(value)
    return f"{kind}:{data.decode() if kind == 'json' else base64.b64encode(data).decode()}"


def decode(serde: SerializerProtocol, text: str) -> Any:
    kind, _, data = text.partition(":")
    return serde.loads_typed((kind, data.encode() if kind == "json" else base64.b64decode(data)))


# Values.

DEEPEST = 64
LARGEST = 2**53 - 1

MESSAGES: dict[str, type[BaseMessage]] = {
    kind.__name__: kind
    for kind in (AIMessage, ChatMessage, FunctionMessage, HumanMessage, RemoveMessage, SystemMessage, ToolMessage)
}


class PortableSerializer(JsonPlusSerializer):
    """LangGraph's serializer, except for JSON values and messages: they are written as JSON like in
    LangGraph for JavaScript, and can be read by both. Anything else is msgpack, which only Python
    reads."""

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        try:
            plain = plain_of(obj, 0)
            text = json.dumps(plain, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
            return "json", text.encode()
        except (NotPlain, UnicodeEncodeError):
            return super().dumps_typed(obj)

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        if data[0] != "json":
            return super().loads_typed(data)
        return json.loads(data[1], object_hook=revived)


class NotPlain(Exception):
    """JSON would not give the value back as it was."""


def plain_of(value: Any, depth: int) -> Any:
    kind: Any = type(value)  # pyright: ignore[reportUnknownVariableType]
    if value is None or kind is bool or kind is str:
        return value
    if kind is int and abs(value) <= LARGEST or kind is float and math.isfinite(value):
        return value
    if depth < DEEPEST:
        if kind is list:
            return [plain_of(item, depth + 1) for item in cast("list[Any]", value)]
        if kind is dict:
            fields = cast("dict[Any, Any]", value)
            if "lc" not in fields and all(type(name) is str for name in fields):
                return {name: plain_of(item, depth + 1) for name, item in fields.items()}
        if MESSAGES.get(kind.__name__) is kind:
            return plain_message(value, depth)
    raise NotPlain


def plain_message(message: BaseMessage, depth: int) -> Any:
    kwargs: dict[str, Any] = {"content": plain_of(message.content, depth + 1)}
    for name, field in type(message).model_fields.items():
        value: Any = getattr(message, name)
        if name not in ("content", "type") and value != field.get_default(call_default_factory=True):
            kwargs[name] = plain_of(value, depth + 1)
    for name, value in (message.model_extra or {}).items():
        kwargs[name] = plain_of(value, depth + 1)
    # A message that would not come back as it was is not plain.
    if type(message)(**kwargs) != message:
        raise NotPlain
    return {"lc": 1, "type": "constructor", "id": ["langchain_core", "messages", type(message).__name__], "kwargs": kwargs}


BUILT: dict[str, Callable[[Any], Any]] = {
    "Set": lambda items: set(items),
    "Map": lambda pairs: dict(pairs),
    "Uint8Array": lambda numbers: bytes(numbers),
}


def revived(value: dict[str, Any]) -> Any:
    """The value of an `lc` object: messages, and the values that LangGraph for JavaScript writes this way. Any
    other is unchanged: reading stored data runs no code."""
    marked: Any = value.get("lc")
    if marked not in (1, 2):
        return value
    name = last_of(value.get("id"))
    if marked == 1:
        kind = MESSAGES.get(name)
        kwargs: Any = value.get("kwargs")
        if kind is None or value.get("type") != "constructor" or not isinstance(kwargs, dict):
            return value
        return made(kind, cast("dict[str, Any]", kwargs), value)
    if value.get("type") == "undefined":
        return None
    if value.get("type") == "delta_snapshot":
        return delta_of(value.get("value"))
    args: Any = value.get("args")
    try:
        return value if name not in BUILT else BUILT[name](args[0])
    except (TypeError, ValueError, LookupError):
        return value


def last_of(names: Any) -> str:
    return str(cast("list[Any]", names)[-1]) if isinstance(names, list) and names else ""


def made(kind: type[BaseMessage], kwargs: dict[str, Any], otherwise: Any) -> Any:
    fields = {name: value for name, value in kwargs.items() if name != "type" and value is not None}
    try:
        return kind(**fields)
    except (TypeError, ValueError):
        return otherwise


def delta_of(value: Any) -> Any:
    try:
        from langgraph.checkpoint.serde.types import _DeltaSnapshot  # pyright: ignore[reportPrivateUsage]
    except ImportError:
        return value
    return _DeltaSnapshot(value)
