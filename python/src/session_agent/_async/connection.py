"""The connection to one agent: sends operations and other requests, and gives answers or raises errors.
It knows no operation by name."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, TypeVar

import httpx

from .._clients import AsyncClients
from .._http import (
    OPERATION_NAME,
    REFUSAL_BYTES,
    AsyncOutcome,
    decoded,
    headers_of,
    json_of,
    lost,
    pause_after,
    read_token_async,
    refusal,
    root_of,
    segment_of,
    sleep_async,
    timeout_of,
)
from .._options import CallOptions, Options
from ..errors import SessionAgentError

T = TypeVar("T")

NAME = "An agent's name"


class AsyncConnection:
    def __init__(self, options: Options, client: httpx.AsyncClient | None = None) -> None:
        self.options = options
        self._root = root_of(options.target)
        self._base = f"{self._root}/agents/session-agent/{segment_of(options.name, NAME)}"
        self._clients = AsyncClients(client)

    async def operate(self, operation: str, body: Mapping[str, Any], *, may_repeat: bool, call: CallOptions) -> Any:
        """Runs an operation. `may_repeat`: running it twice is as good as once."""
        # The name is part of a URL, where `.` and `..` lead elsewhere.
        if not OPERATION_NAME.fullmatch(operation):
            raise ValueError("An operation's name must consist of letters and digits, as in `loadEvents`.")
        content = json_of(body)

        async def attempt() -> Any:
            headers = {"content-type": "application/json"}
            response = await self._send(
                operation, "POST", f"{self._base}/rpc/{operation}", content=content, headers=headers, call=call
            )
            return decoded(await self.read(response, operation), response.status_code, operation)

        return await self._retrying(attempt, may_repeat, call)

    async def request(
        self,
        operation: str,
        method: str,
        path: str,
        *,
        content: bytes | AsyncIterator[bytes] | None = None,
        headers: Mapping[str, str] | None = None,
        params: Mapping[str, str] | None = None,
        may_repeat: bool = False,
        at_root: bool = False,
        call: CallOptions,
    ) -> httpx.Response:
        """The answer of another address, if its status is good. Its body is not read yet."""
        url = f"{self._root if at_root else self._base}{path}"

        async def attempt() -> httpx.Response:
            return await self._send(
                operation, method, url, content=content, headers=headers or {}, params=params, call=call
            )

        return await self._retrying(attempt, may_repeat, call)

    async def read(self, response: httpx.Response, operation: str) -> bytes:
        try:
            return await response.aread()
        except (httpx.RequestError, httpx.StreamError) as error:
            raise lost(operation, error) from error
        finally:
            await response.aclose()

    async def aclose(self) -> None:
        await self._clients.aclose()

    async def _retrying(self, work: Callable[[], AsyncOutcome[T]], may_repeat: bool, call: CallOptions) -> T:
        retry = call.get("retry", self.options.retry)
        attempt = 1
        while True:
            try:
                return await work()
            except SessionAgentError as error:
                pause = pause_after(error, attempt, retry)
                if not may_repeat or pause is None:
                    raise
            await sleep_async(pause)
            attempt += 1

    async def _send(
        self,
        operation: str,
        method: str,
        url: str,
        *,
        content: bytes | AsyncIterator[bytes] | None,
        headers: Mapping[str, str],
        call: CallOptions,
        params: Mapping[str, str] | None = None,
    ) -> httpx.Response:
        client = self._clients.get()
        token = await read_token_async(self.options.token)
        request = client.build_request(
            method,
            url,
            content=content,
            params=params,
            headers=headers_of(self.options, token, call, headers),
            timeout=timeout_of(self.options, call),
        )
        try:
            response = await client.send(request, stream=True, follow_redirects=False)
        except httpx.RequestError as error:
            raise lost(operation, error) from error
        if response.is_success:
            return response
        raise await self._refusal(response, operation)

    async def _refusal(self, response: httpx.Response, operation: str) -> SessionAgentError:
        body = bytearray()
        try:
            async for piece in response.aiter_bytes():
                body += piece
                if len(body) >= REFUSAL_BYTES:
                    break
        except (httpx.RequestError, httpx.StreamError) as error:
            return lost(operation, error)
        finally:
            await response.aclose()
        return refusal(response.status_code, response.headers.get("location"), bytes(body), operation)
