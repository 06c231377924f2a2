"""Pure functions for URLs, answers and retries, which both clients share."""

from __future__ import annotations

import asyncio
import inspect
import json
import random
import re
import time
from collections.abc import Awaitable, Coroutine, Iterable, Mapping
from typing import Annotated, Any, TypeAlias, TypeVar, cast
from urllib.parse import quote, urlsplit

import httpx

from ._options import CONNECT_TIMEOUT_S, CallOptions, Options, Retry, Token
from ._version import VERSION
from .errors import NetworkError, SessionAgentError, error_from

T = TypeVar("T")

# What a function of the async client gives, and of the blocking one.
AsyncOutcome: TypeAlias = Awaitable[T]
Outcome: TypeAlias = Annotated[T, "at once"]

# The most characters of a foreign answer in an error's message, and the most bytes that are read for it.
SHOWN_CHARACTERS = 200
REFUSAL_BYTES = 1 << 20

OPERATION_NAME = re.compile(r"[A-Za-z0-9_]+")

# Codes that say: not now.
PASSING = {"network_failed", "rate_limited", "model_overloaded", "storage_failed"}


def root_of(target: str) -> str:
    root = str(target).rstrip("/")
    if not re.match(r"https?://[^/]", root, re.IGNORECASE):
        raise ValueError(f"A URL begins with `https://` or `http://`, and `{root}` does not.")
    return root


def segment_of(text: str, what: str) -> str:
    """A text as one segment of an address. `.` and `..` are steps in a path, also encoded."""
    if not isinstance(text, str) or text in ("", ".", ".."):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ValueError(f"{what} must be a non-empty string other than `.` and `..`.")
    try:
        return quote(text, safe="")
    except UnicodeEncodeError:
        raise ValueError(f"{what} contains an unpaired surrogate, so it is not valid text.") from None


def json_of(value: Any) -> bytes:
    """JSON, with `null` for `None`. Mappings and iterables are objects and lists."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_plain)
    try:
        return text.encode()
    except UnicodeEncodeError:
        # Half of a surrogate pair: the agent's error names the place.
        return json.dumps(value, allow_nan=False, separators=(",", ":"), default=_plain).encode()


BYTES: tuple[type[Any], ...] = (bytes, bytearray, memoryview)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(cast(Mapping[str, Any], value))
    if hasattr(value, "__iter__") and not isinstance(value, BYTES):
        return list(cast("Iterable[Any]", value))
    raise TypeError(f"A value of the type `{type(value).__name__}` has no JSON.")


def headers_of(options: Options, token: str | None, call: CallOptions, more: Mapping[str, str]) -> dict[str, str]:
    trace = call.get("trace") or (options.trace() if options.trace else None) or {}
    headers = {"user-agent": f"session-agent-python/{VERSION}", **(options.headers or {}), **more}
    if token:
        headers["authorization"] = f"Bearer {token}"
    # Without its trace, a state has no meaning.
    if trace.get("traceparent"):
        headers.update({name: trace[name] for name in ("traceparent", "tracestate") if trace.get(name)})
    return headers


def timeout_of(options: Options, call: CallOptions) -> httpx.Timeout:
    seconds = call.get("timeout", options.timeout)
    return httpx.Timeout(seconds, connect=CONNECT_TIMEOUT_S if seconds is None else min(seconds, CONNECT_TIMEOUT_S))


def refusal(status: int, location: str | None, body: bytes, operation: str) -> SessionAgentError:
    """The error for an answer with a status other than 200."""
    if 300 <= status < 400:
        return redirected(status, location, operation)
    text = body.decode("utf-8", "replace")
    try:
        error: Any = json.loads(text).get("error")
    except (ValueError, AttributeError, RecursionError):
        error = None
    if isinstance(error, dict):
        fields = cast(dict[str, Any], error)
        if isinstance(fields.get("code"), str) and isinstance(fields.get("message"), str):
            return error_from(fields, status=status, operation=operation)
    shown = text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}…"
    return NetworkError(
        f"`{operation}` was answered with status {status}, but not by a Session Agent: "
        f"{shown or '(nothing)'}",
        status=status,
        operation=operation,
    )


def redirected(status: int, location: str | None, operation: str) -> NetworkError:
    """Neither the token nor the input may be sent to a redirect's target. The URL may contain a secret."""
    try:
        place = urlsplit(location or "")
        to = f" to {place.scheme}://{place.hostname}" if place.scheme and place.hostname else ""
    except ValueError:
        to = ""
    return NetworkError(
        f"`{operation}` was answered with a redirect{to}. It is not followed, because the token and the input "
        "would be sent there. Open the agent at its final URL.",
        status=status,
        operation=operation,
    )


def decoded(body: bytes, status: int, operation: str) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        raise refusal(status, None, body, operation) from None


def lost(operation: str, cause: BaseException) -> NetworkError:
    why = str(cause) or type(cause).__name__
    return NetworkError(f"`{operation}` got no answer: {why}", operation=operation)


def pause_after(error: SessionAgentError, attempt: int, retry: Retry) -> float | None:
    """The seconds to wait after a failure. `None`: the failure is final."""
    if attempt >= retry.attempts or error.code not in PASSING:
        return None
    # A complete answer that is not a Session Agent's doesn't change if the request is repeated.
    if isinstance(error, NetworkError) and (error.status or 500) < 500:
        return None
    after = error.details.get("retryAfter") or 0
    requested_s = float(after) if isinstance(after, (int, float)) else 0.0
    if requested_s > retry.longest_pause_s:
        return None
    # Callers that failed together don't come back together.
    usual = retry.pause_s * 2 ** (attempt - 1) * (0.5 + random.random() / 2)
    return min(retry.longest_pause_s, max(requested_s, usual))


def brings_its_ids(operation: str, body: Mapping[str, Any]) -> bool:
    """Whether the agent knows a repetition by the ids that the caller gave."""

    def is_named(item: Any) -> bool:
        return isinstance(item, Mapping) and isinstance(cast(Mapping[str, Any], item).get("id"), str)

    if operation in ("appendEvents", "appendMessages"):
        items = body.get("events" if operation == "appendEvents" else "messages")
        return isinstance(items, (list, tuple)) and all(is_named(item) for item in cast("list[Any]", items))
    if operation in ("appendMessage", "runTurn"):
        return is_named(body.get("message"))
    return operation == "addUsage" and isinstance(body.get("id"), str)


# What the two clients do differently. In the blocking client these names lose their `_async`.


async def read_token_async(token: Token) -> str | None:
    value = token() if callable(token) else token
    if inspect.isawaitable(value):
        value = await value
    return value or None


def read_token(token: Token) -> str | None:
    value = token() if callable(token) else token
    if inspect.isawaitable(value):
        if inspect.iscoroutine(value):
            value.close()
        raise TypeError("`token` is an async function, and this client is not async: use `AsyncSessionAgent`.")
    return value or None


async def sleep_async(seconds: float) -> None:
    await asyncio.sleep(seconds)


def sleep(seconds: float) -> None:
    time.sleep(seconds)


async def gather_async(*work: Coroutine[Any, Any, T]) -> list[T]:
    """Concurrently. The first failure is raised when all have ended, so that none continues unnoticed."""
    done = await asyncio.gather(*work, return_exceptions=True)
    for one in done:
        if isinstance(one, BaseException):
            raise one
    return cast("list[T]", done)


def gather(*done: T) -> list[T]:
    return list(done)
