// Generates docs/operations.md, the reference of all operations, from openapi.json:
//
//   node scripts/operations.mjs
//
// tests/scripts/operations.test.mjs fails if the file is outdated.

import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { OPENAPI, ROOT } from "./paths.mjs";

/** The file that this script writes. */
export const GENERATED = "docs/operations.md";
export const COMMAND = "node scripts/operations.mjs";

/** The order of the reference. Each operation is in one group. */
export const GROUPS = {
  Sessions: [
    "createSession",
    "getSession",
    "listSessions",
    "updateSession",
    "deleteSession",
    "forkSession",
    "addUsage",
    "getUsage",
    "getTurns",
    "getTurn",
  ],
  Events: ["appendEvents", "loadEvents", "deleteEvents"],
  Messages: [
    "appendMessage",
    "appendMessages",
    "updateMessage",
    "upsertMessage",
    "getMessage",
    "getHistory",
    "deleteMessages",
    "clearMessages",
  ],
  "Working context": ["buildWorkingContext", "persistWorkingContext"],
  Branches: ["getBranches", "setLeaf", "getLatestLeaf", "getPathLength"],
  "Change feed": ["getChanges"],
  "Finding what was said": ["search"],
  "Conversations that grow": [
    "configureCompaction",
    "compact",
    "addCompaction",
    "getCompactions",
    "deleteCompaction",
    "estimateTokens",
  ],
  "Blocks of memory": [
    "defineBlock",
    "removeBlock",
    "getBlock",
    "getBlocks",
    "setBlock",
    "appendToBlock",
    "getBlockVersions",
    "revertBlock",
    "clearBlocks",
  ],
  "Entries of a searchable block": ["setEntry", "deleteEntry", "listEntries", "getEntry", "searchContext"],
  "Documents of a loadable block": ["putSkill", "deleteSkill", "listSkills", "loadSkill", "unloadSkill"],
  "System prompt": ["renderPrompt", "freezePrompt", "refreshPrompt", "refreshPrompts", "getReminder"],
  "Memory tools": ["getTools", "callTool"],
  Learning: ["learn", "consolidate", "getProposals", "decideProposal", "revertProposal"],
  Forgetting: ["findMentions", "erase", "verifyReceipt"],
  "Chat turns": ["runTurn", "cancelTurn", "defineTool", "removeTool", "listTools"],
  Settings: ["configureAgent", "getConfig"],
  Agent: ["getStats", "loadForeignRows", "mintToken", "destroy"],
  "Keeping and copies": [
    "applyRetention",
    "backup",
    "listBackups",
    "restoreBackup",
    "getBookmark",
    "restoreBookmark",
    "verify",
  ],
  "Agents of a directory": ["listAgents", "searchAgents", "eraseAgents"],
  "Other addresses": [
    "chat",
    "resumeChat",
    "getMessages",
    "mcp",
    "exportSession",
    "importSession",
    "exportAgent",
    "importAgent",
    "health",
  ],
  "Base URL": [
    "chatCompletions",
    "openaiResponses",
    "getResponse",
    "deleteResponse",
    "openaiModels",
    "openaiModel",
    "anthropicMessages",
    "countTokens",
    "anthropicModels",
    "anthropicModel",
  ],
};

/** The maximum body size, which the head of the reference states. */
const USUAL_BODY_BYTES = 2 ** 20;

/** The reference as Markdown. `groups` is another order, for tests. */
export function render(api, groups = GROUPS) {
  const operations = operationsOf(api);
  const grouped = Object.values(groups).flat();
  for (const name of operations.keys()) {
    if (!grouped.includes(name))
      throw new Error(`\`${name}\` is in no group: add the operation to GROUPS in scripts/operations.mjs`);
  }
  for (const name of grouped) {
    if (!operations.has(name))
      throw new Error(`scripts/operations.mjs names \`${name}\`, which the API's document doesn't have`);
  }
  const page = new Page(api.components.schemas, [...operations.values()]);
  const sections = Object.entries(groups).flatMap(([title, names]) => [
    `## ${title}`,
    ...names.flatMap((name) => page.operation(operations.get(name))),
  ]);
  const parts = [head(groups), ...sections, ...page.shapes(), ...errors(api.components.schemas.Error)];
  const text = `${parts.join("\n\n")}\n`;
  holdAnchorsApart(text);
  return text;
}

