"""A session of OpenAI's Agents SDK, stored in a session of an agent.

    pip install session-agent[openai-agents]

The items are the events of the default branch. An event represents the item, so that
search, chat, JavaScript and other frameworks can read it. If an event can't represent the item exactly, the
whole item is stored in its metadata.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast
from uuid import uuid4

try:
    from agents.memory.session import SessionABC
    from agents.memory.session_settings import SessionSettings
except ImportError as error:
    raise ImportError(
        "OpenAI's Agents SDK is not installed: `pip install session-agent[openai-agents]`."
    ) from error

from ._async.session import AsyncSessionClient
from ._both import waiting_session
from ._http import json_of
from ._sync.session import SessionClient
from ._turn import object_of
from .errors import AlreadyExistsError, LeafMovedError, SessionNotFoundError
from .types import NewEvent, SessionEvent

if TYPE_CHECKING:
    from agents.items import TResponseInputItem

__all__ = ["SessionAgentSession"]

PAGE = 200
# As often may items be removed while the history is read before a read gives up.
READS = 50

# The item as Python's package has it. JavaScript's keeps its own under `openaiItem`.
KEPT = "openaiResponsesItem"

Item = dict[str, Any]


class SessionAgentSession(SessionABC):
    """Keeps the history of OpenAI's Agents SDK in a session: `SessionAgentSession(agent.session("trip"))`.

    The session is created with the first item. `session_settings` are the SDK's, with the `limit` of the items
    that a run reads.
    """

    def __init__(
        self, session: AsyncSessionClient | SessionClient, *, session_settings: SessionSettings | None = None
    ) -> None:
        self._session = waiting_session(session)
        self.session_id = session.id
        self.session_settings = session_settings or SessionSettings()

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """The newest `limit` items, or all, from the oldest to the newest."""
        if limit is None and self.session_settings is not None:
            limit = self.session_settings.limit
        if limit is not None and limit <= 0:
            return []
        events, _ = await self._path(limit)
        items = [item for event in events for item in items_of(event)]
        return cast("list[TResponseInputItem]", items if limit is None else items[-limit:])

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Items are values of JSON. Anything else is refused before an item is written."""
        events = events_of(cast("list[Any]", items))
        for at in range(0, len(events), PAGE):
            await self._append(events[at : at + PAGE])

    async def pop_item(self) -> TResponseInputItem | None:
        """Takes the newest item out of the history."""
        while True:
            events, _ = await self._path(1)
            if not events:
                return None
            event = events[0]
            items = items_of(event)
            if len(items) > 1:
                # An event of another framework's: what it said besides stays.
                if await self._replace_end(event, items[:-1]):
                    return cast("TResponseInputItem", items[-1])
            elif (await self._session.delete_events(event_ids=[event["id"]]))["deleted"] > 0:
                return cast("TResponseInputItem", items[0])

    async def clear_session(self) -> None:
        try:
            await self._session.clear_messages()
        except SessionNotFoundError:
            pass

    async def _replace_end(self, event: SessionEvent, items: Sequence[Item]) -> bool:
        """Puts items in the place of the event that the branch ends with. `False`: somebody was faster."""
        events = events_of(items)
        try:
            await self._session.append_events(
                events=events, parent_id=event["parentId"], expected_leaf_id=event["id"]
            )
        except LeafMovedError:
            return False
        return True

    async def _path(self, count: int | None) -> tuple[list[SessionEvent], str | None]:
        """The events with the newest `count` items of the default branch, and where the branch ends."""
        for _ in range(READS):
            path = await self._read_path(count)
            if path is not None:
                return path
        raise LeafMovedError(
            "The history changed each time that it was read. Try again.", code="leaf_moved", operation="loadEvents"
        )

    async def _read_path(self, count: int | None) -> tuple[list[SessionEvent], str | None] | None:
        """`None`: an event of the branch was removed after the branch's end was read."""
        found: list[SessionEvent] = []
        try:
            leaf_id = (await self._session.build_working_context(limit=1))["leafId"]
        except SessionNotFoundError:
            return [], None
        wanted, items = leaf_id, 0
        body: dict[str, Any] = {"tail": True, "limit": PAGE}
        while wanted is not None and (count is None or items < count):
            page = cast("list[SessionEvent]", await self._session.call("loadEvents", body))
            # The branch continues upward, and the log does not.
            if not page:
                return None
            for event in reversed(page):
                # An event that is not on the way up belongs to another branch.
                if event["id"] != wanted or (count is not None and items >= count):
                    continue
                wanted = event["parentId"]
                more = len(items_of(event))
                items += more
                if more:
                    found.append(event)
            body["beforeSeq"] = page[0]["seq"]
        return found[::-1], leaf_id

    async def _append(self, events: Sequence[NewEvent]) -> None:
        try:
            await self._session.append_events(events=events)
            return
        except SessionNotFoundError:
            pass
        try:
            await self._session.create()
        except AlreadyExistsError:
            pass
        await self._session.append_events(events=events)


