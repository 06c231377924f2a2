"""The client against the Worker: every operation, errors by code, paging, files, tokens
and unusual texts."""

from __future__ import annotations

import asyncio
import inspect
import pickle
import random
import re
import threading
from collections.abc import Callable
from typing import Any

import pytest
import session_agent
from session_agent import AsyncSessionAgent, NetworkError, SessionAgent, SessionAgentError, errors, types

from conftest import TOKEN, URL


def snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def calls_of(api: dict[str, Any]) -> list[dict[str, Any]]:
    posts = [methods["post"] for path, methods in api["paths"].items() if "/rpc/" in path]
    # Operations that end the object, or go back in time, come last.
    last = ["deleteSession", "clearMessages", "erase", "eraseAgents", "restoreBackup", "restoreBookmark", "destroy"]
    return sorted(posts, key=lambda call: last.index(call["operationId"]) if call["operationId"] in last else -1)


def example_of(call: dict[str, Any]) -> dict[str, Any]:
    return call["requestBody"]["content"]["application/json"].get("example", {})


# An example may name things that do not exist, or need features that this Worker does not have.
EXPECTED = {
    "session_not_found",
    "message_not_found",
    "block_not_found",
    "skill_not_found",
    "already_exists",
    "not_configured",
    "leaf_moved",
    "version_conflict",
    "forbidden",
    "turn_in_progress",
    "model_failed",
}


def prepare(agent: SessionAgent) -> None:
    agent.session("s").create()
    for label, kind in (("memory", "writable"), ("kb", "searchable"), ("skills", "loadable")):
        agent.call("defineBlock", {"label": label, "kind": kind})
        agent.call("defineBlock", {"label": label, "kind": kind, "sessionId": "s"})


def outcome_of(work: Callable[[], Any]) -> str:
    try:
        work()
    except SessionAgentError as error:
        assert type(error) is errors.CLASSES[error.code], error
        # A missing field, an unknown one and a wrong type name the field. An example has none of these.
        allowed = error.code in EXPECTED or (error.code == "invalid_request" and error.details.get("field") in REFUSED)
        assert allowed, f"{error.code} {error.details}: {error}"
        return error.code
    return "ok"


# Fields of examples whose values exist only in another agent: a receipt, a bookmark, a proposal's
# id.
REFUSED = {"id", "receipt", "bookmark", "at", "ids", "fromId", "toId", "confirm", "places", "changes", "version", "turnId", "name", "into", "learn", "service", "url", "sessionId", "key"}


def test_every_operation_accepts_its_example(agent: SessionAgent, api: dict[str, Any]) -> None:
    prepare(agent)
    outcomes: dict[str, str] = {}
    for call in calls_of(api):
        name, example = call["operationId"], example_of(call)
        method = getattr(agent, snake(name))
        given = {snake(field): value for field, value in example.items()}
        outcomes[name] = outcome_of(lambda method=method, given=given: method(**given))
    assert len(outcomes) > 85
    assert sum(outcome == "ok" for outcome in outcomes.values()) > 55, outcomes


def test_the_async_methods_accept_the_same(
    agent: SessionAgent, open_async: Callable[[], AsyncSessionAgent], api: dict[str, Any]
) -> None:
    prepare(agent)

    async def run() -> int:
        async with open_async() as other:
            count = 0
            for call in calls_of(api):
                name, example = call["operationId"], example_of(call)
                if name == "destroy":
                    continue
                in_session = "session_id" in inspect.signature(getattr(SessionAgent, snake(name))).parameters
                owner: Any = other.session(example.get("sessionId") or "s") if in_session else other
                given = {snake(field): value for field, value in example.items()}
                if in_session:
                    given.pop("session_id", None)
                try:
                    await getattr(owner, snake(name))(**given)
                    count += 1
                except SessionAgentError as error:
                    assert error.code in EXPECTED or error.details.get("field") in REFUSED, (name, error.code, str(error))
            return count

    assert asyncio.run(run()) > 50


def test_each_method_has_the_fields_of_its_operation(api: dict[str, Any]) -> None:
    for call in calls_of(api):
        schema = call["requestBody"]["content"]["application/json"]["schema"]
        if "$ref" in schema:
            schema = api["components"]["schemas"][schema["$ref"].split("/")[-1]]
        fields = {snake(field) for field in schema.get("properties", {})}
        for kind in (SessionAgent, AsyncSessionAgent):
            parameters = set(inspect.signature(getattr(kind, snake(call["operationId"]))).parameters)
            assert parameters - {"self", "options"} == fields, call["operationId"]


