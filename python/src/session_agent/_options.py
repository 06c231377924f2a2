"""The options with which an agent is opened, and those of a call in addition to its input."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, Literal, TypeAlias, TypedDict


class NotGiven(Enum):
    """The value of a parameter that is left out. `None` is a value: the API's `null`."""

    NOT_GIVEN = "NOT_GIVEN"

    def __repr__(self) -> str:
        return "NOT_GIVEN"

    def __bool__(self) -> Literal[False]:
        return False


NOT_GIVEN: Final = NotGiven.NOT_GIVEN


def given(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields without those that were left out."""
    return {name: value for name, value in fields.items() if value is not NOT_GIVEN}


@dataclass(frozen=True)
class Retry:
    """How often, and after which pauses, a failed call is sent again."""

    attempts: int = 4
    """The first attempt included. 1: never again."""
    pause_s: float = 0.2
    """The pause after the first failure; each later pause is twice as long."""
    longest_pause_s: float = 20
    """A longer pause than this is not made; the error is raised instead."""


NO_RETRY: Final = Retry(attempts=1)

Trace: TypeAlias = Mapping[str, str]
"""A trace as Trace Context's headers: `traceparent`, and `tracestate` if there is one."""

Token: TypeAlias = "str | Callable[[], str | None | Awaitable[str | None]] | None"
"""The Worker's secret or a minted token, or a function that gives one for each request."""


class CallOptions(TypedDict, total=False):
    timeout: float | None
    """The seconds that each attempt may be without a byte from the agent. `None`: no limit."""
    retry: Retry
    trace: Trace
    """The trace of this call, instead of the agent's `trace`."""


# A turn that calls tools may be silent for a while.
USUAL_TIMEOUT_S = 300.0
CONNECT_TIMEOUT_S = 10.0


@dataclass(frozen=True)
class Options:
    """The options of an agent, complete."""

    target: str
    name: str
    token: Token = None
    retry: Retry = Retry()
    timeout: float | None = USUAL_TIMEOUT_S
    trace: Callable[[], Trace | None] | None = None
    headers: Mapping[str, str] | None = None
