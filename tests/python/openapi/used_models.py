"""A program that uses the models generated from openapi.json by datamodel-code-generator."""

from __future__ import annotations

import sys

import httpx
from pydantic import ValidationError
from session_agent_models import AppendMessage, Error, HistoryPage, NewEvent, SentMessage, SentUserMessage, Session, Tag

url, token = sys.argv[1:]
operations = httpx.Client(
    base_url=f"{url}agents/session-agent/made-by-datamodel-code-generator/rpc/",
    headers={"authorization": f"Bearer {token}"},
)


def call(operation: str, body: object) -> str:
    return operations.post(operation, json=body).text


assert Session.model_validate_json(call("createSession", {"id": "s", "name": "Typed"})).name == "Typed"
message = SentMessage.model_validate({"role": "user", "parts": [{"type": "text", "text": "I like tea."}]})
appended = AppendMessage.model_validate({"sessionId": "s", "message": message})
call("appendMessage", appended.model_dump(mode="json", exclude_none=True))
history = HistoryPage.model_validate_json(call("getHistory", {"sessionId": "s"}))
assert [one.role.value for one in history.messages] == ["user"], history
error = Error.model_validate_json(call("getHistory", {"sessionId": "s", "limit": 0}))
assert error.model_dump()["error"]["details"]["field"] == "limit", error

for model, wrong in [
    (Tag, "two\nlines"),
    (SentMessage, {"role": "tool", "parts": []}),
    (SentUserMessage, {"role": "assistant", "parts": []}),
    (NewEvent, {"action": "said", "content": "Hi"}),
    (AppendMessage, {"sessionId": "", "message": message}),
]:
    try:
        model.model_validate(wrong)
    except ValidationError:
        continue
    raise AssertionError(f"{model.__name__} takes {wrong}")