def test_each_code_has_a_class(api: dict[str, Any]) -> None:
    codes = api["components"]["schemas"]["Error"]["properties"]["error"]["properties"]["code"]["enum"]
    assert set(codes) == set(errors.CLASSES)
    assert len(set(errors.CLASSES.values())) == len(codes)
    for kind in errors.CLASSES.values():
        assert kind.__name__ in session_agent.__all__


def test_an_error_has_code_status_details_and_operation(agent: SessionAgent) -> None:
    with pytest.raises(session_agent.SessionNotFoundError) as caught:
        agent.append_message(session_id="none", message={"id": "m", "role": "user", "parts": [{"type": "text", "text": "Hi"}]})
    error = caught.value
    assert (error.code, error.status, error.operation) == ("session_not_found", 404, "appendMessage")
    assert error.message == str(error) and "createSession" in error.message
    with pytest.raises(session_agent.InvalidRequestError) as refused:
        agent.list_sessions(limit=100_000)
    assert refused.value.field == "limit"
    with pytest.raises(session_agent.UnknownOperationError):
        agent.call("nothing")
    with pytest.raises(session_agent.AlreadyExistsError):
        agent.session("s").create()
        agent.session("s").create()
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), copy.code, copy.status, copy.details) == (type(error), error.code, error.status, error.details)


def test_none_differs_from_an_omitted_field(agent: SessionAgent) -> None:
    session = agent.session("s")
    session.create()
    session.append_events(events=[{"id": "a", "action": "user_message", "content": "A"}])
    session.append_events(events=[{"id": "b", "action": "user_message", "content": "B"}], parent_id=None)
    session.append_events(events=[{"id": "c", "action": "user_message", "content": "C"}])
    assert {event["id"]: event["parentId"] for event in session.events()} == {"a": None, "b": None, "c": "b"}
    with pytest.raises(session_agent.LeafMovedError):
        session.append_events(events=[{"action": "user_message", "content": "D"}], expected_leaf_id=None)
    agent.define_block(label="kb", kind="searchable")
    agent.set_entry(label="kb", key="k", content="x", metadata={"a": 1})
    agent.set_entry(label="kb", key="k", content="y")
    assert (agent.get_entry(label="kb", key="k") or {}).get("metadata") == {"a": 1}
    agent.set_entry(label="kb", key="k", content="z", metadata=None)
    assert not (agent.get_entry(label="kb", key="k") or {}).get("metadata")


def test_names_that_a_url_cannot_express_are_refused_before_sending() -> None:
    for name in ("", ".", "..", "\ud800"):
        with pytest.raises(ValueError):
            SessionAgent(URL, name)
    for target in ("", "ftp://x", "localhost:8787", "https://"):
        with pytest.raises(ValueError):
            SessionAgent(target, "a")
    with pytest.raises(ValueError):
        SessionAgent(URL, "a").call("../health")
    with pytest.raises(ValueError):
        SessionAgent(URL, "a").session("")
    assert "secret" not in repr(SessionAgent(URL, "a", token="secret"))


def test_names_of_all_kinds_reach_their_own_agent(agent: SessionAgent) -> None:
    for odd in ("a/b", "a b", "a%2Fb", "ä😀", "a?b#c", "user:42"):
        with SessionAgent(URL, f"{agent.name}{odd}", token=TOKEN) as other:
            assert other.session("s").create()["agentId"] == f"{agent.name}{odd}"
            assert len(other.list_sessions()["sessions"]) == 1


def test_texts_round_trip(agent: SessionAgent) -> None:
    session = agent.session("s")
    session.create()
    chance = random.Random(7)
    kinds = ["\0", "\n", "\r", "\u2028", "\x85", "\x1f", '"', "\\", "é", "e\u0301", "😀", "\U0010ffff", "\ufeff", "中", "a", " "]
    texts = ["".join(chance.choices(kinds, k=chance.randint(1, 60))) for _ in range(300)]
    session.append_events(events=[{"action": "user_message", "content": text} for text in texts])
    assert [event["content"] for event in session.events(limit=70)] == texts
    assert [line["content"] for line in session.export_lines() if line["type"] == "event"] == texts


def test_lone_surrogates_and_values_without_json_are_refused(agent: SessionAgent) -> None:
    session = agent.session("s")
    session.create()
    for text in ("\ud800", "x\udfff", "\ude00\ud83d"):
        with pytest.raises(session_agent.InvalidRequestError):
            session.append_events(events=[{"action": "user_message", "content": text}])
    for value in (float("nan"), float("inf")):
        with pytest.raises(ValueError):
            session.append_message(message={"role": "user", "parts": [{"type": "text", "text": "Hi"}], "metadata": value})
    with pytest.raises(TypeError):
        session.append_message(message={"role": "user", "parts": [{"type": "text", "text": "Hi"}], "metadata": b"bytes"})
    assert list(session.events()) == []


