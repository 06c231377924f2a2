"""Iterators over paginated results."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from typing import Any, Protocol, Unpack

from .._http import sleep_async
from .._options import CallOptions, given
from ..types import Change, HistoryPage, SessionEvent

CHANGES_PAUSE_S = 1.0
EVENTS_PAGE = 500


class AsyncCaller(Protocol):
    async def call(
        self, operation: str, input: Mapping[str, Any] | None = None, **options: Unpack[CallOptions]
    ) -> Any: ...


async def items_of(
    caller: AsyncCaller, operation: str, field: str, input: Mapping[str, Any], options: CallOptions
) -> AsyncGenerator[Any, None]:
    """The items of pages that follow each other by `cursor`."""
    body = given(input)
    while True:
        page = await caller.call(operation, body, **options)
        for item in page[field]:
            yield item
        if page.get("cursor") is None:
            return
        body = {**body, "cursor": page["cursor"]}


async def history_pages(
    caller: AsyncCaller, input: Mapping[str, Any], options: CallOptions
) -> AsyncGenerator[HistoryPage, None]:
    body = given(input)
    while True:
        page: HistoryPage = await caller.call("getHistory", body, **options)
        yield page
        if page["cursor"] is None:
            return
        body = {**body, "before": page["cursor"]}


async def events_of(
    caller: AsyncCaller, input: Mapping[str, Any], options: CallOptions
) -> AsyncGenerator[SessionEvent, None]:
    body = {"limit": EVENTS_PAGE, "afterSeq": 0, **given(input)}
    while True:
        page: list[SessionEvent] = await caller.call("loadEvents", body, **options)
        for event in page:
            yield event
        # A page may be shorter than its limit, because answers are bounded in bytes.
        if not page:
            return
        body["afterSeq"] = page[-1]["seq"]


async def changes_of(
    caller: AsyncCaller, since: int, limit: int, follow: bool, pause_s: float, options: CallOptions
) -> AsyncGenerator[Change, None]:
    while True:
        page = await caller.call("getChanges", {"since": since, "limit": limit}, **options)
        for change in page["changes"]:
            yield change
        since = page["cursor"]
        if page["changes"]:
            continue
        if not follow:
            return
        await sleep_async(pause_s)
