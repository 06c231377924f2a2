"""Generates the modules that are not in the repository. Every build runs it, so they are up to date.

    python3 generate.py

- `types.py`, the shapes of the API, and `_async/operations.py`, a method for each operation,
  from the API's document, generated/openapi.json.
- `_sync/`, the blocking client, from `_async/`: the same modules without `async` and `await`.

A source archive has no document beside it, and brings the modules instead.
"""

from __future__ import annotations

import io
import json
import re
import tokenize
from pathlib import Path
from typing import Any

HEAD = '"""generate.py makes this module of the API\'s document."""'
WIDTH = 96

# Shapes that another name of the client's would hide. The JavaScript client has the same names.
RENAMED = {"Event": "SessionEvent", "WorkingContext": "BuiltContext", "File": "ContextFile"}

# The client has classes for errors, and of this shape only the codes.
LEFT_OUT = {"Error"}

# Left out of a call, the client makes one.
MINTED = {("setEntry", "key")}

# Names of the async client, and of the blocking one.
BLOCKING = {
    "aclose": "close",
    "aread": "read",
    "aiter_bytes": "iter_bytes",
    "anext": "next",
    "__aenter__": "__enter__",
    "__aexit__": "__exit__",
    "__aiter__": "__iter__",
    "__anext__": "__next__",
    "_async": "_sync",
}


def main(root: Path) -> None:
    package = root / "src" / "session_agent"
    document = root.parent / "generated" / "openapi.json"
    types, operations = package / "types.py", package / "_async" / "operations.py"
    if not document.exists():
        if types.exists() and operations.exists() and (package / "_sync" / "operations.py").exists():
            return
        raise SystemExit(
            f"{document} is missing: build in a clone of the repository, or from the source archive."
        )
    api = Api(json.loads(document.read_text("utf-8")))
    write(types, api.types())
    write(operations, api.operations())
    sync = package / "_sync"
    sync.mkdir(exist_ok=True)
    sources = sorted((package / "_async").glob("*.py"))
    for source in sources:
        write(sync / source.name, blocking(source.read_text("utf-8"), source.name))
    for stale in set(sync.glob("*.py")) - {sync / source.name for source in sources}:
        stale.unlink()


def write(path: Path, text: str) -> None:
    """Writes a file that changed; an unchanged one keeps its time."""
    if not path.exists() or path.read_text("utf-8") != text:
        path.write_text(text, "utf-8")


# The blocking client.


def blocking(source: str, name: str) -> str:
    """The module without `async` and `await`."""
    tokens = list(tokenize.generate_tokens(io.StringIO(source).readline))
    lines = source.splitlines(keepends=True)
    out: list[str] = [f"# generate.py makes this module of _async/{name}.\n"]
    row, column = 1, 0

    def copy_to(to_row: int, to_column: int) -> None:
        nonlocal row, column
        while row < to_row:
            out.append(lines[row - 1][column:])
            row, column = row + 1, 0
        if row <= len(lines):
            out.append(lines[row - 1][column:to_column])
        column = to_column

    for n, token in enumerate(tokens):
        if token.type != tokenize.NAME:
            continue
        replaced = blocking_name(token.string)
        if replaced == token.string:
            continue
        copy_to(*token.start)
        out.append(replaced)
        row, column = token.end
        if replaced == "":
            row, column = tokens[n + 1].start
    copy_to(len(lines) + 1, 0)
    return "".join(out)


def blocking_name(name: str) -> str:
    if name in ("async", "await"):
        return ""
    if name in BLOCKING:
        return BLOCKING[name]
    if re.match(r"_?Async[A-Z]", name) or name.startswith("StopAsync"):
        return name.replace("Async", "", 1)
    return name.removesuffix("_async")


# The API's document.