def test_a_large_message_round_trips_and_a_larger_one_is_refused(agent: SessionAgent) -> None:
    session = agent.session("s")
    session.create()
    text = "ä" * (3 * 2**19)
    session.append_message(message={"id": "m", "role": "user", "parts": [{"type": "text", "text": text}]})
    assert [message["parts"][0]["text"] == text for message in session.history()] == [True]
    with pytest.raises(session_agent.PayloadTooLargeError) as refused:
        session.append_message(message={"role": "user", "parts": [{"type": "text", "text": "x" * 5 * 2**20}]})
    assert refused.value.limit


def test_all_pages_are_iterated(agent: SessionAgent, open_async: Callable[[], AsyncSessionAgent]) -> None:
    session = agent.session("s0")
    session.create()
    for n in range(1, 7):
        agent.session(f"s{n}").create()
    session.append_events(events=[{"id": f"e{n}", "action": "user_message", "content": str(n)} for n in range(40)])
    expected = [f"e{n}" for n in range(40)]
    assert [event["id"] for event in session.events(limit=7)] == expected
    assert [event["id"] for event in session.events(limit=7, after_seq=30)] == expected[30:]
    assert [message["id"] for message in session.history(limit=7)] == expected[::-1]
    assert [len(page["messages"]) for page in session.history_pages(limit=15)] == [15, 15, 10]
    assert [change["id"] for change in session.changes(limit=7, follow=False)] == expected
    assert {one["id"] for one in agent.sessions(limit=2)} == {f"s{n}" for n in range(7)}
    agent.define_block(label="kb", kind="searchable")
    for n in range(9):
        agent.set_entry(label="kb", key=f"k{n}", content=str(n))
    assert sorted(entry["key"] for entry in agent.entries(label="kb", limit=2)) == [f"k{n}" for n in range(9)]
    agent.define_block(label="how", kind="loadable")
    for n in range(5):
        agent.put_skill(label="how", key=f"d{n}", content=str(n))
    assert len(list(agent.skills(label="how", limit=2))) == 5

    async def run() -> None:
        async with open_async() as other:
            assert [event["id"] async for event in other.session("s0").events(limit=7)] == expected
            assert [message["id"] async for message in other.session("s0").history(limit=7)] == expected[::-1]
            assert len([one async for one in other.sessions(limit=2)]) == 7
            assert len([entry async for entry in other.entries(label="kb", limit=2)]) == 9

    asyncio.run(run())


def test_changes_are_followed(agent: SessionAgent) -> None:
    session = agent.session("s")
    session.create()
    threading.Timer(0.3, lambda: session.append_events(events=[{"id": "late", "action": "user_message", "content": "x"}])).start()
    feed = session.changes(pause_s=0.05)
    assert next(feed)["id"] == "late"
    feed.close()


