"""LangGraph's own suites over an agent, and LangGraph graphs."""

from __future__ import annotations

import asyncio
import json
import operator
import uuid
from collections.abc import AsyncGenerator, Callable
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, ToolMessage
from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, Send, interrupt
from session_agent import AsyncSessionAgent, LeafMovedError, SessionAgent
from session_agent.langgraph import PortableSerializer, SessionAgentSaver

from conftest import TOKEN, URL, javascript


def test_langgraphs_conformance_suite() -> None:
    @checkpointer_test(name="SessionAgentSaver")
    async def saver() -> AsyncGenerator[SessionAgentSaver, None]:
        async with AsyncSessionAgent(URL, f"conformance-{uuid.uuid4().hex}", token=TOKEN) as agent:
            yield SessionAgentSaver(agent)

    report = asyncio.run(validate(saver))
    failures = {name: result.failures for name, result in report.results.items() if result.failures}
    assert failures == {}
    assert all(result.passed for result in report.results.values()), report.results
    assert len(report.results) == 8 and sum(result.tests_passed for result in report.results.values()) > 70


class State(TypedDict):
    texts: Annotated[list[str], operator.add]
    messages: Annotated[list[Any], operator.add]


def graph_of(saver: Any) -> Any:
    def answer(state: State) -> dict[str, Any]:
        return {"texts": [f"You have said {len(state['texts'])} things."], "messages": [AIMessage("Noted.", id=f"a{len(state['texts'])}")]}

    def ask(state: State) -> dict[str, Any]:
        return {"texts": [interrupt("Sure?")]}

    builder = StateGraph(State)
    builder.add_node("answer", answer)
    builder.add_node("ask", ask)
    builder.add_edge(START, "answer")
    builder.add_conditional_edges("answer", lambda state: "ask" if "risky" in state["texts"] else END)
    builder.add_edge("ask", END)
    return builder.compile(checkpointer=saver)


def play(graph: Any, *, may_fork: bool) -> list[Any]:
    config = {"configurable": {"thread_id": "1"}}
    seen: list[Any] = []
    seen.append(graph.invoke({"texts": ["Hello"], "messages": [HumanMessage("Hello", id="h1")]}, config))
    seen.append(graph.invoke({"texts": ["risky"], "messages": []}, config)["texts"])
    seen.append(graph.get_state(config).next)
    seen.append(graph.invoke(Command(resume="yes"), config)["texts"])
    graph.update_state(config, {"texts": ["by hand"]})
    history = list(graph.get_state_history(config))
    seen.append([(one.values, one.next, one.metadata["source"], one.metadata["step"]) for one in history])
    # Back in time: a branch from an old checkpoint, with and without another input.
    old = next(one for one in history if one.metadata["step"] == 1).config
    seen.append(graph.invoke(None, old)["texts"])
    if may_fork:
        seen.append(graph.invoke({"texts": ["again"], "messages": []}, old)["texts"])
    else:
        # Another input after an old checkpoint is what a stale writer sends, too.
        with pytest.raises(LeafMovedError):
            graph.invoke({"texts": ["again"], "messages": []}, old)
    seen.append(graph.get_state(config).values["texts"])
    seen.append(len(list(graph.get_state_history(config, limit=3))))
    return seen


def test_a_graph_behaves_as_with_the_in_memory_saver(agent: SessionAgent) -> None:
    expected = play(graph_of(InMemorySaver()), may_fork=True)
    assert play(graph_of(SessionAgentSaver(agent, stale_writers="fork")), may_fork=True) == expected
    with SessionAgent(URL, f"{agent.name}-2", token=TOKEN) as other:
        played = play(graph_of(SessionAgentSaver(other)), may_fork=False)
    assert played[:6] == expected[:6]


def test_the_same_asynchronously(open_async: Callable[[], AsyncSessionAgent]) -> None:
    async def run(saver: Any) -> list[Any]:
        graph, config, seen = graph_of(saver), {"configurable": {"thread_id": "1"}}, []
        seen.append(await graph.ainvoke({"texts": ["Hello"], "messages": [HumanMessage("Hi", id="h")]}, config))
        seen.append([chunk async for chunk in graph.astream({"texts": ["more"], "messages": []}, config)])
        seen.append([one.values async for one in graph.aget_state_history(config)])
        await saver.adelete_thread("1")
        seen.append((await graph.aget_state(config)).values)
        return seen

    async def run_here() -> list[Any]:
        async with open_async() as agent:
            return await run(SessionAgentSaver(agent))

    assert asyncio.run(run_here()) == asyncio.run(run(InMemorySaver()))


