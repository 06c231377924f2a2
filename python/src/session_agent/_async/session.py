"""One session: the operations on sessions with its id given, its history, events and changes as iterators,
chat, and the input and the output of a model that the caller runs."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Unpack, cast

from .._chat import ChatChunk, ChatMessage, chat_body
from .._http import AsyncOutcome, decoded
from .._options import NOT_GIVEN, CallOptions, NotGiven, Options, given
from .._transfer import AsyncImportFile, ExportLine, OnProgress
from .._turn import MessageLike, ModelFormat, Place, events_of, name_events, object_of, place_of, usage_of
from ..errors import InvalidRequestError
from ..types import (
    Action,
    AppendOutcome,
    Change,
    Entry,
    Filter,
    HistoryPage,
    Imported,
    Session,
    SessionEvent,
    Skill,
    UiMessage,
    WhenBusy,
)
from . import pages
from .chat import chat, resume_chat
from .connection import AsyncConnection
from .operations import AsyncSessionOperations
from .transfer import export_session, import_session, lines_of

# The most events that one context is built from.
MOST_EVENTS = 1000


class AsyncSessionClient(AsyncSessionOperations):
    """One session, with the operations on sessions as methods. `agent.session(id)` names it."""

    def __init__(
        self,
        connection: AsyncConnection,
        id: str,
        operate: Callable[[AsyncConnection, str, Mapping[str, Any], CallOptions], AsyncOutcome[Any]],
    ) -> None:
        if not isinstance(id, str) or id == "":  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ValueError("A session's id must be a string that is not empty.")
        self.id = id
        self._connection = connection
        self._operate = operate

    @property
    def agent_options(self) -> Options:
        return self._connection.options

    async def call(
        self, operation: str, input: Mapping[str, Any] | None = None, **options: Unpack[CallOptions]
    ) -> Any:
        """Any operation by its name, with this session's id."""
        return await self._operate(self._connection, operation, {**(input or {}), "sessionId": self.id}, options)

    async def create(
        self,
        *,
        name: str | None | NotGiven = NOT_GIVEN,
        metadata: Mapping[str, Any] | None | NotGiven = NOT_GIVEN,
        parent_session_id: str | None | NotGiven = NOT_GIVEN,
        tags: Sequence[str] | None | NotGiven = NOT_GIVEN,
        **options: Unpack[CallOptions],
    ) -> Session:
        """Creates the session under this id."""
        fields = {"name": name, "metadata": metadata, "parentSessionId": parent_session_id, "tags": tags}
        return await self._operate(self._connection, "createSession", {**given(fields), "id": self.id}, options)

    async def get_messages(self, **options: Unpack[CallOptions]) -> list[UiMessage]:
        """The newest messages of the conversation, as chat clients load them."""
        response = await self._connection.request(
            "getMessages", "GET", "/get-messages", params={"sessionId": self.id}, may_repeat=True, call=options
        )
        return decoded(await self._connection.read(response, "getMessages"), response.status_code, "getMessages")

    async def history(
        self,
        *,
        leaf_id: str | NotGiven = NOT_GIVEN,
        limit: int | NotGiven = NOT_GIVEN,
        max_bytes: int | NotGiven = NOT_GIVEN,
        before: str | NotGiven = NOT_GIVEN,
        for_model: bool | NotGiven = NOT_GIVEN,
        **options: Unpack[CallOptions],
    ) -> AsyncGenerator[UiMessage, None]:
        """The messages of a branch from the newest to the oldest. `limit` and `max_bytes` are a page's."""
        body = {"leafId": leaf_id, "limit": limit, "maxBytes": max_bytes, "before": before, "forModel": for_model}
        async for page in pages.history_pages(self, body, options):
            for message in reversed(page["messages"]):
                yield message

    def history_pages(
        self,
        *,
        leaf_id: str | NotGiven = NOT_GIVEN,
        limit: int | NotGiven = NOT_GIVEN,
        max_bytes: int | NotGiven = NOT_GIVEN,
        before: str | NotGiven = NOT_GIVEN,
        for_model: bool | NotGiven = NOT_GIVEN,
        **options: Unpack[CallOptions],
    ) -> AsyncGenerator[HistoryPage, None]:
        """The same in pages, upwards. Each page reads from the older message to the newer."""
        body = {"leafId": leaf_id, "limit": limit, "maxBytes": max_bytes, "before": before, "forModel": for_model}
        return pages.history_pages(self, body, options)

    def events(
        self,
        *,
        actions: Sequence[Action] | NotGiven = NOT_GIVEN,
        after_seq: int | NotGiven = NOT_GIVEN,
        since: int | NotGiven = NOT_GIVEN,
        limit: int | NotGiven = NOT_GIVEN,
        **options: Unpack[CallOptions],
    ) -> AsyncGenerator[SessionEvent, None]:
        """The events of the log in the order of their numbers. `limit` is a page's."""
        body = {"actions": actions, "afterSeq": after_seq, "since": since, "limit": limit}
        return pages.events_of(self, body, options)

    def changes(
        self,
        *,
        since: int = 0,
        limit: int = 100,
        follow: bool = True,
        pause_s: float = pages.CHANGES_PAUSE_S,
        **options: Unpack[CallOptions],
    ) -> AsyncGenerator[Change, None]:
        """The changes since a cursor, then those that follow. With `follow=False` it ends with the newest."""
        return pages.changes_of(self, since, limit, follow, pause_s, options)

    def entries(
        self,
        *,
        label: str,
        limit: int | NotGiven = NOT_GIVEN,
        where: Filter | None | NotGiven = NOT_GIVEN,
        **options: Unpack[CallOptions],
    ) -> AsyncGenerator[Entry, None]:
        """All entries of a searchable block of this session."""
        body = {"label": label, "limit": limit, "where": where}
        return pages.items_of(self, "listEntries", "entries", body, options)

    def skills(
        self,
        *,
        label: str,
        limit: int | NotGiven = NOT_GIVEN,
        where: Filter | None | NotGiven = NOT_GIVEN,
        **options: Unpack[CallOptions],
    ) -> AsyncGenerator[Skill, None]:
        """All documents of a loadable block of this session, without their contents."""
        body = {"label": label, "limit": limit, "where": where}
        return pages.items_of(self, "listSkills", "skills", body, options)

    def chat(
        self,
        message: ChatMessage | NotGiven = NOT_GIVEN,
        *,
        messages: Sequence[Mapping[str, Any]] | NotGiven = NOT_GIVEN,
        trigger: Literal["submit-message", "regenerate-message"] | NotGiven = NOT_GIVEN,
        message_id: str | NotGiven = NOT_GIVEN,
        when_busy: WhenBusy | NotGiven = NOT_GIVEN,
        model: str | NotGiven = NOT_GIVEN,
        system_instructions: Sequence[str] | NotGiven = NOT_GIVEN,
        tools: Any | NotGiven = NOT_GIVEN,
        **options: Unpack[CallOptions],
    ) -> AsyncGenerator[ChatChunk, None]:
        """Runs a chat turn when it is iterated. A string is a new message of the user.

        Leaving the loop does not end the turn: `cancel_turn` does.
        """
        more = {
            "messages": messages,
            "trigger": trigger,
            "messageId": message_id,
            "whenBusy": when_busy,
            "model": model,
            "systemInstructions": system_instructions,
            "tools": tools,
        }
        return chat(self._connection, chat_body(self.id, message, more), options)

    def resume_chat(self, **options: Unpack[CallOptions]) -> AsyncGenerator[ChatChunk, None]:
        """The chunks of the turn that runs, from its beginning. None, if no turn runs."""
        return resume_chat(self._connection, self.id, options)

    async def model_input(
        self,
        *,
        format: ModelFormat = "openai",
        system_instructions: Sequence[str] | NotGiven = NOT_GIVEN,
        max_tokens: int | NotGiven = NOT_GIVEN,
        limit: int | NotGiven = NOT_GIVEN,
        keep_media: int | NotGiven = NOT_GIVEN,
        leaf_id: str | NotGiven = NOT_GIVEN,
        **options: Unpack[CallOptions],
    ) -> AsyncModelInput:
        """The input of a model for this session: the frozen prompt, the messages and the memory's tools.

        `format` is the API that it is for. `max_tokens` bounds the whole of it. Pass
        `**input.request` to the provider's client, and give the input to `persist` with what
        was said.
        """
        # A caller who says how much fits means the tokens, and not a number of events.
        most = MOST_EVENTS if limit is NOT_GIVEN and max_tokens is not NOT_GIVEN else limit
        context = await self.build_working_context(
            format=format,
            memory=True,
            system_instructions=system_instructions,
            max_tokens=max_tokens,
            limit=most,
            keep_media=keep_media,
            leaf_id=leaf_id,
            **options,
        )
        return AsyncModelInput(
            session=self,
            format=format,
            request=context.get("modelInput") or {},
            leaf_id=context["leafId"],
            tokens_estimate=context["tokensEstimate"],
            place=place_of(context["leafId"], leaf_id),
        )

    async def persist(
        self,
        after: AsyncModelInput | Place,
        messages: Sequence[MessageLike],
        *,
        usage: Any = None,
        **options: Unpack[CallOptions],
    ) -> AppendOutcome:
        """Writes the new messages of a turn, all of them or none, and its usage.

        `after` is the result of `model_input`: the turn follows its leaf, or `LeafMovedError` is
        raised. `messages` are the new ones in the shape of OpenAI or Anthropic. `usage` is
        theirs, of one step or a list of several. A repeated call uses the same event ids, so it is
        safe to repeat. Reasoning is not stored.
        """
        is_input = isinstance(after, AsyncModelInput)
        place = after.place if is_input else after
        events = events_of(messages)
        if not events:
            return {"events": [], "leafId": place.get("parentId", place.get("expectedLeafId"))}
        name = name_events(events, place)
        outcome = await self.call("appendEvents", {"events": events, **place}, **options)
        spent = usage_of(usage, after.tokens_estimate if is_input else None) if usage is not None else None
        if spent is not None:
            await self._report({**spent, "id": name}, options)
        return outcome

    async def _report(self, usage: dict[str, Any], options: CallOptions) -> None:
        try:
            await self.call("addUsage", usage, **options)
        except InvalidRequestError as error:
            # The other end is older than this client, and learns nothing from usage.
            if error.field != "contextTokens" or "contextTokens" not in usage:
                raise
            del usage["contextTokens"]
            await self.call("addUsage", usage, **options)

    def export_session(
        self, *, on_progress: OnProgress | None = None, **options: Unpack[CallOptions]
    ) -> AsyncGenerator[bytes, None]:
        """The session as a file of JSON lines. Raises where the file was cut off or broke."""
        return export_session(self._connection, self.id, on_progress, options)

    def export_lines(
        self, *, on_progress: OnProgress | None = None, **options: Unpack[CallOptions]
    ) -> AsyncGenerator[ExportLine, None]:
        """The same, as values: one for each line. The last one is the `end`."""
        return lines_of(self.export_session(on_progress=on_progress, **options))

    async def import_session(
        self,
        file: AsyncImportFile,
        *,
        allow_sources: bool = False,
        on_progress: OnProgress | None = None,
        **options: Unpack[CallOptions],
    ) -> Imported:
        """Reads an exported session in, under this id."""
        return await import_session(self._connection, self.id, file, allow_sources, on_progress, options)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.id!r})"


