"""Chat turns, streamed."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from typing import Any

import httpx

from .._chat import ChatChunk, EventReader
from .._http import json_of, lost, segment_of
from .._options import CallOptions
from ..errors import NetworkError
from .connection import AsyncConnection


async def chat(
    connection: AsyncConnection, body: Mapping[str, Any], call: CallOptions
) -> AsyncGenerator[ChatChunk, None]:
    """Begins a turn when it is iterated."""
    headers = {"content-type": "application/json"}
    response = await connection.request("chat", "POST", "/chat", content=json_of(body), headers=headers, call=call)
    async for chunk in chunks_of(response):
        yield chunk


async def resume_chat(
    connection: AsyncConnection, session_id: str, call: CallOptions
) -> AsyncGenerator[ChatChunk, None]:
    path = f"/chat/{segment_of(session_id, 'The id of a session in an address')}/stream"
    response = await connection.request("chat", "GET", path, may_repeat=True, call=call)
    if response.status_code == 204:
        await response.aclose()
        return
    async for chunk in chunks_of(response):
        yield chunk


async def chunks_of(response: httpx.Response) -> AsyncGenerator[ChatChunk, None]:
    """The data of the events, until `[DONE]`."""
    events = EventReader()
    try:
        async for piece in response.aiter_bytes():
            for chunk in events.read(piece):
                yield chunk
            if events.is_done:
                return
    except (httpx.RequestError, httpx.StreamError, ValueError) as error:
        raise lost("chat", error) from error
    finally:
        await response.aclose()
    raise NetworkError(
        "The connection ended before the answer was complete. Call `resume_chat` to get the complete answer.", operation="chat"
    )
