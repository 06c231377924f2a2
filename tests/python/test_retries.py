"""A failing connection: which calls are retried, which are not, and how a truncated stream
is reported."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from session_agent import (
    AsyncSessionAgent,
    NetworkError,
    RateLimitedError,
    Retry,
    SessionAgent,
    StorageFailedError,
    TurnInProgressError,
)

from conftest import TOKEN, URL
from flaky import Flaky

QUICK = Retry(attempts=4, pause_s=0.01)


def refused(code: str, status: int, **details: Any) -> tuple[int, bytes, dict[str, str]]:
    import json

    return status, json.dumps({"error": {"code": code, "message": "No.", "details": details}}).encode(), {}


@pytest.fixture
def broken(agent: SessionAgent, flaky: Flaky) -> SessionAgent:
    agent.session("s").create()
    return SessionAgent(flaky.url, agent.name, token=TOKEN, retry=QUICK)


def test_an_append_with_ids_is_retried_and_written_once(
    broken: SessionAgent, agent: SessionAgent, flaky: Flaky
) -> None:
    flaky.plan = ["drop", "drop"]
    outcome = broken.session("s").append_events(events=[{"id": "e", "action": "user_message", "content": "x"}])
    assert outcome["events"][0] == {"id": "e", "seq": 1, "inserted": False}
    assert len(flaky.seen) == 3
    assert [event["id"] for event in agent.session("s").events()] == ["e"]


def test_an_append_without_ids_is_not_retried(broken: SessionAgent, agent: SessionAgent, flaky: Flaky) -> None:
    flaky.plan = ["drop"]
    with pytest.raises(NetworkError):
        broken.session("s").append_events(events=[{"action": "user_message", "content": "x"}])
    assert len(flaky.seen) == 1
    assert len(list(agent.session("s").events())) == 1


REPEATED: list[tuple[str, dict[str, Any], bool]] = [
    ("loadEvents", {"sessionId": "s"}, True),
    ("search", {"query": "x"}, True),
    ("appendEvents", {"sessionId": "s", "events": [{"id": "a", "action": "user_message", "content": "x"}, {"action": "user_message", "content": "y"}]}, False),
    ("appendMessage", {"sessionId": "s", "message": {"id": "m", "role": "user", "parts": [{"type": "text", "text": "Hi"}]}}, True),
    ("appendMessage", {"sessionId": "s", "message": {"role": "user", "parts": [{"type": "text", "text": "Hi"}]}}, False),
    ("appendMessages", {"sessionId": "s", "messages": [{"id": "m", "role": "user", "parts": [{"type": "text", "text": "Hi"}]}]}, True),
    ("addUsage", {"sessionId": "s", "inputTokens": 1, "id": "u"}, True),
    ("addUsage", {"sessionId": "s", "inputTokens": 1}, False),
    ("createSession", {"id": "t"}, False),
    ("setBlock", {"label": "b", "content": "x"}, False),
    ("deleteSession", {"sessionId": "s"}, False),
    ("ofTomorrow", {}, False),
]


@pytest.mark.parametrize("operation,body,is_repeated", REPEATED)
def test_only_idempotent_calls_are_retried(
    broken: SessionAgent, flaky: Flaky, operation: str, body: dict[str, Any], is_repeated: bool
) -> None:
    flaky.plan = [refused("storage_failed", 500)] * 4
    with pytest.raises(StorageFailedError):
        broken.call(operation, body)
    assert len(flaky.seen) == (4 if is_repeated else 1)


def test_only_transient_errors_are_retried(broken: SessionAgent, flaky: Flaky) -> None:
    session = broken.session("s")
    for plan, requests in (
        ([refused("turn_in_progress", 409)], 1),
        ([refused("rate_limited", 429, retryAfter=60)], 1),
        ([(200, b"<html>", {})], 1),
        ([refused("model_overloaded", 503), "drop", (502, b"<html>", {}), None], 4),
        ([refused("rate_limited", 429, retryAfter=0.05), None], 2),
    ):
        flaky.plan, flaky.seen = list(plan), []
        try:
            session.get_session()
            assert requests > 1
        except (TurnInProgressError, RateLimitedError, NetworkError):
            assert requests == 1
        assert len(flaky.seen) == requests


def test_delays_grow_and_can_be_set_per_call(broken: SessionAgent, flaky: Flaky) -> None:
    flaky.plan = ["drop"] * 3
    began = time.monotonic()
    broken.get_stats(retry=Retry(attempts=4, pause_s=0.1))
    assert 0.35 <= time.monotonic() - began < 5
    flaky.plan, flaky.seen = ["drop"], []
    with pytest.raises(NetworkError):
        broken.get_stats(retry=Retry(attempts=1))
    assert len(flaky.seen) == 1


def test_a_stalled_agent_times_out(agent: SessionAgent) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        with SessionAgent(f"http://127.0.0.1:{port}", "a", timeout=0.2, retry=Retry(attempts=1)) as other:
            began = time.monotonic()
            with pytest.raises(NetworkError):
                other.get_stats()
            with pytest.raises(NetworkError):
                other.get_stats(timeout=0.1)
            assert time.monotonic() - began < 5


def test_a_redirect_does_not_receive_the_token(broken: SessionAgent, flaky: Flaky) -> None:
    flaky.plan = [(302, b"", {"location": f"{flaky.url}/elsewhere"})]
    with pytest.raises(NetworkError):
        broken.get_stats()
    assert [path for _, path, _ in flaky.seen if path == "/elsewhere"] == []


def test_a_trace_is_propagated(broken: SessionAgent, flaky: Flaky) -> None:
    trace = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "other": "x"}
    broken.get_stats(trace=trace)
    headers = flaky.seen[-1][2]
    assert headers["traceparent"] == trace["traceparent"] and "other" not in headers and "tracestate" not in headers
    assert headers["user-agent"].startswith("session-agent-python/")


def test_a_truncated_response_is_an_error(broken: SessionAgent, agent: SessionAgent, flaky: Flaky) -> None:
    agent.session("s").append_events(events=[{"id": f"e{n}", "action": "user_message", "content": "x" * 100} for n in range(50)])
    flaky.plan = [500, 900]
    assert len(list(broken.session("s").events())) == 50
    for at in (0, 1, 3000):
        flaky.plan = [at]
        with pytest.raises(NetworkError):
            list(broken.session("s").export_session())


def test_an_interrupted_turn_continues_and_is_resumed(agent: SessionAgent, flaky: Flaky) -> None:
    for at in (1, 40, 200, 700):
        name = f"s{at}"
        with SessionAgent(flaky.url, agent.name, token=TOKEN, retry=QUICK) as other:
            session = other.session(name)
            flaky.plan = [at]
            received: list[Any] = []
            with pytest.raises(NetworkError, match="resume_chat|got no answer"):
                for chunk in session.chat("Tell me"):
                    received.append(chunk)
            chunks = list(session.resume_chat())
            assert chunks == [] or (chunks[0]["type"] == "start" and chunks[-1]["type"] == "finish")
            assert chunks == [] or chunks[: len(received)] == received
        deadline = time.monotonic() + 20
        while len(messages := agent.session(name).get_messages()) < 2 and time.monotonic() < deadline:
            time.sleep(0.05)
        assert [message["role"] for message in messages] == ["user", "assistant"]


def test_leaving_a_loop_closes_the_stream(agent: SessionAgent) -> None:
    session = agent.session("s")
    for chunk in session.chat("Tell me"):
        assert chunk["type"] == "start"
        break

    async def run() -> None:
        async with AsyncSessionAgent(URL, agent.name, token=TOKEN) as other:
            stream = other.session("t").chat("Tell me")
            assert (await anext(stream))["type"] == "start"
            await stream.aclose()
            task = asyncio.create_task(other.session("t").run_turn(message={"id": "q", "role": "user", "parts": [{"type": "text", "text": "x"}]}, when_busy="queue"))
            # The task runs up to its request. A turn of the demo can be over in 10 ms.
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert (await other.session("t").get_session() or {})["id"] == "t"

    asyncio.run(run())
