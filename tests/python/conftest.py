"""Shared fixtures: an agent for each test on the Worker that package.test.mjs started."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from session_agent import AsyncSessionAgent, SessionAgent

from flaky import Flaky

pytest.register_assert_rewrite("compare_with_provider")

URL = os.environ["SESSION_AGENT_URL"]
TOKEN = os.environ["SESSION_AGENT_TOKEN"]
ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture
def name() -> str:
    return f"py-{uuid4().hex[:12]}"


@pytest.fixture
def agent(name: str) -> Iterator[SessionAgent]:
    with SessionAgent(URL, name, token=TOKEN) as agent:
        yield agent


@pytest.fixture
def open_async(name: str) -> Callable[[], AsyncSessionAgent]:
    """Opens the same agent for `asyncio.run`."""
    return lambda: AsyncSessionAgent(URL, name, token=TOKEN)


@pytest.fixture
def flaky() -> Iterator[Flaky]:
    """A proxy in front of the Worker that fails on request."""
    proxy = Flaky(URL)
    yield proxy
    proxy.close()


@pytest.fixture(scope="session")
def api() -> dict[str, Any]:
    return json.loads((ROOT / "generated" / "openapi.json").read_text("utf-8"))


def javascript(what: str, name: str) -> str:
    """The output of the JavaScript adapters for an agent: see javascript.mjs, which
    package.test.mjs bundles."""
    program = os.environ["SESSION_AGENT_JAVASCRIPT"]
    done = subprocess.run(["node", program, what, URL, name, TOKEN], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout
