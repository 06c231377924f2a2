"""The base URL with the official, unmodified clients of OpenAI and Anthropic and their
helpers. Each program runs against a provider and through an agent, and must get the
same results. package.test.mjs also runs these tests with versions that are a year old."""

from __future__ import annotations

import asyncio
from typing import Any

import anthropic
import openai
import pytest
from anthropic import Anthropic, AsyncAnthropic, beta_tool
from openai import AsyncOpenAI, OpenAI
from pydantic import BaseModel

from compare_with_provider import Base, compare


class Answer(BaseModel):
    """The answer."""

    answer: int


WEATHER: dict[str, Any] = {
    "name": "get_weather",
    "description": "The weather of a city.",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
        "additionalProperties": False,
    },
}


def messages_of(text: str) -> list[Any]:
    return [{"role": "system", "content": "Be kind."}, {"role": "user", "content": text}]


# openai


def openai_of(base: Base) -> OpenAI:
    return OpenAI(base_url=base.openai, api_key=base.key, max_retries=0)


@pytest.mark.parametrize("text", ["hi", "weather", "both", "think"])
def test_openais_completions_and_their_streams(text: str) -> None:
    tools: list[Any] = [{"type": "function", "function": {**WEATHER, "strict": True}}]

    def program(base: Base) -> Any:
        client = openai_of(base)
        wanted: dict[str, Any] = {"model": "gpt-test", "messages": messages_of(text), "tools": tools}
        whole = client.chat.completions.create(**wanted)
        with client.chat.completions.stream(**wanted, stream_options={"include_usage": True}) as stream:
            events = list(stream)
            return whole, events, stream.get_final_completion()

    whole, events, final = compare(program)
    assert len(events) > 3 and whole["choices"][0]["finish_reason"] == final["choices"][0]["finish_reason"]


def test_openais_parse_returns_objects() -> None:
    def program(base: Base) -> Any:
        client = openai_of(base)
        completion = client.chat.completions.parse(model="gpt-test", messages=messages_of("how much?"), response_format=Answer)
        called = client.chat.completions.parse(
            model="gpt-test",
            messages=messages_of("use Answer {\"answer\": 42}"),
            tools=[openai.pydantic_function_tool(Answer)],
        )
        [call] = called.choices[0].message.tool_calls or []
        with client.chat.completions.stream(
            model="gpt-test", messages=messages_of("how much?"), response_format=Answer
        ) as stream:
            streamed = stream.get_final_completion().choices[0].message.parsed
        return completion, completion.choices[0].message.parsed, call.function.parsed_arguments, streamed

    _, *parsed = compare(program)
    assert parsed == [{"class": "Answer", "answer": 42}] * 3


@pytest.mark.parametrize("text", ["hi", "weather", "both", "think", "ponder", "search", "fail"])
def test_openais_responses_and_their_streams(text: str) -> None:
    tools: list[Any] = [{"type": "web_search"}, {"type": "function", **WEATHER, "strict": True}]

    def program(base: Base) -> Any:
        client = openai_of(base)
        wanted: dict[str, Any] = {"model": "gpt-test", "instructions": "Be kind.", "input": text, "tools": tools}
        whole = client.responses.create(**wanted)
        with client.responses.stream(**wanted) as stream:
            events = list(stream)
            return whole, events, None if text == "fail" else stream.get_final_response()

    assert len(compare(program)[1]) > (2 if text == "fail" else 5)


def test_openais_responses_are_parsed_and_continue_with_results() -> None:
    def program(base: Base) -> Any:
        client = openai_of(base)
        parsed = client.responses.parse(model="gpt-test", input="how much?", text_format=Answer)
        tools: list[Any] = [{"type": "function", **WEATHER, "strict": True}]
        history: list[Any] = [{"role": "user", "content": "ponder"}]
        first = client.responses.create(model="gpt-test", input=history, tools=tools)
        history += first.output
        for item in first.output:
            if item.type == "function_call":
                history.append({"type": "function_call_output", "call_id": item.call_id, "output": "sunny"})
        second = client.responses.create(model="gpt-test", input=history, tools=tools)
        return parsed, parsed.output_parsed, second, second.output_text

    *_, text = compare(program)
    assert text == "It is sunny."


