"""Chat turns: the request's body, and the chunks of the answer."""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator, Mapping
from typing import Any, Literal, NotRequired, TypeAlias, TypedDict, cast
from uuid import uuid4

from ._options import NOT_GIVEN, NotGiven

__all__ = ["ChatChunk", "ChatMessage", "EventReader", "message_of"]

ChatMessage: TypeAlias = "str | Mapping[str, Any]"
"""A message of the AI SDK. A string is a new message of the user."""


class StartChunk(TypedDict):
    type: Literal["start"]
    messageId: NotRequired[str]
    messageMetadata: NotRequired[Any]


class StepChunk(TypedDict):
    type: Literal["start-step", "finish-step"]


class TextChunk(TypedDict):
    type: Literal["text-start", "text-end", "reasoning-start", "reasoning-end"]
    id: str


class DeltaChunk(TypedDict):
    type: Literal["text-delta", "reasoning-delta"]
    id: str
    delta: str


class ToolInputStartChunk(TypedDict):
    type: Literal["tool-input-start"]
    toolCallId: str
    toolName: str


class ToolInputDeltaChunk(TypedDict):
    type: Literal["tool-input-delta"]
    toolCallId: str
    inputTextDelta: str


class ToolInputChunk(TypedDict):
    type: Literal["tool-input-available"]
    toolCallId: str
    toolName: str
    input: Any


class ToolInputErrorChunk(TypedDict):
    type: Literal["tool-input-error"]
    toolCallId: str
    toolName: str
    input: Any
    errorText: str


class ToolApprovalChunk(TypedDict):
    type: Literal["tool-approval-request"]
    approvalId: str
    toolCallId: str


class ToolOutputChunk(TypedDict):
    type: Literal["tool-output-available"]
    toolCallId: str
    output: Any


class ToolOutputErrorChunk(TypedDict):
    type: Literal["tool-output-error"]
    toolCallId: str
    errorText: str


class ToolDeniedChunk(TypedDict):
    type: Literal["tool-output-denied"]
    toolCallId: str


class FileChunk(TypedDict):
    type: Literal["file"]
    url: str
    mediaType: str


class FinishChunk(TypedDict):
    type: Literal["finish"]
    finishReason: NotRequired[str]
    messageMetadata: NotRequired[Any]


class AbortChunk(TypedDict):
    type: Literal["abort"]
    reason: NotRequired[str]


class ErrorChunk(TypedDict):
    type: Literal["error"]
    errorText: str


ChatChunk: TypeAlias = (
    StartChunk
    | StepChunk
    | TextChunk
    | DeltaChunk
    | ToolInputStartChunk
    | ToolInputDeltaChunk
    | ToolInputChunk
    | ToolInputErrorChunk
    | ToolApprovalChunk
    | ToolOutputChunk
    | ToolOutputErrorChunk
    | ToolDeniedChunk
    | FileChunk
    | FinishChunk
    | AbortChunk
    | ErrorChunk
)
"""A chunk of the AI SDK's UI message stream. `type` is its kind. A chunk that is newer than
this client is passed on unchanged."""

# The longest event is a tool's output, and an answer is at most 4 MiB.
LONGEST_EVENT = 64 * 2**20


def message_of(message: ChatMessage | NotGiven) -> Any:
    """With an id, so that a repetition is known."""
    if not isinstance(message, str):
        return message
    return {"id": str(uuid4()), "role": "user", "parts": [{"type": "text", "text": message}]}


def chat_body(session_id: str, message: ChatMessage | NotGiven, more: Mapping[str, Any]) -> dict[str, Any]:
    fields = {"id": session_id, "message": message_of(message), **more}
    return {name: value for name, value in fields.items() if value is not NOT_GIVEN}


class EventReader:
    """Server-sent events, piece by piece. Only a line feed ends a line here: JSON can contain other breaks."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._text = ""
        self.is_done = False
        """`[DONE]` came. A stream without it was cut off."""

    def read(self, piece: bytes) -> Iterator[ChatChunk]:
        *events, self._text = (self._text + self._decoder.decode(piece)).split("\n\n")
        if len(self._text) > LONGEST_EVENT:
            raise ValueError("An event of the stream is too long.")
        for event in events:
            # An event without data keeps the connection open.
            data = next((line[6:] for line in event.split("\n") if line.startswith("data: ")), None)
            if data == "[DONE]":
                self.is_done = True
                return
            if data is not None:
                yield cast(ChatChunk, json.loads(data))