@dataclass
class AsyncModelInput:
    """The input of a model, and the place where `persist` writes the new messages."""

    session: AsyncSessionClient = field(repr=False)
    format: ModelFormat
    request: dict[str, Any]
    """Ready for the provider, but for the model's name: messages, tools, and `system` for Anthropic."""
    leaf_id: str | None
    """The last event that the messages contain. `None`: the session is empty."""
    tokens_estimate: int
    """The estimate of the whole input, in tokens."""
    place: Place

    @property
    def messages(self) -> list[dict[str, Any]]:
        return cast("list[dict[str, Any]]", self.request.get("messages", []))

    @property
    def tools(self) -> list[dict[str, Any]]:
        """The memory's tools, in the provider's shape."""
        return cast("list[dict[str, Any]]", self.request.get("tools", []))

    @property
    def tool_names(self) -> set[str]:
        """The tools that `run_tool` runs. Calls of any other are the caller's."""
        return {tool["function"]["name"] if "function" in tool else tool["name"] for tool in self.tools}

    async def run_tool(
        self, name: str, arguments: Mapping[str, Any] | str, **options: Unpack[CallOptions]
    ) -> tuple[str, bool]:
        """Runs a tool of the memory: its output, and whether it failed. `arguments` may be JSON."""
        outcome = await self.session.call("callTool", {"name": name, "arguments": object_of(arguments)}, **options)
        return outcome["output"], outcome["isError"]