def test_concurrent_writers_lose_nothing(agent: SessionAgent, open_async: Callable[[], AsyncSessionAgent]) -> None:
    session = agent.session("s")
    session.create()

    async def run() -> None:
        async with open_async() as other:
            work = [
                other.session("s").append_events(events=[{"id": f"a{n}", "action": "user_message", "content": "x"}])
                for n in range(40)
            ]
            await asyncio.gather(*work)

    def write(n: int) -> None:
        for m in range(5):
            session.append_events(events=[{"id": f"t{n}-{m}", "action": "user_message", "content": "x"}])

    threads = [threading.Thread(target=write, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    asyncio.run(run())
    for thread in threads:
        thread.join()
    assert len({event["id"] for event in session.events()}) == 70


def test_one_async_client_serves_several_event_loops(open_async: Callable[[], AsyncSessionAgent]) -> None:
    agent = open_async()
    for n in range(3):
        assert asyncio.run(agent.session(f"s{n}").create())["id"] == f"s{n}"


def test_exports_of_sessions_and_agents_are_imported(
    agent: SessionAgent, open_async: Callable[[], AsyncSessionAgent]
) -> None:
    for name in ("one", "two", "three"):
        session = agent.session(name)
        session.create(name=name)
        session.append_events(
            events=[{"id": f"{name}-{n}", "action": "user_message", "content": "x\u2028" * 500} for n in range(50)]
        )
    reports: list[session_agent.Progress] = []
    file = b"".join(agent.session("one").export_session(on_progress=reports.append))
    assert reports[-1] == (len(file), file.count(b"\n"))
    ways: list[Any] = [file, file.decode(), [file[:100], file[100:]], (file[n : n + 99] for n in range(0, len(file), 99))]
    for n, way in enumerate(ways):
        agent.session(f"copy{n}").import_session(way)
        assert [event["id"] for event in agent.session(f"copy{n}").events()] == [f"one-{n}" for n in range(50)]
        agent.delete_session(session_id=f"copy{n}")
    with pytest.raises(SessionAgentError):
        agent.session("half").import_session(file[: len(file) // 2])

    async def run() -> None:
        async with open_async() as other:
            whole = b"".join([piece async for piece in other.export_agent()])
            for part_bytes in (1, 30_000, 2**26):
                async with AsyncSessionAgent(URL, f"{other.name}-{part_bytes}", token=TOKEN) as copy:
                    async def pieces() -> Any:
                        for at in range(0, len(whole), 777):
                            yield whole[at : at + 777]

                    outcome = await copy.import_agent(pieces(), part_bytes=part_bytes)
                    assert (outcome["sessions"], outcome["events"]) == (3, 150)
                    again = await copy.import_agent(whole, part_bytes=part_bytes)
                    assert (again["imported"], again["skipped"]) == (0, 3)
            lost = b"\n".join(line for line in whole.split(b"\n") if b'"end"' not in line)
            async with AsyncSessionAgent(URL, f"{other.name}-lost", token=TOKEN) as copy:
                with pytest.raises(SessionAgentError):
                    await copy.import_agent(lost)

    asyncio.run(run())


def test_a_token_function_is_called_for_each_request(agent: SessionAgent) -> None:
    session = agent.session("mine")
    session.create()
    agent.session("other").create()
    minted = agent.mint_token(preset="chat", session_id="mine", expires_in=600)["token"]
    calls: list[int] = []

    def token() -> str:
        calls.append(1)
        return minted

    with SessionAgent(URL, agent.name, token=token) as narrowed:
        assert (narrowed.get_session(session_id="mine") or {})["id"] == "mine"
        for refused in (
            lambda: narrowed.get_session(session_id="other"),
            lambda: narrowed.destroy(confirm=agent.name),
            lambda: list(narrowed.export_agent()),
        ):
            with pytest.raises((session_agent.ForbiddenError, session_agent.UnauthorizedError)):
                refused()
    assert len(calls) == 4
    with SessionAgent(URL, agent.name) as nobody, pytest.raises(session_agent.UnauthorizedError):
        nobody.get_stats()

    async def run() -> None:
        async def fetch() -> str:
            return minted

        async with AsyncSessionAgent(URL, agent.name, token=fetch) as other:
            assert (await other.session("mine").get_session() or {})["id"] == "mine"

    asyncio.run(run())

    async def never() -> str:
        return minted

    with SessionAgent(URL, agent.name, token=never) as blocking, pytest.raises(TypeError):
        blocking.get_stats()


def test_a_turn_streams_and_is_cancelled(agent: SessionAgent, open_async: Callable[[], AsyncSessionAgent]) -> None:
    session = agent.session("s")
    chunks = list(session.chat("Hi \u2028 \x85 there"))
    assert [chunks[0]["type"], chunks[-1]["type"]] == ["start", "finish"]
    text = "".join(chunk["delta"] for chunk in chunks if chunk["type"] == "text-delta")
    assert "Hi \u2028 \x85 there" in text
    newest = next(session.history())
    assert (newest["role"], newest["parts"][-1]["text"]) == ("assistant", text)
    assert list(session.resume_chat()) == []
    assert session.cancel_turn()["cancelled"] is False
    outcome = session.run_turn(message={"id": "q", "role": "user", "parts": [{"type": "text", "text": "Again"}]})
    assert outcome["message"]["role"] == "assistant"

    async def run() -> None:
        async with open_async() as other:
            kinds = [chunk["type"] async for chunk in other.session("s").chat({"id": "m3", "role": "user", "parts": [{"type": "text", "text": "Hi"}]})]
            assert kinds[-1] == "finish"
            assert [chunk async for chunk in other.session("s").resume_chat()] == []

    asyncio.run(run())


def test_a_custom_agent_loop(agent: SessionAgent, open_async: Callable[[], AsyncSessionAgent]) -> None:
    agent.define_block(label="memory", kind="writable", description="What to remember")
    session = agent.session("s")
    session.create()
    session.append_events(events=[{"id": "q", "action": "user_message", "content": "I like tea."}])
    for format in ("openai", "anthropic", "workers-ai"):
        model_input = session.model_input(format=format)
        assert model_input.messages[-1]["role"] == "user" and model_input.leaf_id == "q" and "set_context" in model_input.tool_names
    model_input = session.model_input(format="openai", max_tokens=5000)
    call = {"id": "c1", "type": "function", "function": {"name": "set_context", "arguments": '{"label":"memory","content":"Likes tea."}'}}
    output, failed = model_input.run_tool("set_context", call["function"]["arguments"])
    assert not failed
    answers: list[dict[str, Any]] = [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": output},
        {"role": "assistant", "content": [{"type": "text", "text": "Noted."}]},
    ]
    usage = [{"prompt_tokens": 100, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 60}}, {"prompt_tokens": 120, "completion_tokens": 3}]
    first = session.persist(model_input, answers, usage=usage)
    again = session.persist(model_input, answers, usage=usage)
    assert [event["inserted"] for event in first["events"]] == [True] * 3
    assert [event["inserted"] for event in again["events"]] == [False] * 3
    events = list(session.events())
    assert [event["action"] for event in events] == ["user_message", "tool_call_request", "tool_result", "agent_message"]
    assert events[2].get("toolName") == "set_context"
    assert (session.get_session() or {})["usage"]["inputTokens"] == 220
    with pytest.raises(session_agent.LeafMovedError):
        session.persist(model_input, [{"role": "assistant", "content": "Late."}])
    anthropic_messages: list[dict[str, Any]] = [
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "…", "signature": "s"}, {"type": "text", "text": "Let me see."}, {"type": "tool_use", "id": "t1", "name": "look", "input": {"a": 1}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "broken"}], "is_error": True}]},
        {"role": "assistant", "content": "It broke."},
    ]

    async def run() -> None:
        async with open_async() as other:
            model_input = await other.session("s").model_input(format="anthropic")
            assert isinstance(model_input.request["system"], (str, list))
            await other.session("s").persist(model_input, anthropic_messages, usage={"input_tokens": 10, "output_tokens": 2, "cache_read_input_tokens": 4})

    asyncio.run(run())
    newest = list(session.events(after_seq=4))
    assert [event["action"] for event in newest] == ["tool_call_request", "tool_result", "agent_message"]
    assert newest[0]["content"] == "Let me see." and newest[1].get("isError") is True and newest[1].get("toolName") == "look"
    assert (session.get_session() or {})["usage"]["inputTokens"] == 234
    model_input = session.model_input(leaf_id="q")
    session.persist(model_input, [{"role": "assistant", "content": "A branch."}])
    assert len(session.get_branches(message_id="q")["messages"]) == 2
    with pytest.raises(TypeError):
        session.persist(model_input, [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}])


