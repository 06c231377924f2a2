"""The programs of the guide and of the package's README, run as printed."""

from __future__ import annotations

import re
import sys
from types import ModuleType

import pytest
from session_agent import SessionAgent, SessionAgentError

from conftest import ROOT, TOKEN, URL


def program_of(path: str) -> str:
    """The document's blocks, with the line numbers of the document."""
    text = (ROOT / path).read_text("utf-8")
    lines = [""] * (text.count("\n") + 1)
    for block in re.finditer(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        first = text[: block.start(1)].count("\n")
        for n, line in enumerate(block[1].split("\n")[:-1]):
            lines[first + n] = line
    return "\n".join(lines)


def destroy(name: str) -> None:
    with SessionAgent(URL, name, token=TOKEN) as agent:
        agent.destroy(confirm=name)


@pytest.mark.parametrize("path", ["docs/python.md", "python/README.md"])
def test_the_program_runs(path: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("alice", "restored", "user:ann", "user:bob", "threads", "store"):
        try:
            destroy(name)
        except SessionAgentError:
            pass
    guide = ModuleType("guide")
    monkeypatch.setitem(sys.modules, "guide", guide)
    exec(compile(program_of(path), path, "exec", dont_inherit=True), guide.__dict__)
    printed = capsys.readouterr().out
    assert printed
    with SessionAgent(URL, "alice", token=TOKEN) as agent:
        texts = [event["content"] for event in agent.session("trip").events()]
    if path == "docs/python.md":
        assert "leaf_moved 409" in printed and "You have said 1 things." in printed and "Ann likes green tea." in printed and "Tea, as always." in printed and "['Ann likes tea.']" in printed
        assert texts[:3] == ["Do I need an umbrella?", "Take one.", "And gloves?"] and texts[-1] == "Pack a coat."
    else:
        assert texts[:2] == ["Do I need an umbrella?", "And gloves?"]