def test_another_process_continues_a_thread(agent: SessionAgent) -> None:
    config = {"configurable": {"thread_id": "1"}}
    graph_of(SessionAgentSaver(agent)).invoke({"texts": ["Hello"], "messages": []}, config)
    with SessionAgent(URL, agent.name, token=TOKEN) as other:
        assert graph_of(SessionAgentSaver(other)).invoke({"texts": ["More"], "messages": []}, config)["texts"][-1] == "You have said 3 things."


def test_a_stale_writer_is_refused_or_forks(agent: SessionAgent) -> None:
    saver = SessionAgentSaver(agent)
    config: Any = {"configurable": {"thread_id": "1", "checkpoint_ns": ""}}
    checkpoints = list(InMemorySaver().list(None))
    assert checkpoints == []
    from langgraph.checkpoint.base import empty_checkpoint

    first = saver.put(config, empty_checkpoint(), {"source": "input", "step": -1}, {})
    saver.put(first, empty_checkpoint(), {"source": "loop", "step": 0}, {})
    with pytest.raises(LeafMovedError):
        saver.put(first, empty_checkpoint(), {"source": "loop", "step": 0}, {})
    SessionAgentSaver(agent, stale_writers="fork").put(first, empty_checkpoint(), {"source": "loop", "step": 0}, {})
    assert len(list(saver.list(config))) == 3


def test_values_round_trip() -> None:
    serde = PortableSerializer()
    values: list[Any] = [
        None, True, 0, -1, 1.5, 2**60, float("inf"), "", "é😀\0", [], {}, {"a": [1, {"b": None}]}, {1: 2}, {"lc": 1},
        {"lc": 2, "type": "constructor", "id": ["os", "system"], "args": ["true"]}, {1, 2}, b"x", uuid.UUID(int=5),
        HumanMessage("Hi", id="1"), HumanMessage([{"type": "text", "text": "Hi"}], name="ann"),
        AIMessage("", tool_calls=[{"name": "t", "args": {"a": 1}, "id": "c", "type": "tool_call"}], usage_metadata={"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}),
        ToolMessage("out", tool_call_id="c", status="error"), AIMessageChunk("part"), [HumanMessage("a"), {"m": AIMessage("b")}],
        Send("node", {"a": HumanMessage("x")}),
    ]
    deep: Any = []
    for _ in range(200):
        deep = [deep]
    for value in [*values, deep]:
        back = serde.loads_typed(serde.dumps_typed(value))
        assert back == value and type(back) is type(value), value
    for value in (HumanMessage("Hi"), AIMessage("x"), {"a": [1, "b"]}):
        assert serde.dumps_typed(value)[0] == "json"


def test_stored_data_executes_no_code() -> None:
    serde = PortableSerializer()
    for text in (
        b'{"lc":2,"type":"constructor","id":["os","system"],"args":["touch /tmp/never"]}',
        b'{"lc":1,"type":"constructor","id":["langchain_core","prompts","PromptTemplate"],"kwargs":{"template":"x"}}',
        b'{"lc":1,"type":"secret","id":["HOME"]}',
        b'{"lc":1,"type":"constructor","id":["langchain_core","messages","HumanMessage"],"kwargs":{"content":5}}',
    ):
        assert isinstance(serde.loads_typed(("json", text)), dict)
    assert serde.loads_typed(("json", b'[{"lc":2,"type":"undefined"},{"lc":2,"type":"constructor","id":["Set"],"args":[[1,2]]}]')) == [None, {1, 2}]


def test_javascript_reads_a_python_thread(agent: SessionAgent) -> None:
    config = {"configurable": {"thread_id": "1"}}
    graph_of(SessionAgentSaver(agent)).invoke({"texts": ["Hello"], "messages": [HumanMessage("Hello", id="h")]}, config)
    assert json.loads(javascript("read", agent.name)) == {
        "texts": ["Hello", "You have said 1 things."],
        "messages": [["human", "Hello", "h"], ["ai", "Noted.", "a1"]],
        "step": 1,
        "writes": 0,
    }


def test_python_reads_a_javascript_thread(agent: SessionAgent) -> None:
    javascript("write", agent.name)
    saver = SessionAgentSaver(agent)
    found = saver.get_tuple({"configurable": {"thread_id": "js"}})
    assert found is not None
    assert found.checkpoint["channel_values"] == {
        "messages": [HumanMessage("Hi", id="h"), AIMessage("Hello")],
        "n": 1,
        "nothing": None,
        "seen": {"a"},
    }
    assert found.metadata == {"source": "input", "step": -1, "parents": {}}
    assert [write[1:] for write in found.pending_writes or []] == [("__interrupt__", {"value": "Sure?"}), ("n", 2)]
    # And continues it.
    saver.put(found.config, {**found.checkpoint, "id": f"2{found.checkpoint['id'][1:]}"}, {"source": "loop", "step": 0}, {})
    assert len(list(saver.list({"configurable": {"thread_id": "js"}}))) == 2