def events_of(items: Sequence[Any]) -> list[NewEvent]:
    """With ids, so that a call that broke off is repeated and nothing is written twice."""
    calls = [cast(Item, item) for item in items if isinstance(item, dict)]
    called = {call.get("call_id"): call["name"] for call in calls if call.get("name")}
    return [{**event_of(item, called), "id": str(uuid4())} for item in items]


def event_of(item: Any, called: Mapping[Any, Any]) -> NewEvent:
    """An item as an event, without an id. `called`: the tools that results are of."""
    copy: Any = json.loads(json_of(item))
    if not isinstance(copy, dict):
        raise TypeError("An item is a dict.")
    event = plain_event(cast(Item, copy), called)
    if plain_items(event) != [copy]:
        event["metadata"] = {KEPT: copy}
    return event


def items_of(event: SessionEvent) -> list[Item]:
    """The items of an event, also of one that chat, JavaScript or another framework wrote."""
    kept = (event.get("metadata") or {}).get(KEPT)
    return plain_items(cast(NewEvent, event)) if kept is None else [kept]


def plain_event(item: Item, called: Mapping[Any, Any]) -> NewEvent:
    kind, call_id = item.get("type"), item.get("call_id")
    if kind == "function_call" and call_id:
        call = {"id": str(call_id), "name": str(item.get("name")), "arguments": object_of(item.get("arguments"))}
        return cast(NewEvent, {"action": "tool_call_request", "content": "", "toolCalls": [call]})
    if kind == "function_call_output" and call_id:
        output: Any = item.get("output")
        content = text_of(output)
        content = json.dumps(output, ensure_ascii=False) if content is None else content
        name = str(called.get(call_id) or "function")
        return {"action": "tool_result", "content": content, "toolCallId": str(call_id), "toolName": name}
    content = text_of(item.get("content")) or ""
    role = item.get("role")
    if role == "user":
        return {"action": "user_message", "content": content}
    if role in ("system", "developer"):
        return {"action": "system_instruction", "content": content}
    # An item that is only for the model's own provider means nothing to others.
    return {"action": "agent_message", "content": content if role == "assistant" else ""}


def plain_items(event: NewEvent) -> list[Item]:
    action, content = event["action"], event.get("content") or ""
    if action == "user_message":
        return [{"role": "user", "content": content}]
    if action == "agent_message":
        return [{"role": "assistant", "content": content}] if content else []
    if action == "tool_call_request":
        calls: list[Item] = [
            {
                "type": "function_call",
                "call_id": call["id"],
                "name": call["name"],
                "arguments": json.dumps(call["arguments"], ensure_ascii=False, separators=(",", ":")),
            }
            for call in event.get("toolCalls") or []
        ]
        return [{"role": "assistant", "content": content}, *calls] if content else calls
    if action == "tool_result":
        return [{"type": "function_call_output", "call_id": event.get("toolCallId") or "", "output": content}]
    return [{"role": "system", "content": content}] if content else []


def text_of(content: Any) -> str | None:
    """The texts of a content, or `None`: it is none."""
    if isinstance(content, str):
        return content
    parts = cast("list[Any]", content) if isinstance(content, list) else [content]
    texts = [cast(Item, part)["text"] for part in parts if isinstance(part, dict) and isinstance(cast(Item, part).get("text"), str)]
    return "\n".join(texts) if texts else None
