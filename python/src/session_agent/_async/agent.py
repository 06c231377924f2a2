"""One agent: every operation as a method, its sessions, and its streams."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from types import TracebackType
from typing import Any, Self, Unpack

import httpx

from .._http import brings_its_ids, decoded
from .._options import CallOptions, NOT_GIVEN, NotGiven, Options, Retry, Token, Trace, USUAL_TIMEOUT_S
from .._transfer import AsyncImportFile, ExportLine, OnProgress
from ..types import Entry, Filter, ForeignRow, Imported, ImportedAgent, Session, Skill, UiMessage
from . import pages
from .connection import AsyncConnection
from .operations import READS, AsyncAgentOperations
from .session import AsyncSessionClient
from .transfer import export_agent, export_session, import_agent, import_session, lines_of


class AsyncSessionAgent(AsyncAgentOperations):
    """One agent, with every operation as a method. Nothing is sent before the first call.

    `target` is the Worker's URL, `name` the agent's name. `token` is the Worker's secret or a
    minted token, or a function that gives one for each request. `timeout` is in seconds,
    without a byte from the agent. `http_client` is used instead of one created here, and stays
    open when this object is closed.
    """

    def __init__(
        self,
        target: str,
        name: str,
        *,
        token: Token = None,
        retry: Retry = Retry(),
        timeout: float | None = USUAL_TIMEOUT_S,
        trace: Callable[[], Trace | None] | None = None,
        headers: Mapping[str, str] | None = None,
        http_client: httpx.AsyncClient | None = None,
    ) -> None:
        options = Options(target, name, token, retry, timeout, trace, headers)
        self.name = name
        self._connection = AsyncConnection(options, http_client)

    @property
    def options(self) -> Options:
        return self._connection.options

    async def call(
        self, operation: str, input: Mapping[str, Any] | None = None, **options: Unpack[CallOptions]
    ) -> Any:
        """Any operation by its name, also one that is newer than this client."""
        return await operate(self._connection, operation, input or {}, options)

    def session(self, id: str) -> AsyncSessionClient:
        """One session of this agent. Nothing is sent, and the session need not be there yet."""
        return AsyncSessionClient(self._connection, id, operate)

    async def health(self, **options: Unpack[CallOptions]) -> dict[str, str]:
        """Whether the Worker is up, and which build it is."""
        response = await self._connection.request(
            "health", "GET", "/health", may_repeat=True, at_root=True, call=options
        )
        return decoded(await self._connection.read(response, "health"), response.status_code, "health")

    async def get_messages(self, *, session_id: str, **options: Unpack[CallOptions]) -> list[UiMessage]:
        """The newest messages of a conversation, as chat clients load them."""
        return await self.session(session_id).get_messages(**options)

    def export_session(
        self, *, session_id: str, on_progress: OnProgress | None = None, **options: Unpack[CallOptions]
    ) -> AsyncGenerator[bytes, None]:
        """A session as a file of JSON lines. Raises where the file was cut off or broke."""
        return export_session(self._connection, session_id, on_progress, options)

    def export_lines(
        self, *, session_id: str, on_progress: OnProgress | None = None, **options: Unpack[CallOptions]
    ) -> AsyncGenerator[ExportLine, None]:
        """The same, as values: one for each line. The last one is the `end`."""
        return lines_of(self.export_session(session_id=session_id, on_progress=on_progress, **options))

    async def import_session(
        self,
        *,
        session_id: str,
        file: AsyncImportFile,
        allow_sources: bool = False,
        on_progress: OnProgress | None = None,
        **options: Unpack[CallOptions],
    ) -> Imported:
        """Reads an exported session in, under this id."""
        return await import_session(self._connection, session_id, file, allow_sources, on_progress, options)

    def export_agent(
        self, *, after: str | None = None, on_progress: OnProgress | None = None, **options: Unpack[CallOptions]
    ) -> AsyncGenerator[bytes, None]:
        """The whole agent as a file: its settings, tools, memory and sessions. Needs the Worker's secret.

        `after` is that of the last `cursor` line of an export that broke off.
        """
        return export_agent(self._connection, after, on_progress, options)

    async def import_agent(
        self,
        file: AsyncImportFile,
        *,
        allow_sources: bool = False,
        part_bytes: int = 64 * 2**20,
        on_progress: OnProgress | None = None,
        **options: Unpack[CallOptions],
    ) -> ImportedAgent:
        """Brings such a file into this agent, which must be empty.

        An import that broke off is repeated with the same file. A file that is longer than
        `part_bytes` is sent in several requests, each of whole sessions.
        """
        return await import_agent(self._connection, file, allow_sources, part_bytes, on_progress, options)

    def sessions(
        self,
        *,
        limit: int | NotGiven = NOT_GIVEN,
        where: Filter | None | NotGiven = NOT_GIVEN,
        **options: Unpack[CallOptions],
    ) -> AsyncGenerator[Session, None]:
        """All sessions, the newest activity first. `limit` is a page's."""
        return pages.items_of(self, "listSessions", "sessions", {"limit": limit, "where": where}, options)

    def entries(
        self,
        *,
        label: str,
        session_id: str | None | NotGiven = NOT_GIVEN,
        limit: int | NotGiven = NOT_GIVEN,
        where: Filter | None | NotGiven = NOT_GIVEN,
        **options: Unpack[CallOptions],
    ) -> AsyncGenerator[Entry, None]:
        """All entries of a searchable block."""
        body = {"label": label, "sessionId": session_id, "limit": limit, "where": where}
        return pages.items_of(self, "listEntries", "entries", body, options)

    def skills(
        self,
        *,
        label: str,
        session_id: str | None | NotGiven = NOT_GIVEN,
        limit: int | NotGiven = NOT_GIVEN,
        where: Filter | None | NotGiven = NOT_GIVEN,
        **options: Unpack[CallOptions],
    ) -> AsyncGenerator[Skill, None]:
        """All documents of a loadable block, without their contents."""
        body = {"label": label, "sessionId": session_id, "limit": limit, "where": where}
        return pages.items_of(self, "listSkills", "skills", body, options)

    def foreign_rows(self, **options: Unpack[CallOptions]) -> AsyncGenerator[ForeignRow, None]:
        """The rows that the Agents SDK left in this agent's object."""
        return pages.items_of(self, "loadForeignRows", "rows", {}, options)

    async def aclose(self) -> None:
        """Closes the connections. The next call opens new ones."""
        await self._connection.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.options.target!r}, {self.name!r})"


async def operate(
    connection: AsyncConnection, operation: str, body: Mapping[str, Any], call: CallOptions
) -> Any:
    may_repeat = READS.get(operation, False) or brings_its_ids(operation, body)
    return await connection.operate(operation, body, may_repeat=may_repeat, call=call)

