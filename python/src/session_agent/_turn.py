"""Converts the messages of a turn, in the formats of OpenAI and Anthropic or as plain messages, into events."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, TypeAlias, TypedDict, cast

from ._options import NOT_GIVEN

ModelFormat: TypeAlias = Literal["openai", "anthropic", "workers-ai"]

MessageLike: TypeAlias = "Mapping[str, Any] | Any"
"""A message of a turn: a mapping, or an object of a provider's package."""

# A turn's name has 32 hexadecimal digits, enough for any session.
NAME_DIGITS = 32

Json: TypeAlias = dict[str, Any]


class Place(TypedDict, total=False):
    """After which event a turn is written: as the branch's end, or as a branch of its own."""

    expectedLeafId: str | None
    parentId: str | None


def mapping_of(value: Any) -> Json:
    """A message as a dict. Objects of pydantic, which the providers' packages use, know how."""
    if isinstance(value, Mapping):
        return dict(cast(Mapping[str, Any], value))
    dump = getattr(value, "model_dump", None)
    if dump is None:
        raise TypeError(
            "A message is a mapping, or an object of the provider's package, "
            f"not an object of the type `{type(value).__name__}`."
        )
    return cast(Json, dump(mode="json", exclude_none=True))


def events_of(messages: Iterable[MessageLike]) -> list[Json]:
    """The messages as events, in their order and without ids."""
    events: list[Json] = []
    names: dict[str, str] = {}
    for given in messages:
        message = mapping_of(given)
        for event in events_of_message(message, names):
            for call in event.get("toolCalls", []):
                names[call["id"]] = call["name"]
            events.append(event)
    return events


def events_of_message(message: Json, names: Mapping[str, str]) -> list[Json]:
    role, content = message.get("role"), message.get("content")
    if role == "assistant":
        requested = cast("list[Any]", message.get("tool_calls") or message.get("toolCalls") or [])
        calls = [call_of(call) for call in requested]
        if isinstance(content, list):
            calls += [call_of(part) for part in parts_of(content) if part.get("type") == "tool_use"]
        text = text_of(content, {"tool_use", "thinking", "redacted_thinking", "reasoning", "refusal"})
        if calls:
            return [{"action": "tool_call_request", "content": text, "toolCalls": calls}]
        return [{"action": "agent_message", "content": text}] if text else []
    if role == "tool":
        call_id = str(message.get("tool_call_id") or message.get("toolCallId") or "")
        failed = bool(message.get("isError"))
        name = message.get("toolName") or message.get("name")
        return [result_of(call_id, name, text_of(content, set()), failed, names)]
    if role == "user":
        results = [part for part in parts_of(content) if part.get("type") == "tool_result"]
        events = [
            result_of(
                str(part.get("tool_use_id")), None, text_of(part.get("content"), set()), bool(part.get("is_error")), names
            )
            for part in results
        ]
        text = text_of(content, {"tool_result"})
        return [*events, {"action": "user_message", "content": text}] if text or not events else events
    if role in ("system", "developer"):
        return [{"action": "system_instruction", "content": text_of(content, set())}]
    raise TypeError(f"A message's role is user, assistant, tool or system, not `{role}`.")


def parts_of(content: Any) -> list[Json]:
    return [mapping_of(part) for part in cast("list[Any]", content)] if isinstance(content, list) else []


def text_of(content: Any, others: set[str]) -> str:
    """The texts of a content. `others` are parts that are read elsewhere, or are not stored."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    texts: list[str] = []
    for part in parts_of(content):
        kind = part.get("type")
        if isinstance(part.get("text"), str) and kind not in others:
            texts.append(part["text"])
        elif kind not in others:
            raise TypeError(
                f"`persist` writes texts, calls of tools and their results. Write a message with a part of the "
                f"type `{kind}` with `append_message`."
            )
    return "\n".join(texts)


def call_of(call: Any) -> Json:
    fields = mapping_of(call)
    function = mapping_of(fields["function"]) if fields.get("function") is not None else fields
    given: Any = function.get("arguments", function.get("input"))
    return {"id": str(fields.get("id")), "name": str(function.get("name")), "arguments": object_of(given)}


def object_of(given: Any) -> Json:
    """A model that writes broken arguments gets them back as they were."""
    value = given
    if isinstance(given, str):
        try:
            value = json.loads(given)
        except ValueError:
            return {"input": given}
    return dict(cast(Mapping[str, Any], value)) if isinstance(value, Mapping) else {"input": given}


def result_of(call_id: str, name: Any, content: str, failed: bool, names: Mapping[str, str]) -> Json:
    event: Json = {"action": "tool_result", "content": content, "toolCallId": call_id}
    named = name or names.get(call_id)
    if named:
        event["toolName"] = str(named)
    if failed:
        event["isError"] = True
    return event


def name_events(events: Sequence[Json], place: Place) -> str:
    """Gives the events ids that a repetition gives again, and no other turn. Answers the turn's name."""
    after = place.get("parentId", place.get("expectedLeafId"))
    key = json.dumps([after, list(events)], ensure_ascii=True, separators=(",", ":"))
    name = f"turn-{hashlib.sha256(key.encode()).hexdigest()[:NAME_DIGITS]}"
    for n, event in enumerate(events):
        event["id"] = f"{name}-{n + 1}"
    return name


def usage_of(usage: Any, estimate: int | None) -> Json | None:
    """What a turn spent, in the words of `addUsage`. Later steps send more than the first, and are taken
    to be estimated as well as it. `None`: nobody counted."""
    steps = [mapping_of(step) for step in (cast("list[Any]", usage) if isinstance(usage, (list, tuple)) else [usage])]
    counted = [counted_of(step) for step in steps]
    spent: Json = {
        field: sum(step[field] for step in counted) for field in ("inputTokens", "outputTokens", "cachedInputTokens")
    }
    if spent["inputTokens"] + spent["outputTokens"] == 0:
        return None
    first = counted[0]["inputTokens"]
    if estimate and first > 0:
        spent["contextTokens"] = round(estimate * spent["inputTokens"] / first)
    return spent


def counted_of(usage: Json) -> dict[str, int]:
    """The tokens of one step, as OpenAI, Anthropic or `addUsage` count them."""

    def number(*names: str) -> int:
        return next((int(usage[name]) for name in names if isinstance(usage.get(name), (int, float))), 0)

    details: Any = usage.get("prompt_tokens_details") or usage.get("input_tokens_details")
    cached = number("cachedInputTokens", "cache_read_input_tokens")
    if not cached and details:
        cached = int(mapping_of(details).get("cached_tokens") or 0)
    read = number("inputTokens", "prompt_tokens", "input_tokens")
    # Anthropic counts what its cache gave or took apart.
    apart = number("cache_read_input_tokens") + number("cache_creation_input_tokens")
    return {
        "inputTokens": read + apart,
        "outputTokens": number("outputTokens", "completion_tokens", "output_tokens"),
        "cachedInputTokens": cached,
    }


def place_of(leaf_id: str | None, chosen: Any) -> Place:
    """A turn after an older message is a branch, and no other write is in its way."""
    return {"expectedLeafId": leaf_id} if chosen is NOT_GIVEN else {"parentId": cast(str, chosen)}
