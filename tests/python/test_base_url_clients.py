"""The base URL with unmodified third-party clients: LangChain's models, LiteLLM, and
OpenAI's Agents SDK. Each program runs against a provider and through an agent, and must
get the same results."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import anthropic
import litellm
import openai
import pytest
from agents import (
    Agent,
    AgentOutputSchema,
    Model,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    RunConfig,
    Runner,
    function_tool,
)
from langchain_anthropic import ChatAnthropic
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from openai import AsyncOpenAI
from pydantic import BaseModel
from session_agent import SessionAgent

from compare_with_provider import Base, agents_base, compare

#: Some of the clients keep their connections for the next call, which needs the same loop.
LOOP = asyncio.Runner()

GREETING = "Hello, dear friend."


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


# LangChain


def langchain_openai(uses_responses: bool) -> Callable[[Base], BaseChatModel]:
    return lambda base: ChatOpenAI(
        model="gpt-test", base_url=base.openai, api_key=base.key, use_responses_api=uses_responses, max_retries=0
    )  # type: ignore[arg-type]


def langchain_anthropic(base: Base) -> BaseChatModel:
    return ChatAnthropic(
        model_name="claude-test", base_url=base.anthropic, api_key=base.key, max_tokens_to_sample=100, max_retries=0
    )  # type: ignore[arg-type]


LANGCHAIN = {
    "openai_chat": langchain_openai(False),
    "openai_responses": langchain_openai(True),
    "anthropic": langchain_anthropic,
}


@tool
def get_weather(city: str) -> str:
    """The weather of a city."""
    return "sunny"


@pytest.fixture(params=list(LANGCHAIN))
def langchain(request: pytest.FixtureRequest) -> Callable[[Base], BaseChatModel]:
    return LANGCHAIN[request.param]


def conversation(text: str) -> list[Any]:
    return [SystemMessage("Be kind."), HumanMessage(text)]


@pytest.mark.parametrize("text", ["hi", "think", "both"])
def test_langchains_models_answer_with_and_without_streaming(langchain: Callable[[Base], BaseChatModel], text: str) -> None:
    async def wait(model: Any) -> tuple[Any, Any]:
        return await model.ainvoke(conversation(text)), [chunk async for chunk in model.astream(conversation(text))]

    def program(base: Base) -> Any:
        model = langchain(base).bind_tools([get_weather])
        return model.invoke(conversation(text)), list(model.stream(conversation(text))), *LOOP.run(wait(model))

    assert len(compare(program)[1]) > 2


def test_langchains_tools_continue_with_their_results(langchain: Callable[[Base], BaseChatModel]) -> None:
    def program(base: Base) -> Any:
        model = langchain(base).bind_tools([get_weather])
        messages = conversation("both")
        for _ in range(3):
            answer = model.invoke(messages)
            messages.append(answer)
            assert isinstance(answer, AIMessage)
            for call in answer.tool_calls:
                messages.append(ToolMessage(get_weather.invoke(call["args"]), tool_call_id=call["id"]))
            if not answer.tool_calls:
                messages.append(HumanMessage("And now?"))
        return messages

    messages = compare(program)
    assert len(messages) == 9


def test_langchains_structured_output_returns_objects(langchain: Callable[[Base], BaseChatModel]) -> None:
    def program(base: Base) -> Any:
        model = langchain(base)
        methods = ["json_schema", "function_calling"]
        return [model.with_structured_output(Answer, method=method).invoke("how much?") for method in methods]

    assert compare(program) == [{"class": "Answer", "answer": 42}] * 2


def test_langchain_raises_the_providers_errors(langchain: Callable[[Base], BaseChatModel]) -> None:
    def program(base: Base) -> Any:
        with pytest.raises((openai.BadRequestError, anthropic.BadRequestError)) as refused:
            langchain(base).invoke("refuse")
        return type(refused.value).__name__, refused.value.status_code

    compare(program)


# LiteLLM

LITELLM = ["openai/gpt-test", "anthropic/claude-test"]


def lite(base: Base, model: str, text: str, **more: Any) -> dict[str, Any]:
    place = base.openai if model.startswith("openai/") else base.anthropic
    return {
        "model": model,
        "api_base": place,
        "api_key": base.key,
        "messages": messages_of(text),
        "max_tokens": 100,
        "num_retries": 0,
        **more,
    }


@pytest.mark.parametrize("model", LITELLM)
@pytest.mark.parametrize("text", ["hi", "both", "think"])
def test_litellm_answers_with_and_without_streaming(model: str, text: str) -> None:
    tools = [{"type": "function", "function": WEATHER}]

    async def wait(base: Base) -> Any:
        stream: Any = await litellm.acompletion(**lite(base, model, text, tools=tools), stream=True)
        return [chunk async for chunk in stream]

    def program(base: Base) -> Any:
        whole = litellm.completion(**lite(base, model, text, tools=tools))
        chunks: Any = litellm.completion(
            **lite(base, model, text, tools=tools), stream=True, stream_options={"include_usage": True}
        )
        return whole, list(chunks), LOOP.run(wait(base))

    assert len(compare(program)[1]) > 2


@pytest.mark.parametrize("model", LITELLM)
def test_litellm_tools_structured_answers_and_errors(model: str) -> None:
    def program(base: Base) -> Any:
        wanted = lite(base, model, "both", tools=[{"type": "function", "function": WEATHER}])
        first: Any = litellm.completion(**wanted)
        message = first.choices[0].message
        wanted["messages"] += [message]
        for call in message.tool_calls:
            wanted["messages"] += [{"role": "tool", "tool_call_id": call.id, "content": "sunny"}]
        second = litellm.completion(**wanted)
        parsed = litellm.completion(**lite(base, model, "how much?", response_format=Answer))
        with pytest.raises(litellm.BadRequestError):  # type: ignore[attr-defined]
            litellm.completion(**lite(base, model, "refuse"))
        return second, parsed

    second, _ = compare(program)
    assert second["choices"][0]["message"]["content"] == "It is sunny."


def test_litellm_uses_responses() -> None:
    def program(base: Base) -> Any:
        wanted: dict[str, Any] = {"model": "openai/gpt-test", "api_base": base.openai, "api_key": base.key}
        stream: Any = litellm.responses(**wanted, input="hi", stream=True)
        return litellm.responses(**wanted, input="hi"), list(stream)

    assert len(compare(program)[1]) > 5


# OpenAI's Agents SDK


def agents_chat(client: AsyncOpenAI) -> Model:
    return OpenAIChatCompletionsModel("gpt-test", client)


def agents_responses(client: AsyncOpenAI) -> Model:
    return OpenAIResponsesModel("gpt-test", client)


AGENTS = {"chat": agents_chat, "responses": agents_responses}
UNTRACED = RunConfig(tracing_disabled=True)


@pytest.fixture(params=list(AGENTS))
def run_agent(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """Runs an agent, whole or streamed, with a client that is closed afterwards."""

    async def run(base: Base, text: str, is_streamed: bool, more: dict[str, Any]) -> Any:
        cities: list[str] = []

        @function_tool
        def get_weather(city: str) -> str:
            """The weather of a city."""
            cities.append(city)
            return "sunny"

        async with AsyncOpenAI(base_url=base.openai, api_key=base.key, max_retries=0) as client:
            model = AGENTS[request.param](client)
            agent: Agent[Any] = Agent(name="Helper", instructions="Be kind.", model=model, tools=[get_weather], **more)
            if is_streamed:
                result: Any = Runner.run_streamed(agent, text, run_config=UNTRACED)
                events = [event.data async for event in result.stream_events() if event.type == "raw_response_event"]
            else:
                result = await Runner.run(agent, text, run_config=UNTRACED)
                events = []
            responses = [(response.output, response.usage) for response in result.raw_responses]
            return result.final_output, events, responses, result.to_input_list(), cities

    return lambda base, text, is_streamed=False, **more: LOOP.run(run(base, text, is_streamed, more))


@pytest.mark.parametrize("is_streamed", [False, True])
@pytest.mark.parametrize("text", ["hi", "both"])
def test_agents_run_their_tools_in_the_caller(run_agent: Callable[..., Any], text: str, is_streamed: bool) -> None:
    answer = compare(lambda base: run_agent(base, text, is_streamed))
    assert answer[0] == (GREETING if text == "hi" else "It is sunny.")


def test_agents_return_objects(run_agent: Callable[..., Any]) -> None:
    answer = compare(lambda base: run_agent(base, "how much?", output_type=AgentOutputSchema(Answer)))
    assert answer[0] == {"class": "Answer", "answer": 42}


# Memory


def test_memory_tools_run_and_are_hidden_from_clients(agent: SessionAgent, name: str) -> None:
    agent.define_block(label="memory", kind="writable", description="Facts")
    base = agents_base(agent, name)
    seen: list[Any] = []
    model = langchain_anthropic(base)
    seen.append(model.invoke("remember tea."))
    seen.append(litellm.completion(**lite(base, "openai/gpt-test", "remember milk.")))
    seen.append(list(langchain_openai(True)(base).stream("remember bread.")))
    assert "set_context" not in repr(seen)
    block = agent.get_block(label="memory")
    assert block is not None and block["content"] == "bread."