class Api:
    def __init__(self, document: dict[str, Any]) -> None:
        self.schemas: dict[str, Any] = document["components"]["schemas"]
        calls = [methods["post"] for path, methods in document["paths"].items() if "/rpc/" in path]
        self.calls: list[dict[str, Any]] = sorted(calls, key=lambda call: call["operationId"])

    def types(self) -> str:
        codes = self.schemas["Error"]["properties"]["error"]["properties"]["code"]["enum"]
        shapes = [(RENAMED.get(name, name), schema) for name, schema in self.schemas.items() if name not in LEFT_OUT]
        plain = [alias(name, schema) for name, schema in shapes if "properties" not in schema]
        tables = [typed_dict(name, schema) for name, schema in shapes if "properties" in schema]
        exported = ", ".join(f'"{name}"' for name in sorted(["ErrorCode", *(name for name, _ in shapes)]))
        parts = [
            HEAD,
            "from __future__ import annotations",
            "from typing import Any, Literal, NotRequired, TypeAlias, TypedDict",
            f"__all__ = [{exported}]",
            f"{literal(codes)}".join(["ErrorCode: TypeAlias = ", '\n"""The code of an error. Codes are stable."""']),
            *plain,
            *tables,
        ]
        return "\n\n".join(parts) + "\n"

    def operations(self) -> str:
        body = [self.method(call, of_session=False) for call in self.calls]
        own = [self.method(call, of_session=True) for call in self.calls if self.is_of_session(call)]
        called = "\n".join([*body, *own])
        known = [RENAMED.get(name, name) for name in self.schemas if name not in LEFT_OUT]
        used = [name for name in sorted(known) if re.search(rf"\b{name}\b", re.sub(r'""".*?"""', "", called, flags=re.S))]
        table = "\n".join(
            f'    "{call["operationId"]}": {"read" in call["x-presets"]},' for call in self.calls
        )
        return "\n".join(
            [
                HEAD,
                "",
                "from __future__ import annotations",
                "",
                "from collections.abc import Mapping, Sequence",
                f"from typing import Any, {'Literal, ' if 'Literal[' in called else ''}Unpack",
                "from uuid import uuid4",
                "",
                "from .._options import NOT_GIVEN, CallOptions, NotGiven, given",
                f"from ..types import (\n    {(',' + chr(10) + '    ').join(used)},\n)",
                "",
                "# Whether an operation changes nothing.",
                f"READS: dict[str, bool] = {{\n{table}\n}}",
                "",
                "",
                "class AsyncAgentOperations:",
                '    """Every operation, as a method."""',
                "",
                CALL,
                *body,
                "",
                "class AsyncSessionOperations:",
                '    """The operations on a session, as methods that know the session\'s id."""',
                "",
                CALL,
                *own,
            ]
        )

    def input_of(self, call: dict[str, Any]) -> dict[str, Any]:
        schema = call["requestBody"]["content"]["application/json"]["schema"]
        return self.schemas[schema["$ref"].split("/")[-1]] if "$ref" in schema else schema

    def is_of_session(self, call: dict[str, Any]) -> bool:
        return "sessionId" in self.input_of(call).get("properties", {})

    def method(self, call: dict[str, Any], *, of_session: bool) -> str:
        name: str = call["operationId"]
        schema = self.input_of(call)
        fields: dict[str, Any] = dict(schema.get("properties", {}))
        if of_session:
            del fields["sessionId"]
        required = [field for field in schema.get("required", []) if field in fields and (name, field) not in MINTED]
        optional = [field for field in fields if field not in required]
        output = type_of(call["responses"]["200"]["content"]["application/json"]["schema"])
        parameters = [f"        {snake(field)}: {type_of(fields[field], sent=True)}," for field in required]
        parameters += [
            f"        {snake(field)}: {type_of(fields[field], sent=True)} | NotGiven = NOT_GIVEN," for field in optional
        ]
        star = ["        *,"] if parameters else []
        sent = []
        for field in [*required, *optional]:
            value = snake(field)
            if (name, field) in MINTED:
                value = f"str(uuid4()) if isinstance({value}, NotGiven) else {value}"
            sent.append(f'                    "{field}": {value},')
        lines = [
            f"    async def {snake(name)}(",
            "        self,",
            *star,
            *parameters,
            "        **options: Unpack[CallOptions],",
            f"    ) -> {output}:",
            docstring(self.words(call, [*required, *optional], fields), "        "),
        ]
        if sent:
            lines += [
                "        return await self.call(",
                f'            "{name}",',
                "            given(",
                "                {",
                *sent,
                "                }",
                "            ),",
                "            **options,",
                "        )",
            ]
        else:
            lines += [f'        return await self.call("{name}", {{}}, **options)']
        return "\n".join([*lines, ""])

    def words(self, call: dict[str, Any], order: list[str], fields: dict[str, Any]) -> str:
        text = "\n\n".join(part for part in (call.get("summary"), call.get("description")) if part)
        described = [(field, words_of(fields[field])) for field in order]
        listed = [f"- `{snake(field)}`: {' '.join(words.split())}" for field, words in described if words]
        return text + ("\n\n" + "\n".join(listed) if listed else "")


