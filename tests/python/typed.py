"""What a caller's editor infers about the client: pyright checks this file in strict mode;
it is never run."""

from __future__ import annotations

from typing import assert_type

from session_agent import AsyncSessionAgent, ChatChunk, InvalidRequestError, SessionAgent
from session_agent.types import Entry, NewEvent, Session, SessionEvent, UiMessage


def blocking(agent: SessionAgent) -> None:
    assert_type(agent.create_session(name="x"), Session)
    assert_type(agent.session("s").get_message(message_id="m"), UiMessage | None)
    event: NewEvent = {"action": "user_message", "content": "Hi"}
    agent.session("s").append_events(events=[event, {"action": "agent_message", "content": "Hi", "metadata": {"a": 1}}])
    for one in agent.session("s").events(limit=10):
        assert_type(one, SessionEvent)
    for entry in agent.entries(label="kb"):
        assert_type(entry, Entry)
    for chunk in agent.session("s").chat("Hi"):
        assert_type(chunk, ChatChunk)
        if chunk["type"] == "text-delta":
            assert_type(chunk["delta"], str)
    try:
        agent.get_stats(timeout=1.0)
    except InvalidRequestError as error:
        assert_type(error.field, str | None)


def wrong(agent: SessionAgent) -> None:
    agent.session("s").append_events(events=[{"action": "nobody", "content": "Hi"}])  # pyright: ignore[reportArgumentType]
    agent.create_session(nam="x")  # pyright: ignore[reportCallIssue]
    agent.get_session()  # pyright: ignore[reportCallIssue]
    agent.get_session(session_id=None)  # pyright: ignore[reportArgumentType]


async def later(agent: AsyncSessionAgent) -> None:
    assert_type(await agent.create_session(name="x"), Session)
    async for message in agent.session("s").history():
        assert_type(message, UiMessage)
    assert_type([piece async for piece in agent.export_agent()], list[bytes])
