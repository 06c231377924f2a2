"""A program that uses the client generated from openapi.json by openapi-python-client."""

from __future__ import annotations

import sys
from io import BytesIO

from session_agent_api import AuthenticatedClient
from session_agent_api.api.default import (
    append_message,
    chat,
    create_session,
    export_session,
    get_history,
    import_session,
    search,
)
from session_agent_api.models import (
    AppendMessageBody,
    ChatBody,
    CreateSessionBody,
    Error,
    GetHistoryBody,
    SearchBody,
    SentMessage,
    SentMessagePartsItem,
)
from session_agent_api.types import File

url, token = sys.argv[1:]
client = AuthenticatedClient(base_url=url, token=token)
agent = "made-by-openapi-python-client"


def message(text: str) -> SentMessage:
    return SentMessage(role="user", parts=[SentMessagePartsItem(type_="text", text=text)])


session = create_session.sync(agent, client=client, body=CreateSessionBody(id="s", name="Typed"))
assert session.name == "Typed", session
append_message.sync(agent, client=client, body=AppendMessageBody(session_id="s", message=message("I like tea.")))
history = get_history.sync(agent, client=client, body=GetHistoryBody(session_id="s"))
assert [part["text"] for one in history.messages for part in one.parts] == ["I like tea."], history

stream = chat.sync(agent, client=client, body=ChatBody(id="s", message=message("Hello")))
assert stream.startswith('data: {"type":"start"'), stream
assert stream.endswith("data: [DONE]\n\n"), stream

refused = search.sync(agent, client=client, body=SearchBody(limit=3))
assert isinstance(refused, Error), refused
assert (refused.error.code, refused.error.details.field) == ("invalid_request", "query"), refused

file = export_session.sync(agent, "s", client=client)
imported = import_session.sync(agent, "copy", client=client, body=File(payload=BytesIO(file)))
assert imported.events > 2, imported