CALL = '''    async def call(
        self, operation: str, input: Mapping[str, Any] | None = None, **options: Unpack[CallOptions]
    ) -> Any:
        """Any operation by its name, also one that is newer than this client."""
        raise NotImplementedError
'''


def snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def literal(values: list[Any]) -> str:
    return f"Literal[{', '.join(json.dumps(value) for value in values)}]"


def alias(name: str, schema: dict[str, Any]) -> str:
    text = f'{name}: TypeAlias = "{type_of(schema).replace(chr(34), chr(39))}"'
    words = words_of(schema)
    return text + ("\n" + docstring(words, "") if words else "")


def typed_dict(name: str, schema: dict[str, Any]) -> str:
    required = schema.get("required", [])
    lines = [f"class {name}(TypedDict):"]
    words = words_of(schema)
    if words:
        lines += [docstring(words, "    "), ""]
    names = [*required, *(field for field in schema["properties"] if field not in required)]
    for field in names:
        kind = type_of(schema["properties"][field])
        lines.append(f"    {field}: {kind if field in required else f'NotRequired[{kind}]'}")
        words = words_of(schema["properties"][field])
        if words:
            lines.append(docstring(words, "    "))
    if not names:
        lines.append("    pass")
    return "\n".join(lines)


def type_of(schema: Any, *, sent: bool = False) -> str:
    """The Python of a schema. `sent`: of a parameter, which takes more than it says when read."""
    if schema is True or schema is None:
        return "Any"
    if "$ref" in schema:
        name = schema["$ref"].split("/")[-1]
        return "Mapping[str, Any]" if sent and name == "Metadata" else RENAMED.get(name, name)
    choices = schema.get("anyOf") or schema.get("oneOf")
    if choices:
        return union([type_of(one, sent=sent) for one in choices])
    if "const" in schema:
        return literal([schema["const"]])
    if "enum" in schema:
        return literal(schema["enum"])
    kinds = schema.get("type")
    if kinds is None:
        return "Any"
    return union([plain(kind, schema, sent) for kind in ([kinds] if isinstance(kinds, str) else kinds)])


def plain(kind: str, schema: dict[str, Any], sent: bool) -> str:
    if kind == "array":
        return f"{'Sequence' if sent else 'list'}[{type_of(schema.get('items', True), sent=sent)}]"
    if kind == "object":
        values = schema.get("additionalProperties")
        value = type_of(values) if isinstance(values, dict) else "Any"
        return f"{'Mapping' if sent else 'dict'}[str, {value}]"
    return {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}[kind]


def union(kinds: list[str]) -> str:
    """`A | B`, each once, `None` last. Several literals are one."""
    once = list(dict.fromkeys(kinds))
    values = [kind[8:-1] for kind in once if kind.startswith("Literal[")]
    others = [kind for kind in once if not kind.startswith("Literal[") and kind != "None"]
    if "Any" in others:
        return "Any"
    joined = [f"Literal[{', '.join(values)}]"] if values else []
    return " | ".join([*joined, *others, *(["None"] if "None" in once else [])])


def words_of(schema: Any) -> str:
    if not isinstance(schema, dict):
        return ""
    parts = [schema.get("description", "")]
    listed = [
        f"- `{one['const']}`: {' '.join(one['description'].split())}"
        for one in schema.get("oneOf", [])
        if "const" in one and one.get("description")
    ]
    if listed:
        parts.append("\n".join(listed))
    if schema.get("default") is not None:
        parts.append(f"Default: `{json.dumps(schema['default'])}`.")
    return "\n\n".join(part for part in parts if part)


def docstring(words: str, indent: str) -> str:
    text = words.replace("\\", "\\\\").replace('"""', "'''")
    lines = text.split("\n")
    if text.endswith('"'):
        lines[-1] += " "
    if len(lines) == 1:
        return f'{indent}"""{lines[0]}"""'
    body = "\n".join(f"{indent}{line}".rstrip() for line in lines[1:])
    return f'{indent}"""{lines[0]}\n{body}\n{indent}"""'


if __name__ == "__main__":
    main(Path(__file__).resolve().parent)
