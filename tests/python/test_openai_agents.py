"""The session of OpenAI's Agents SDK over an agent, compared with the SDK's SQLite
session, with the SDK's runner and scripted model."""

from __future__ import annotations

import asyncio
import inspect
import json
import random
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from agents import Agent, RunConfig, Runner, SQLiteSession, function_tool, set_tracing_disabled
from agents.memory import Session
from agents.memory.session_settings import SessionSettings
from agents.testing import ScriptedModel, assistant_message, function_call
from session_agent import AsyncSessionAgent, SessionAgent
from session_agent.openai_agents import SessionAgentSession

from conftest import javascript

set_tracing_disabled(True)

ITEMS: list[Any] = [
    {"role": "user", "content": "Hi \0😀\u2028"},
    {"role": "user", "content": [{"type": "input_text", "text": "See"}, {"type": "input_image", "image_url": "data:image/png;base64,AA==", "detail": "auto"}]},
    {"role": "assistant", "content": "Hello"},
    {"id": "m1", "type": "message", "role": "assistant", "status": "completed", "content": [{"type": "output_text", "text": "Yes", "annotations": [], "logprobs": []}]},
    {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": '{"city":"Oslo"}'},
    {"type": "function_call", "call_id": "c2", "name": "weather", "arguments": "not json", "id": "f2", "status": "completed"},
    {"type": "function_call", "call_id": "c3", "name": "odd", "arguments": '{"z":1,"a":1.0,"b":12345678901234567890,"é":"\\u00e9"}'},
    {"type": "function_call", "call_id": "c4", "name": "odd", "arguments": '{"z":1,"a":1.0,"big":12345678901234567890,"e":1e21,"f":0.1}'},
    {"type": "function_call", "call_id": "c5", "name": "odd", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "c1", "output": "Rain"},
    {"type": "function_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "x"}]},
    {"type": "reasoning", "id": "r1", "summary": [], "encrypted_content": "abc"},
    {"role": "system", "content": "Be brief."},
    {"role": "developer", "content": ""},
    {"type": "web_search_call", "id": "w1", "status": "completed", "action": {"type": "search", "query": "x"}},
    {"type": "compaction", "encrypted_content": "zzz", "id": "k"},
]


def run(work: Callable[[AsyncSessionAgent], Awaitable[Any]], open_async: Callable[[], AsyncSessionAgent]) -> Any:
    async def inner() -> Any:
        async with open_async() as agent:
            return await work(agent)

    return asyncio.run(inner())


def test_it_implements_the_sdks_session(agent: SessionAgent) -> None:
    session = SessionAgentSession(agent.session("s"))
    assert isinstance(session, Session) and session.session_id == "s"
    for name in ("get_items", "add_items", "pop_item", "clear_session"):
        ours = [parameter for parameter in inspect.signature(getattr(session, name)).parameters]
        assert ours == [p for p in inspect.signature(getattr(Session, name)).parameters if p != "self"]


def test_random_play_matches_the_sdks_own_session(open_async: Callable[[], AsyncSessionAgent], tmp_path: Path) -> None:
    async def play(agent: AsyncSessionAgent) -> None:
        ours, theirs = SessionAgentSession(agent.session("s")), SQLiteSession("s", tmp_path / "s.db")
        chance = random.Random(5)
        assert await ours.get_items() == [] and await ours.pop_item() is None
        await ours.clear_session()
        for _ in range(60):
            kind = chance.randint(0, 9)
            if kind < 4:
                items = chance.choices(ITEMS, k=chance.randint(0, 5))
                await ours.add_items(items)
                await theirs.add_items(items)
            elif kind < 6:
                assert await ours.pop_item() == await theirs.pop_item()
            elif kind == 6 and chance.randint(0, 4) == 0:
                await ours.clear_session()
                await theirs.clear_session()
            else:
                limit = chance.choice([None, 1, 3, 100, 0])
                expected = [] if limit == 0 else await theirs.get_items(limit)
                assert await ours.get_items(limit) == expected
        assert await ours.get_items() == await theirs.get_items()
        assert await SessionAgentSession(agent.session("s"), session_settings=SessionSettings(limit=2)).get_items() == await theirs.get_items(2)
        theirs.close()

    run(play, open_async)


def test_a_long_history_is_read_whole(open_async: Callable[[], AsyncSessionAgent]) -> None:
    async def work(agent: AsyncSessionAgent) -> None:
        session = SessionAgentSession(agent.session("s"))
        await session.add_items([{"role": "user", "content": str(n)} for n in range(450)])
        assert [item["content"] for item in await session.get_items()] == [str(n) for n in range(450)]  # type: ignore[typeddict-item]
        assert len(await session.get_items(201)) == 201

    run(work, open_async)


def test_items_without_json_write_nothing(open_async: Callable[[], AsyncSessionAgent]) -> None:
    async def work(agent: AsyncSessionAgent) -> None:
        session = SessionAgentSession(agent.session("s"))
        for bad in ({"role": "user", "content": b"x"}, {"role": "user", "n": float("nan")}, "text"):
            with pytest.raises((TypeError, ValueError)):
                await session.add_items([ITEMS[0], bad])  # type: ignore[list-item]
        assert await session.get_items() == []

    run(work, open_async)


@function_tool
def weather(city: str) -> str:
    """The weather."""
    return f"Rain in {city}"


def test_the_runner_continues_the_history(agent: SessionAgent, open_async: Callable[[], AsyncSessionAgent], tmp_path: Path) -> None:
    async def talk(session: Any) -> tuple[list[Any], list[Any]]:
        model = ScriptedModel(
            [[function_call("weather", {"city": "Oslo"}, call_id="c1")], [assistant_message("Take an umbrella.")], [assistant_message("Oslo.")]]
        )
        agent_with_tool = Agent(name="helper", model=model, tools=[weather])
        first = await Runner.run(agent_with_tool, "Do I need an umbrella?", session=session)
        second = await Runner.run(agent_with_tool, "Where?", session=session, run_config=RunConfig(tracing_disabled=True))
        assert (first.final_output, second.final_output) == ("Take an umbrella.", "Oslo.")
        return [call.input for call in model.calls], await session.get_items()

    async def work(other: AsyncSessionAgent) -> None:
        ours = await talk(SessionAgentSession(other.session("s")))
        theirs = await talk(SQLiteSession("s", tmp_path / "s.db"))
        assert json.dumps(ours, sort_keys=True) == json.dumps(theirs, sort_keys=True)

    run(work, open_async)
    # The log has its own format, so that search and chat can read it.
    events = list(agent.session("s").events())
    assert [event["action"] for event in events] == ["user_message", "tool_call_request", "tool_result", "agent_message", "user_message", "agent_message"]
    assert events[2].get("toolName") == "weather"
    assert agent.search(query="umbrella")["results"]
    # The next run reads the message that chat has added.
    list(agent.session("s").chat("And gloves?"))

    async def read(other: AsyncSessionAgent) -> list[Any]:
        return list(await SessionAgentSession(other.session("s")).get_items(2))

    assert [item["role"] for item in run(read, open_async)] == ["user", "assistant"]


def test_an_event_written_elsewhere_is_popped_alone(agent: SessionAgent, open_async: Callable[[], AsyncSessionAgent]) -> None:
    session = agent.session("s")
    session.create()
    calls: Any = [{"id": f"c{n}", "name": "t", "arguments": {"a": n}} for n in range(2)]
    session.append_events(
        events=[{"action": "user_message", "content": "Hi"}, {"action": "tool_call_request", "content": "Let me see.", "toolCalls": calls}]
    )

    async def work(other: AsyncSessionAgent) -> list[Any]:
        ours = SessionAgentSession(other.session("s"))
        popped = [await ours.pop_item() for _ in range(2)]
        return [popped, await ours.get_items()]

    popped, left = run(work, open_async)
    assert [item["call_id"] for item in popped] == ["c1", "c0"]
    assert left == [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Let me see."}]


def test_javascript_and_python_share_a_history(agent: SessionAgent, open_async: Callable[[], AsyncSessionAgent]) -> None:
    javascript("add", agent.name)

    async def work(other: AsyncSessionAgent) -> list[Any]:
        session = SessionAgentSession(other.session("s"))
        read = list(await session.get_items())
        await session.add_items(
            [{"role": "user", "content": "And gloves?"}, ITEMS[3], {"type": "function_call", "call_id": "c9", "name": "weather", "arguments": "{}"}, {"type": "function_call_output", "call_id": "c9", "output": "Sun"}]
        )
        return read

    assert run(work, open_async) == [
        {"role": "user", "content": "Rain?"},
        {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": '{"city":"Oslo"}'},
        {"type": "function_call_output", "call_id": "c1", "output": "Rain"},
        {"role": "assistant", "content": "Take one."},
    ]
    newest = json.loads(javascript("items", agent.name))[4:]
    answer = {"type": "message", "role": "assistant", "status": "completed", "content": [{"type": "output_text", "text": "Yes"}]}
    assert newest == [
        {"type": "message", "role": "user", "content": "And gloves?"},
        answer,
        {"type": "function_call", "callId": "c9", "name": "weather", "status": "completed", "arguments": "{}"},
        {"type": "function_call_result", "name": "weather", "callId": "c9", "status": "completed", "output": {"type": "text", "text": "Sun"}},
    ]
