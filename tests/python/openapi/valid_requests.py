"""Sends requests that openapi.json allows, some for each operation, to a Worker.

Such a request is refused only for the state of the agent or of the deployment, and its answer is as
the document says. The requests are the same in every run.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections import Counter
from typing import Any

import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import Case, GenerationMode, Response
from schemathesis.checks import CHECKS, load_all_checks

DOCUMENT, URL, TOKEN = sys.argv[1:]

# `LONG=1 npm test -- python openapi` sends more.
REQUESTS_PER_OPERATION = 8 if "LONG" in os.environ else 4
TIMEOUT_S = 20

AGENT = "valid-requests"
# Operations that change what others are refused for: they have an agent of their own.
APART = {"configureAgent", "configureCompaction", "clearBlocks", "deleteSession", "destroy", "importAgent"}
HEADERS = {"authorization": f"Bearer {TOKEN}"}
# The providers' APIs have the rules and the errors of their providers: tests/client/base_url.test.mjs.
OF_PROVIDERS = re.compile(r"/(openai|anthropic)/v1/")

# Errors that depend on the state: something does not exist, exists already, or is not allowed or
# configured here.
STATES = {403, 404, 409, 413, 422, 429, 501}

# The fields for which a request is invalid in some states only, by operation.
FIELDS_OF_STATE = {
    "*": r"cursor|after",  # An earlier answer gives them.
    "chat": r"messages|message\.parts",  # A message to answer once more; the newest of several messages.
    "configureAgent": r"onTurnEnd|onMemoryChange|learn\.into",  # `{}` lifts a deployed one.
    "decideProposal": r"id",
    "destroy": r"confirm",
    "eraseAgents": r"confirm",
    "getBlockVersions": r"key",
    "getHistory": r"before",
    "getTurn": r"turnId",
    "importAgent": r".*",  # The lines of the file.
    "importSession": r".*",
    "mintToken": r"limits\.costPerDay",  # Needs `prices`.
    "persistWorkingContext": r"messages\[\d+\]\.toolName",  # Known if the call is in the log.
    "restoreBackup": r"key",
    "restoreBookmark": r"confirm",
    "revertBlock": r"key|version",
    "revertProposal": r"id",
    "setEntry": r"supersedes|validUntil",  # Later than `validFrom`.
}
# The block that is named is of another kind.
KIND_OF_BLOCK = re.compile(r"Block `.*` is (readonly|writable|searchable|loadable)")

# Operations without a request here that succeeds. The others have one each.
NEVER_ACCEPTED = {
    "consolidate",
    "decideProposal",
    "destroy",
    "importAgent",
    "importSession",
    "learn",
    "restoreBackup",
    "restoreBookmark",
    "revertProposal",
}

BLOCKS = {"facts": "searchable", "docs": "loadable", "notes": "writable"}
LABELS = {
    "facts": {"deleteEntry", "getEntry", "listEntries", "searchContext", "setEntry"},
    "docs": {"deleteSkill", "listSkills", "loadSkill", "putSkill", "unloadSkill"},
    "notes": {"appendToBlock", "getBlock", "getBlockVersions", "revertBlock", "setBlock"},
}

# Names of what is there.
NAMES = {
    "addCompaction": {"fromId": "m", "toId": "m"},
    "defineTool": {"service": "TOOLS"},
    "getBranches": {"messageId": "m"},
    "loadSkill": {"key": "k"},
    "setLeaf": {"id": "m"},
}

load_all_checks()
SHAPE_CHECKS = CHECKS.get_by_names(
    ["content_type_conformance", "response_headers_conformance", "response_schema_conformance", "status_code_conformance"]
)
# A stream of events is a text in the document; `check_stream` reads it.
STREAM_CHECKS = CHECKS.get_by_names(["content_type_conformance", "status_code_conformance"])


@schemathesis.serializer("application/x-ndjson")
def lines(context: Any, value: Any) -> bytes:
    return value.encode("utf-8", "replace") if isinstance(value, str) else b""


def call(operation: str, body: dict[str, Any], agent: str = AGENT) -> None:
    address = f"{URL}agents/session-agent/{agent}/rpc/{operation}"
    answer = requests.post(address, json=body, headers=HEADERS, timeout=TIMEOUT_S)
    assert answer.status_code in (200, 409), answer.text


def prepare() -> None:
    """Makes what many requests name: a session with a message, and a block of each kind."""
    call("createSession", {"id": "s"})
    message = {"id": "m", "role": "user", "parts": [{"type": "text", "text": "I like tea."}]}
    call("appendMessage", {"sessionId": "s", "message": message})
    for label, kind in BLOCKS.items():
        call("defineBlock", {"label": label, "kind": kind})
    call("putSkill", {"label": "docs", "key": "k", "content": "Use the teapot."})


def name_what_is_there(case: Case, operation: str) -> None:
    """Gives a generated request the session and the block of `prepare`."""
    path = case.path_parameters or {}
    if "agent" in path:
        path["agent"] = f"{AGENT}-{operation}" if operation in APART else AGENT
    if "sessionId" in path:
        path["sessionId"] = "s"
    if case.query:
        # The header has the secret.
        case.query.pop("token", None)
    body = case.body
    if not isinstance(body, dict) or operation in APART:
        return
    label = next((label for label, operations in LABELS.items() if operation in operations), None)
    if isinstance(body.get("sessionId"), str):
        # The blocks are the agent's.
        body["sessionId"] = "s" if label is None or operation in ("loadSkill", "unloadSkill") else None
    if label is not None and isinstance(body.get("label"), str):
        body["label"] = label
    for field, name in NAMES.get(operation, {}).items():
        if isinstance(body.get(field), str):
            body[field] = name


def check_stream(response: Response) -> None:
    """Checks the events of a stream that were read: schemathesis stops after some."""
    events = [event.removeprefix("data: ") for event in response.text.split("\n\n")]
    for event in events:
        if event not in ("", "[DONE]"):
            assert isinstance(json.loads(event), dict), event


def find_problem(operation: str, response: Response) -> str | None:
    """Returns the reason of a refusal, unless the state is the reason."""
    status = response.status_code
    if status < 300 or status in STATES:
        return None
    answer = response.json()
    error = answer.get("error", {})
    if status == 400 and isinstance(error.get("code"), str):
        field = str(error["details"].get("field"))
        patterns = [FIELDS_OF_STATE[name] for name in ("*", operation) if name in FIELDS_OF_STATE]
        if any(re.fullmatch(pattern, field) for pattern in patterns) or KIND_OF_BLOCK.match(error["message"]):
            return None
    return f"{status} {json.dumps(answer)[:400]}"


def ask(operation: Any, name: str, answered: Counter[str], problems: dict[str, str]) -> None:
    @settings(
        max_examples=REQUESTS_PER_OPERATION,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=GenerationMode.POSITIVE))
    def send(case: Case) -> None:
        name_what_is_there(case, name)
        response = case.call(base_url=URL.rstrip("/"), headers=HEADERS, timeout=TIMEOUT_S)
        answered["accepted" if response.status_code < 300 else "refused"] += 1
        problem = find_problem(name, response)
        try:
            if response.headers["content-type"][0].startswith("text/event-stream"):
                check_stream(response)
                case.validate_response(response, checks=STREAM_CHECKS)
            else:
                case.validate_response(response, checks=SHAPE_CHECKS)
        except (AssertionError, schemathesis.errors.SchemathesisError, ExceptionGroup) as wrong:
            problem = f"{response.status_code} {wrong}"[:2_000]
        if problem is not None:
            problems.setdefault(re.sub(r"\d+", "N", problem)[:120], f"{json.dumps(case.body, default=str)[:600]}: {problem}")

    send()


def main() -> None:
    schema = schemathesis.openapi.from_path(DOCUMENT)
    found = []
    total: Counter[str] = Counter()
    for result in schema.get_all_operations():
        operation = result.ok()
        if OF_PROVIDERS.search(operation.path):
            continue
        name = operation.definition.raw["operationId"]
        prepare()
        answered: Counter[str] = Counter()
        problems: dict[str, str] = {}
        ask(operation, name, answered, problems)
        total += answered
        found += [f"{name}: {problem}" for problem in problems.values()]
        if (answered["accepted"] == 0) != (name in NEVER_ACCEPTED):
            found.append(f"{name}: {answered['accepted']} of {answered.total()} requests were accepted")
    print(f"{total['accepted']} requests accepted, {total['refused']} refused for their state")
    if found:
        sys.exit("\n\n".join(found))


main()
