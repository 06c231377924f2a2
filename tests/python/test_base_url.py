"""The base URL with the official, unmodified Python clients of OpenAI and Anthropic."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import anthropic
import openai
import pytest
from anthropic import Anthropic
from openai import AsyncOpenAI, OpenAI
from session_agent import SessionAgent

from conftest import ROOT, URL


@pytest.fixture
def base(name: str) -> str:
    return f"{URL.rstrip('/')}/agents/session-agent/{name}"


@pytest.fixture
def token(agent: SessionAgent) -> str:
    allow: dict[str, Any] = {"systemInstructions": True, "clientTools": True}
    return agent.mint_token(preset="model", allow=allow, expires_in=600)["token"]


def test_openai_answers_with_and_without_streaming(agent: SessionAgent, base: str, token: str) -> None:
    client = OpenAI(base_url=f"{base}/openai/v1", api_key=token, max_retries=0)
    messages: list[Any] = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "hi"}]
    raw = client.chat.completions.with_raw_response.create(model="default", messages=messages)
    session_id = raw.headers["x-session-id"]
    answer = raw.parse().choices[0].message
    assert answer.content and raw.parse().choices[0].finish_reason == "stop"
    messages += [answer.model_dump(exclude_none=True), {"role": "user", "content": "And now?"}]
    text = ""
    stream = client.chat.completions.create(
        model="default", messages=messages, stream=True, stream_options={"include_usage": True}
    )
    chunks = list(stream)
    for chunk in chunks:
        for choice in chunk.choices:
            text += choice.delta.content or ""
    assert text and chunks[-1].usage is not None
    history = agent.session(session_id).get_history()["messages"]
    assert [message["role"] for message in history] == ["user", "assistant", "user", "assistant"]
    assert [model.id for model in client.models.list()] == ["demo"]


def test_openai_waits_without_blocking(base: str, token: str) -> None:
    async def ask() -> str | None:
        async with AsyncOpenAI(base_url=f"{base}/openai/v1", api_key=token) as client:
            answer = await client.chat.completions.create(
                model="default", messages=[{"role": "user", "content": "hi"}]
            )
            return answer.choices[0].message.content

    assert asyncio.run(ask())


def test_anthropic_answers_with_and_without_streaming(agent: SessionAgent, base: str, token: str) -> None:
    client = Anthropic(base_url=f"{base}/anthropic", api_key=token, max_retries=0)
    settings: dict[str, Any] = {"model": "default", "max_tokens": 100, "system": "Be kind."}
    answer = client.messages.create(**settings, messages=[{"role": "user", "content": "hi"}])
    [block] = answer.content
    assert block.type == "text" and block.text and answer.stop_reason == "end_turn"
    history: list[Any] = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": answer.content},
        {"role": "user", "content": "And now?"},
    ]
    with client.messages.stream(**settings, messages=history) as stream:
        assert "".join(stream.text_stream)
        assert stream.get_final_message().stop_reason == "end_turn"
    [session] = agent.list_sessions()["sessions"]
    assert len(agent.session(session["id"]).get_history()["messages"]) == 4
    counted = client.messages.count_tokens(model="default", messages=[{"role": "user", "content": "hi"}])
    assert counted.input_tokens > 0


def test_errors_have_their_classes(base: str, token: str) -> None:
    stranger = OpenAI(base_url=f"{base}/openai/v1", api_key="nobody's", max_retries=0)
    with pytest.raises(openai.AuthenticationError):
        stranger.models.list()
    client = OpenAI(base_url=f"{base}/openai/v1", api_key=token, max_retries=0)
    with pytest.raises(openai.PermissionDeniedError):
        client.chat.completions.create(model="gpt-dear", messages=[{"role": "user", "content": "hi"}])
    with pytest.raises(openai.BadRequestError) as refused:
        client.chat.completions.create(model="default", n=2, messages=[{"role": "user", "content": "hi"}])
    assert refused.value.param == "n"
    other = Anthropic(base_url=f"{base}/anthropic", api_key="nobody's", max_retries=0)
    with pytest.raises(anthropic.AuthenticationError):
        other.messages.create(model="default", max_tokens=5, messages=[{"role": "user", "content": "hi"}])


@pytest.mark.parametrize("path", ["README.md", "docs/base-url.md"])
def test_the_documented_programs_run(path: str, base: str, token: str) -> None:
    text = (ROOT / path).read_text("utf-8")
    [program] = re.findall(r"^```python openai\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    names: dict[str, Any] = {"OpenAI": OpenAI, "BASE": base, "TOKEN": token}
    exec(compile(program, path, "exec"), names)
    answer = names["client"].chat.completions.create(model="default", messages=[{"role": "user", "content": "hi"}])
    assert answer.choices[0].message.content
