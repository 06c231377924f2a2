"""The HTTP clients that requests go through, created with the first request."""

from __future__ import annotations

import asyncio
import functools
import ssl
import threading
from typing import Any
from weakref import WeakKeyDictionary

import httpx



@functools.cache
def trust() -> ssl.SSLContext:
    """Reading the certificates takes longer than many a call, so all clients share them."""
    return httpx.create_ssl_context()


def usual() -> dict[str, Any]:
    # Neither the token nor the input may go where a redirect leads.
    return {"follow_redirects": False, "verify": trust()}


class Clients:
    """One client for all threads."""

    def __init__(self, own: httpx.Client | None) -> None:
        self._own = own
        self._made: httpx.Client | None = None
        self._lock = threading.Lock()

    def get(self) -> httpx.Client:
        if self._own is not None:
            return self._own
        with self._lock:
            if self._made is None:
                self._made = httpx.Client(**usual())
            return self._made

    def close(self) -> None:
        """A client that the caller brought stays open."""
        with self._lock:
            made, self._made = self._made, None
        if made is not None:
            made.close()


class AsyncClients:
    """A client for each event loop: connections belong to the loop that opened them."""

    def __init__(self, own: httpx.AsyncClient | None) -> None:
        self._own = own
        self._made: WeakKeyDictionary[asyncio.AbstractEventLoop, httpx.AsyncClient] = WeakKeyDictionary()
        self._lock = threading.Lock()

    def get(self) -> httpx.AsyncClient:
        if self._own is not None:
            return self._own
        loop = asyncio.get_running_loop()
        with self._lock:
            if loop not in self._made:
                self._made[loop] = httpx.AsyncClient(**usual())
            return self._made[loop]

    async def aclose(self) -> None:
        """Closes this loop's client. One that the caller brought stays open."""
        with self._lock:
            made = self._made.pop(asyncio.get_running_loop(), None)
        if made is not None:
            await made.aclose()