function operationsOf({ paths }) {
  const all = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method: method.toUpperCase(), ...operation })),
  );
  return new Map(all.map((operation) => [operation.operationId, operation]));
}

function head(groups) {
  const rows = Object.entries(groups).map(
    ([title, names]) =>
      `| [${title}](#${anchor(title)}) | ${names.map((name) => `[\`${name}\`](#${anchor(name)})`).join(" ")} |`,
  );
  return `# Operations

<!-- \`${COMMAND}\` writes this file. Don't edit the file by hand. -->

This page describes every operation. It is generated from the OpenAPI document, which a
running Worker serves at \`/openapi.json\`.

An operation is a request \`POST /agents/session-agent/{agent}/rpc/{operation}\`
with one JSON object as its body. The answer is JSON. The headers \`x-rows-read\` and
\`x-rows-written\` report the cost of the request. A body can have up to 1 MiB, unless the
operation lists its own limit with its fields. Clients of OpenAI's and Anthropic's APIs use
[other addresses](base-url.md). The [list of errors](#errors) is at the end
of this page. Chat turns have their own addresses: see [Chat and clients](chat.md).

| about | operations |
|---|---|
${rows.join("\n")}`;
}

/** Renders operations, and remembers which shapes their fields have. */
class Page {
  #schemas;
  /** The number of operations that return each shape. */
  #answered = new Map();
  #named = new Set();

  constructor(schemas, operations) {
    this.#schemas = schemas;
    for (const { schema } of operations.flatMap(({ responses }) => Object.values(responses["200"].content ?? {}))) {
      if (schema.$ref) this.#answered.set(schema.$ref, (this.#answered.get(schema.$ref) ?? 0) + 1);
    }
  }

