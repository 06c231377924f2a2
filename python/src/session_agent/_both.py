"""Converts between the blocking and the async agent."""

from __future__ import annotations

import dataclasses
from typing import Any, TypeAlias

from ._async.agent import AsyncSessionAgent
from ._async.session import AsyncSessionClient
from ._sync.agent import SessionAgent
from ._sync.session import SessionClient

Agent: TypeAlias = SessionAgent | AsyncSessionAgent


def both(agent: Agent) -> tuple[SessionAgent, AsyncSessionAgent]:
    """The agent itself, and another one with its options. An `http_client` of the caller's is not shared."""
    given: dict[str, Any] = {field.name: getattr(agent.options, field.name) for field in dataclasses.fields(agent.options)}
    if isinstance(agent, SessionAgent):
        return agent, AsyncSessionAgent(**given)
    return SessionAgent(**given), agent


def waiting_session(session: AsyncSessionClient | SessionClient) -> AsyncSessionClient:
    """The session itself, or the same one of an agent that waits."""
    if isinstance(session, AsyncSessionClient):
        return session
    options = session.agent_options
    given: dict[str, Any] = {field.name: getattr(options, field.name) for field in dataclasses.fields(options)}
    return AsyncSessionAgent(**given).session(session.id)