def test_openais_async_client_streams() -> None:
    async def ask(base: Base) -> Any:
        async with AsyncOpenAI(base_url=base.openai, api_key=base.key, max_retries=0) as client:
            stream = await client.chat.completions.create(model="gpt-test", messages=messages_of("hi"), stream=True)
            chunks = [chunk async for chunk in stream]
            async with client.responses.stream(model="gpt-test", input="hi") as events:
                return chunks, [event async for event in events]

    compare(lambda base: asyncio.run(ask(base)))


def test_errors_have_the_providers_class_and_status() -> None:
    def program(base: Base) -> Any:
        with pytest.raises(openai.BadRequestError) as completion:
            openai_of(base).chat.completions.create(model="gpt-test", messages=messages_of("refuse"))
        with pytest.raises(openai.BadRequestError) as response:
            openai_of(base).responses.create(model="gpt-test", input="refuse")
        with pytest.raises(anthropic.BadRequestError) as message:
            anthropic_of(base).messages.create(
                model="claude-test", max_tokens=5, messages=[{"role": "user", "content": "refuse"}]
            )
        return [error.value.status_code for error in (completion, response, message)], completion.value.type

    compare(program)


# anthropic


def anthropic_of(base: Base) -> Anthropic:
    return Anthropic(base_url=base.anthropic, api_key=base.key, max_retries=0)


def claude(text: str) -> dict[str, Any]:
    messages = [{"role": "user", "content": text}]
    return {"model": "claude-test", "max_tokens": 100, "system": "Be kind.", "messages": messages}


CLAUDES_WEATHER: Any = {
    "name": WEATHER["name"],
    "description": WEATHER["description"],
    "input_schema": WEATHER["parameters"],
}


@pytest.mark.parametrize("text", ["hi", "weather", "both", "think"])
def test_anthropics_messages_and_their_streams(text: str) -> None:
    def program(base: Base) -> Any:
        client = anthropic_of(base)
        wanted = {**claude(text), "tools": [CLAUDES_WEATHER]}
        whole = client.messages.create(**wanted)
        raw = list(client.messages.create(**wanted, stream=True))
        with client.messages.stream(**wanted) as stream:
            events = list(stream)
            return whole, raw, events, stream.get_final_message()

    whole, _, _, final = compare(program)
    assert whole["content"] and final["stop_reason"] == whole["stop_reason"]


def test_anthropics_tool_runner_runs_tools_in_the_client() -> None:
    def program(base: Base) -> Any:
        client = anthropic_of(base)
        cities: list[str] = []

        @beta_tool
        def get_weather(city: str) -> str:
            """The weather of a city."""
            cities.append(city)
            return "sunny"

        whole = client.beta.messages.tool_runner(**claude("both"), tools=[get_weather]).until_done()
        runner = client.beta.messages.tool_runner(**claude("weather"), tools=[get_weather], stream=True)
        streamed = [stream.get_final_message() for stream in runner]
        return whole, streamed, cities

    whole, streamed, cities = compare(program)
    assert whole["content"][0]["text"] == streamed[-1]["content"][0]["text"] == "It is sunny."
    assert cities == ["Rome", "Oslo", "Rome"]


def test_anthropics_parse_returns_objects() -> None:
    def program(base: Base) -> Any:
        client = anthropic_of(base)
        # The older version parses only beta messages.
        parsers: list[Any] = [it for it in (client.messages, client.beta.messages) if hasattr(it, "parse")]
        return [parser.parse(**claude("how much?"), output_format=Answer).parsed_output for parser in parsers]

    parsed = compare(program)
    assert parsed and all(answer == {"class": "Answer", "answer": 42} for answer in parsed)


def test_anthropics_async_client_streams() -> None:
    async def ask(base: Base) -> Any:
        async with AsyncAnthropic(base_url=base.anthropic, api_key=base.key, max_retries=0) as client:
            async with client.messages.stream(**claude("think")) as stream:
                return [event async for event in stream]

    compare(lambda base: asyncio.run(ask(base)))
