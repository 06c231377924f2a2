"""Whole sessions and whole agents as files of JSON lines, out and in. Both are streamed: neither side
loads a file into memory."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from typing import Any

import httpx

from .._http import decoded, lost, segment_of
from .._options import CallOptions
from .._transfer import (
    AsyncImportFile,
    Counter,
    End,
    ExportLine,
    LineCutter,
    OnProgress,
    Parts,
    add,
    pieces_of_async,
)
from ..types import Imported, ImportedAgent
from .connection import AsyncConnection

NDJSON = {"content-type": "application/x-ndjson"}


async def export_session(
    connection: AsyncConnection, session_id: str, on_progress: OnProgress | None, call: CallOptions
) -> AsyncGenerator[bytes, None]:
    path = f"/sessions/{segment_of(session_id, 'The id of a session in an address')}/export"
    async for piece in download(connection, "exportSession", path, {}, End("exportSession", "end"), on_progress, call):
        yield piece


async def export_agent(
    connection: AsyncConnection, after: str | None, on_progress: OnProgress | None, call: CallOptions
) -> AsyncGenerator[bytes, None]:
    params = {} if after is None else {"after": after}
    async for piece in download(
        connection, "exportAgent", "/export", params, End("exportAgent", "done"), on_progress, call
    ):
        yield piece


async def download(
    connection: AsyncConnection,
    operation: str,
    path: str,
    params: dict[str, str],
    end: End,
    on_progress: OnProgress | None,
    call: CallOptions,
) -> AsyncGenerator[bytes, None]:
    response = await connection.request(operation, "GET", path, params=params, may_repeat=True, call=call)
    counter = Counter(on_progress)
    try:
        async for piece in response.aiter_bytes():
            end.add(piece)
            counter.count(piece)
            yield piece
    except (httpx.RequestError, httpx.StreamError) as error:
        raise lost(operation, error) from error
    finally:
        await response.aclose()
    end.check()


async def lines_of(pieces: AsyncGenerator[bytes, None]) -> AsyncGenerator[ExportLine, None]:
    """The lines of a file as values."""
    cutter = LineCutter()
    try:
        async for piece in pieces:
            for line in cutter.cut(piece):
                yield json.loads(line)
    finally:
        await pieces.aclose()


async def import_session(
    connection: AsyncConnection,
    session_id: str,
    file: AsyncImportFile,
    allow_sources: bool,
    on_progress: OnProgress | None,
    call: CallOptions,
) -> Imported:
    path = f"/sessions/{segment_of(session_id, 'The id of a session in an address')}/import"
    body = stream_of(file, Counter(on_progress))
    return await upload(connection, "importSession", path, body, allow_sources, call)


async def import_agent(
    connection: AsyncConnection,
    file: AsyncImportFile,
    allow_sources: bool,
    part_bytes: int,
    on_progress: OnProgress | None,
    call: CallOptions,
) -> ImportedAgent:
    """Brings a file in, part by part. Sessions that are there already are not written again."""
    parts = Parts(part_bytes)
    lines = cut_lines(stream_of(file, Counter(on_progress)))
    total: ImportedAgent = {"sessions": 0, "imported": 0, "skipped": 0, "events": 0}
    try:
        while not parts.is_over:
            body = part_of(parts, lines)
            add(total, await upload(connection, "importAgent", "/import", body, allow_sources, call))
    finally:
        await lines.aclose()
    return total


async def part_of(parts: Parts, lines: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    head = parts.begin()
    if head:
        yield head
    async for line in lines:
        yield parts.take(line)
        if parts.is_full:
            return
    # The agent's error explains what is wrong with a file that has no end.
    parts.is_over = True


async def upload(
    connection: AsyncConnection,
    operation: str,
    path: str,
    body: AsyncGenerator[bytes, None],
    allow_sources: bool,
    call: CallOptions,
) -> Any:
    params = {"allowSources": "true"} if allow_sources else {}
    response = await connection.request(
        operation, "POST", path, content=body, headers=NDJSON, params=params, call=call
    )
    return decoded(await connection.read(response, operation), response.status_code, operation)


async def cut_lines(pieces: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    cutter = LineCutter()
    async for piece in pieces:
        for line in cutter.cut(piece):
            yield line
    last = cutter.last()
    if last is not None:
        yield last


async def stream_of(file: AsyncImportFile, counter: Counter) -> AsyncGenerator[bytes, None]:
    async for piece in pieces_of_async(file):
        counter.count(piece)
        yield piece