  operation(operation) {
    const { operationId: name, path, method, summary, description = "" } = operation;
    const input = operation.requestBody && Object.values(operation.requestBody.content)[0];
    const isCall = path.endsWith(`/rpc/${name}`);
    const parts = [`### \`${name}\``];
    if (!isCall) parts.push(`\`${method} ${path}\``);
    // The last paragraph of an operation's description names who may call it.
    const paragraphs = description.split("\n\n").filter((text) => text !== "");
    const access = isCall ? paragraphs.pop() : undefined;
    parts.push(oneLine(summary), ...paragraphs.map(oneLine));
    const codes = this.#codesIn(operation);
    if (access) parts.push(`**Who may call it.** ${oneLine(access)}${presets(operation["x-presets"])}`);
    parts.push(...this.#input(operation, input), ...this.#answer(operation));
    if (codes.length > 0)
      parts.push(`**Errors** that this description names: ${codes.map((code) => `\`${code}\``).join(", ")}.`);
    if (input?.example !== undefined) parts.push("**Example**", fenced(this.#ordered(input.example, input.schema)));
    return parts;
  }

  #input(operation, input) {
    const { parameters = [] } = operation;
    const fields = parameters.filter(
      ({ name, in: location }) => location === "query" || (location === "path" && name !== "agent"),
    );
    const rows = fields.map(({ name, required, schema, description }) =>
      this.#row(name, { ...schema, description }, required),
    );
    if (input?.schema.type === "string")
      return [...table("**In the address**", rows), "The body is a file of JSON lines."];
    if (input === undefined) return table("**In the address**", rows);
    const schema = this.#resolved(input.schema);
    const own = this.#rowsOf(schema);
    return own.length === 0
      ? ["**Fields**: none."]
      : table(`**Fields**${largeBody(operation["x-max-body-bytes"])}`, own);
  }

  #answer({ responses }) {
    const content = responses["200"].content;
    if (content === undefined) return [`**Answer**: ${uncapitalised(responses["200"].description)}`];
    const [[type, { schema }]] = Object.entries(content);
    if (type !== "application/json") return [`**Answer**: \`${type}\`. ${responses["200"].description}`];
    // The fields of a shape that several operations answer with are listed once, under Shapes.
    const named = this.#answered.get(schema.$ref) === 1 && this.#resolved(schema);
    if (!named?.properties) return [`**Answer**: ${this.#type(schema)}.`];
    const rows = this.#rowsOf(named);
    return rows.length === 0 ? ["**Answer**: an empty object."] : table("**Answer**", rows);
  }

  /** The shapes that fields have, each once, and the shapes of their own fields. */
  shapes() {
    const done = new Set();
    const rendered = new Map();
    while (done.size < this.#named.size) {
      for (const name of [...this.#named]) {
        if (done.has(name)) continue;
        done.add(name);
        rendered.set(name, this.#shape(name, this.#schemas[name]));
      }
    }
    const sorted = [...rendered.keys()].sort();
    return ["## Shapes", "The operations above use these shapes.", ...sorted.flatMap((name) => rendered.get(name))];
  }

  #shape(name, schema) {
    const parts = [`### \`${name}\``];
    if (schema.description) parts.push(oneLine(schema.description));
    if (schema.oneOf) {
      const rows = schema.oneOf.map(
        (one) => `| \`${one.const ?? one.enum.join("`, `")}\` | ${oneLine(one.description ?? "")} |`,
      );
      parts.push(["| value | meaning |", "|---|---|", ...rows].join("\n"));
    } else {
      parts.push(...table(undefined, this.#rowsOf(schema)));
    }
    return parts;
  }

  #rowsOf(schema) {
    const { properties, required = [] } = schema;
    return fieldsOf(schema).map((name) => this.#row(name, properties[name], required.includes(name)));
  }

  /** A value with its fields in the order of the tables. */
  #ordered(value, schema) {
    const known = schema && this.#resolved(schema.anyOf?.find((one) => one.type !== "null") ?? schema);
    if (Array.isArray(value)) return value.map((item) => this.#ordered(item, known?.items));
    if (value === null || typeof value !== "object") return value;
    const fields = known?.properties ? fieldsOf(known) : [];
    const names = [...new Set([...fields, ...Object.keys(value)])].filter((name) => Object.hasOwn(value, name));
    return Object.fromEntries(names.map((name) => [name, this.#ordered(value[name], known?.properties?.[name])]));
  }

  #row(name, schema, isRequired) {
    const meaning = [schema.description, defaultOf(schema)].filter(Boolean).map(oneLine).join(" ");
    return `| \`${name}\`${isRequired ? "" : " (optional)"} | ${this.#type(schema)} | ${meaning} |`;
  }

  /** The values of a schema, in words. */
  #type(schema) {
    if (schema === true || schema === undefined) return "any JSON";
    if (schema.$ref) return this.#reference(schema.$ref.split("/").at(-1));
    const choices = schema.anyOf ?? schema.oneOf;
    if (choices) return choices.map((one) => this.#type(one)).join(" or ");
    if (schema.enum) return schema.enum.map((value) => `\`${value}\``).join(", ");
    if (schema.const !== undefined) return `\`${schema.const}\``;
    if (schema.type === undefined) return "any JSON";
    return [schema.type]
      .flat()
      .map((type) => this.#plain(type, schema))
      .join(" or ");
  }

  #plain(type, schema) {
    if (type === "null") return "`null`";
    if (type === "array")
      return `list of ${this.#type(schema.items)}${range(schema.minItems, schema.maxItems, "items")}`;
    if (type === "string") return `string${range(schema.minLength, schema.maxLength, "characters")}`;
    if (type === "integer" || type === "number") return `${type}${range(schema.minimum || undefined, schema.maximum)}`;
    return type;
  }

  /** A shape with fields or explained values is linked; any other is shown where it is used. */
  #reference(name) {
    const schema = this.#schemas[name];
    if (schema === undefined) throw new Error(`the API's document has no shape \`${name}\``);
    if (!schema.properties && !schema.oneOf) return this.#type(schema);
    this.#named.add(name);
    return `[\`${name}\`](#${anchor(name)})`;
  }

  #resolved(schema) {
    return schema.$ref ? this.#schemas[schema.$ref.split("/").at(-1)] : schema;
  }

  /** The error codes that an operation's own words name. */
  #codesIn(operation) {
    const known = this.#schemas.Error.properties.error.properties.code.enum;
    const text = JSON.stringify([operation.summary, operation.description, operation.requestBody]);
    return known.filter((code) => text.includes(`\`${code}\``));
  }
}

function table(title, rows) {
  if (rows.length === 0) return [];
  const lines = [...(title ? [title, ""] : []), "| field | type | meaning |", "|---|---|---|", ...rows];
  return [lines.join("\n")];
}

function errors({ properties }) {
  const { code, details, message } = properties.error.properties;
  if (!code || !details || !message)
    throw new Error("the shape of an error has changed: scripts/operations.mjs describes it");
  return [
    "## Errors",
    'A failed request answers with `{"error": {"code", "message", "details"}}`. The `code` is stable:\n' +
      "programs can rely on it. The `message` is a sentence for people. The `details` are an\n" +
      "object that identifies the field, the id or the number, if there is one. Every operation\n" +
      "can return any of these codes.",
    code.enum.map((name) => `- \`${name}\``).join("\n"),
  ];
}

/** A shape's fields: those that must be there first, in the order of their declaration. */
function fieldsOf({ properties = {}, required = [] }) {
  return [...required, ...Object.keys(properties).filter((name) => !required.includes(name))];
}

function fenced(example) {
  return `\`\`\`json\n${spaced(example)}\n\`\`\``;
}

/** JSON in one line, with a space after each colon and each comma. */
function spaced(value) {
  if (Array.isArray(value)) return `[${value.map(spaced).join(", ")}]`;
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  return `{${Object.entries(value)
    .map(([key, item]) => `${JSON.stringify(key)}: ${spaced(item)}`)
    .join(", ")}}`;
}

function presets(names = []) {
  if (names.length === 0) return "";
  const list = names.map((name) => `\`${name}\``).join(" and ");
  return ` The preset${names.length > 1 ? "s" : ""} ${list} include${names.length > 1 ? "" : "s"} it.`;
}

function defaultOf({ default: value }) {
  return value === undefined || value === null ? "" : `Default: \`${JSON.stringify(value)}\`.`;
}

function range(least, most, unit) {
  const of = unit ? ` ${unit}` : "";
  const number = (n) => n.toLocaleString("en-US");
  // JavaScript's largest safe integer is not a limit worth mentioning.
  const isLimited = most !== undefined && most < Number.MAX_SAFE_INTEGER;
  if (least !== undefined && isLimited) return ` (${number(least)} to ${number(most)}${of})`;
  if (isLimited) return ` (at most ${number(most)}${of})`;
  if (least === 1 && of) return " (not empty)";
  if (least !== undefined) return ` (at least ${number(least)}${of})`;
  return "";
}

/** Two headings of one address would be one link: the second could not be reached. */
function holdAnchorsApart(text) {
  const anchors = [...text.matchAll(/^#+ (.*)$/gm)].map(([, heading]) => anchor(heading));
  const double = anchors.find((name, n) => anchors.indexOf(name) !== n);
  if (double)
    throw new Error(
      `two headings of ${GENERATED} have the address #${double}: rename a group in scripts/operations.mjs`,
    );
}

/** A heading's address in a page, as GitHub makes it. */
function anchor(heading) {
  return heading
    .toLowerCase()
    .replaceAll(/[^\w -]/g, "")
    .replaceAll(" ", "-");
}

function largeBody(bytes) {
  if (bytes === USUAL_BODY_BYTES) return "";
  return `, in a body of at most ${bytes % 2 ** 20 === 0 ? `${bytes / 2 ** 20} MiB` : `${bytes / 2 ** 10} KiB`}`;
}

/** Text from a comment in the code, fit for a table's cell. */
function oneLine(text) {
  return text
    .replaceAll(/\s*\n\s*/g, " ")
    .replaceAll(/\[(`[^`]+`)\](?!\()/g, "$1")
    .replaceAll("|", "\\|")
    .trim();
}

function uncapitalised(text) {
  return text.charAt(0).toLowerCase() + text.slice(1);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await writeFile(join(ROOT, GENERATED), render(JSON.parse(await readFile(OPENAPI, "utf8"))));
}
