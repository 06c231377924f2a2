"""Runs a client of a provider's API against the test provider directly and through an
agent. The answers of the provider, tests/client/provider_server.mjs, depend only on the
request."""

from __future__ import annotations

import dataclasses
import json
import os
import re
from collections.abc import Callable, Mapping
from typing import Any
from uuid import uuid4

from pydantic import BaseModel
from session_agent import SessionAgent

PROVIDER = os.environ["SESSION_AGENT_PROVIDER"]
URL = os.environ["SESSION_AGENT_URL"].rstrip("/")
TOKEN = os.environ["SESSION_AGENT_TOKEN"]

#: The models of the provider, and what each client usually sends.
ALLOW: Any = {
    "models": ["openai:gpt-test", "anthropic:claude-test"],
    "systemInstructions": True,
    "clientTools": True,
}


@dataclasses.dataclass(frozen=True)
class Base:
    """Base URLs for the clients of each provider, and the key."""

    openai: str
    anthropic: str
    key: str


def agents_base(agent: SessionAgent, name: str) -> Base:
    token = agent.mint_token(preset="model", allow=ALLOW, expires_in=600)["token"]
    url = f"{URL}/agents/session-agent/{name}"
    return Base(f"{url}/openai/v1", f"{url}/anthropic", token)


def compare(program: Callable[[Base], Any]) -> Any:
    """Runs a program with the provider and with a new agent, and returns the result, which must
    be the same."""
    direct = normalized_each(program(Base(f"{PROVIDER}/v1", PROVIDER, "a key")))
    name = f"py-{uuid4().hex[:12]}"
    with SessionAgent(URL, name, token=TOKEN) as agent:
        ours = normalized_each(program(agents_base(agent, name)))
    assert difference(direct, ours) is None
    return direct


def difference(direct: Any, ours: Any, path: str = "") -> tuple[str, Any, Any] | None:
    """The first place where two values differ, and both values there."""
    if isinstance(direct, dict) and isinstance(ours, dict):
        names: list[str] = sorted({*direct, *ours})  # pyright: ignore
        inner = [difference(direct.get(name), ours.get(name), f"{path}.{name}") for name in names]  # pyright: ignore
    elif isinstance(direct, list) and isinstance(ours, list) and len(direct) == len(ours):  # pyright: ignore
        inner = [difference(one, other, f"{path}[{n}]") for n, (one, other) in enumerate(zip(direct, ours))]  # pyright: ignore
    else:
        return None if direct == ours else (path, direct, ours)
    return next((found for found in inner if found is not None), None)


#: Ids that the agent, the provider or the client makes.
MADE = re.compile(
    r"\b(?:(?:resp|msg|fc|rs|ws|call|toolu)_(?!id\b)[\w-]+=*|(?:chatcmpl|run|lc_run)-[\w-]+|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})"
)

#: Fields that differ from run to run.
PASSING = {"headers", "created", "created_at", "completed_at", "response_ms", "litellm_call_id", "api_base"}


def normalized_each(value: Any) -> Any:
    """The same for a tuple: in each of its values, the ids are numbered separately."""
    return [normalized(inner) for inner in value] if isinstance(value, tuple) else normalized(value)  # pyright: ignore


def normalized(value: Any) -> Any:
    """A value without what can only differ: times, headers, and ids, which are numbered."""
    ids: dict[str, str] = {}
    text = json.dumps(plain(value), sort_keys=True)
    return json.loads(MADE.sub(lambda found: ids.setdefault(found[0], f"<id {len(ids) + 1}>"), text))


def plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return plain({"class": type(value).__name__, **value.model_dump(mode="python", warnings=False)})
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value) if field.repr}
        return plain({"class": type(value).__name__, **fields})
    if isinstance(value, Mapping):
        return {str(name): plain(inner) for name, inner in value.items() if name not in PASSING}  # pyright: ignore
    if isinstance(value, (list, tuple)):
        return [plain(inner) for inner in value]  # pyright: ignore
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    return type(value).__name__