def test_a_response_of_another_server_is_reported(agent: SessionAgent, flaky: Any) -> None:
    with SessionAgent(flaky.url, agent.name, token=TOKEN, retry=session_agent.NO_RETRY) as other:
        answers: list[tuple[Any, int | None, str]] = [
            ((502, b"<html>" + b"x" * 1000, {}), 502, "not by a Session Agent"),
            ((200, b"<html>", {}), 200, "not by a Session Agent"),
            ((404, b'{"error":"nope"}', {}), 404, "not by a Session Agent"),
            ((307, b"", {"location": "https://else.example/secret?token=x"}), 307, "https://else.example."),
            ((503, b'{"error":{"code":"of_tomorrow","message":"New."}}', {}), 503, "New."),
        ]
        for answer, status, words in answers:
            flaky.plan = [answer]
            with pytest.raises(SessionAgentError) as caught:
                other.get_stats()
            assert caught.value.status == status and words in str(caught.value), str(caught.value)
            assert "secret" not in str(caught.value) and len(str(caught.value)) < 500
        assert isinstance(caught.value, SessionAgentError) and caught.value.code == "of_tomorrow"
    with SessionAgent("http://127.0.0.1:1", "a", retry=session_agent.NO_RETRY) as nowhere, pytest.raises(NetworkError):
        nowhere.get_stats()


def test_the_types_name_every_shape(api: dict[str, Any]) -> None:
    renamed = {"Event": "SessionEvent", "WorkingContext": "BuiltContext", "File": "ContextFile"}
    for name, schema in api["components"]["schemas"].items():
        if name == "Error":
            continue
        shape = getattr(types, renamed.get(name, name))
        if "properties" in schema:
            assert set(shape.__annotations__) == set(schema["properties"]), name
