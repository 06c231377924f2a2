"""Files of JSON lines: splitting, counting and checking them. Pure functions."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Iterable, Iterator
from typing import Any, NamedTuple, Protocol, TypeAlias, cast

from .errors import NetworkError, error_from
from .types import ImportedAgent


class Progress(NamedTuple):
    bytes: int
    lines: int


OnProgress: TypeAlias = Callable[[Progress], None]
"""Called after each piece of the file."""

ExportLine: TypeAlias = dict[str, Any]
"""A line of a file. Its `type` is its kind."""


class Readable(Protocol):
    """A file that is open."""

    def read(self, size: int, /) -> bytes | str: ...


ImportFile: TypeAlias = "str | bytes | bytearray | memoryview | Readable | Iterable[bytes] | Iterable[str]"
"""A text, bytes, a file that is open, or anything that iterates over bytes or texts."""

AsyncImportFile: TypeAlias = "ImportFile | AsyncIterable[bytes] | AsyncIterable[str]"
"""The same, or anything that iterates asynchronously."""

PIECE_BYTES = 64 * 1024
# A file's last line is short, so a longer end is not checked.
END_BYTES = 16 * 1024


def pieces_of(file: ImportFile) -> Iterator[bytes]:
    if isinstance(file, str):
        file = file.encode()
    if isinstance(file, (bytes, bytearray, memoryview)):
        whole = memoryview(file)
        for at in range(0, len(whole), PIECE_BYTES):
            yield bytes(whole[at : at + PIECE_BYTES])
    elif hasattr(file, "read"):
        readable = cast(Readable, file)
        while piece := readable.read(PIECE_BYTES):
            yield bytes_of(piece)
    else:
        for piece in cast("Iterable[bytes | str]", file):
            yield bytes_of(piece)


async def pieces_of_async(file: AsyncImportFile) -> AsyncGenerator[bytes, None]:
    if hasattr(file, "__aiter__"):
        async for piece in cast("AsyncIterable[bytes | str]", file):
            yield bytes_of(piece)
    else:
        for piece in pieces_of(cast(ImportFile, file)):
            yield piece


def bytes_of(piece: bytes | str) -> bytes:
    return piece.encode() if isinstance(piece, str) else bytes(piece)


class Counter:
    """Reports after each piece how many bytes and lines have passed."""

    def __init__(self, on_progress: OnProgress | None) -> None:
        self._on_progress = on_progress
        self._bytes = 0
        self._lines = 0

    def count(self, piece: bytes) -> None:
        if self._on_progress is not None:
            self._bytes += len(piece)
            self._lines += piece.count(b"\n")
            self._on_progress(Progress(self._bytes, self._lines))


class End:
    """The end of a file. Fails if its last line is not of the type that ends such a file."""

    def __init__(self, operation: str, kind: str) -> None:
        self._operation = operation
        self._kind = kind
        self._end = b""

    def add(self, piece: bytes) -> None:
        self._end = (self._end + piece)[-END_BYTES:]

    def check(self) -> None:
        try:
            last: Any = json.loads(self._end.rstrip().rsplit(b"\n", 1)[-1])
        except ValueError:
            last = None
        line = cast("dict[str, Any]", last) if isinstance(last, dict) else {}
        if line.get("type") == self._kind:
            return
        if line.get("type") == "error":
            error = line.get("error")
            fields = cast("dict[str, Any]", error) if isinstance(error, dict) else line
            raise error_from(fields, status=None, operation=self._operation)
        raise NetworkError(f"The file was cut off: it has no `{self._kind}`.", operation=self._operation)


class LineCutter:
    """Cuts pieces into lines, each with its line break. The last one may lack it."""

    def __init__(self) -> None:
        self._rest: list[bytes] = []

    def cut(self, piece: bytes) -> Iterator[bytes]:
        *lines, rest = piece.split(b"\n")
        for line in lines:
            yield b"".join([*self._rest, line, b"\n"])
            self._rest = []
        if rest:
            self._rest.append(rest)

    def last(self) -> bytes | None:
        return b"".join(self._rest) if self._rest else None


DONE = b'{"type":"done"'
END = b'{"type":"end"'

#: The most sessions of one request, whose work is then a few seconds of the agent's processor.
PART_SESSIONS = 2_000


class Parts:
    """Cuts the file of an agent between two sessions. Each part is a file by itself.

    `take` is called for each line: its result is sent, and `is_full` marks the end of the
    part.
    """

    def __init__(self, part_bytes: int) -> None:
        self._part_bytes = part_bytes
        self._format: Any = None
        self._is_first = True
        self._bytes = 0
        self._sessions = 0
        self._whole = 0
        self.is_full = False
        self.is_over = False

    def begin(self) -> bytes:
        """What a part begins with that is not the file's own beginning."""
        self._bytes, self._sessions, self.is_full = 0, 0, False
        if self._is_first:
            return b""
        return f'{{"type":"agent","format":{json.dumps(self._format)},"continued":true}}\n'.encode()

    def take(self, line: bytes) -> bytes:
        if self._is_first:
            self._is_first = False
            self._format = format_of(line)
        self._bytes += len(line)
        if line.startswith(DONE):
            self.is_full = self.is_over = True
            self._whole += self._sessions
            count: Any = json.loads(line).get("sessions")
            if count != self._whole:
                raise NetworkError(
                    f"The file has {self._whole} sessions of {count}: lines were lost.", operation="importAgent"
                )
            return self._done()
        if line.startswith(END):
            self._sessions += 1
            if self._bytes >= self._part_bytes or self._sessions >= PART_SESSIONS:
                self.is_full = True
                self._whole += self._sessions
                return line + self._done()
        return line

    def _done(self) -> bytes:
        return f'{{"type":"done","sessions":{self._sessions}}}\n'.encode()


def format_of(line: bytes) -> Any:
    """The format that the first line names; any other line is refused by the agent."""
    try:
        value: Any = json.loads(line)
    except ValueError:
        return None
    return cast("dict[str, Any]", value).get("format") if isinstance(value, dict) else None


def add(total: ImportedAgent, part: ImportedAgent) -> None:
    whole, more = cast("dict[str, Any]", total), cast("dict[str, Any]", part)
    for field in ("sessions", "imported", "skipped", "events"):
        whole[field] = whole[field] + more[field]
    for field in ("leftOut", "toolsWithoutHeaders", "toolsUnavailable"):
        joined: list[Any] = list(whole.get(field) or [])
        joined += [item for item in cast("list[Any]", more.get(field) or []) if item not in joined]
        if joined:
            whole[field] = joined
