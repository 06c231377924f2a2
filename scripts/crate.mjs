// Writes the operations of crates/client, the crate for Workers in Rust, from the API's
// document: a struct for what each operation takes, and the shapes that operations share.
//
//   node scripts/crate.mjs
//
// The files are laid out as rustfmt lays them out. tests/scripts/crate.test.mjs fails when
// they are behind the document.

import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { GROUPS } from "./operations.mjs";
import { OPENAPI, ROOT } from "./places.mjs";

/** The folders that this script fills. */
export const GENERATED = ["crates/client/src/operations", "crates/client/tests"];
export const COMMAND = "node scripts/crate.mjs";

/** Each group of the reference is a module. */
const MODULES = {
  Sessions: "sessions",
  Events: "events",
  Messages: "messages",
  "Working context": "context",
  Branches: "branches",
  "Change feed": "feed",
  "Finding what was said": "search",
  "Conversations that grow": "compaction",
  "Blocks of memory": "blocks",
  "Entries of a searchable block": "entries",
  "Documents of a loadable block": "skills",
  "System prompt": "prompt",
  "Memory tools": "tools",
  Learning: "learning",
  Forgetting: "forgetting",
  "Chat turns": "turns",
  Settings: "settings",
  Agent: "agent",
  "Keeping and copies": "keeping",
  "Agents of a directory": "directory",
};

/** The shapes that several modules use, and those that answer an import. */
const SHARED = "shapes";
/** Their second half by name, if one file would be too long. */
const SHARED_LATER = "later_shapes";

/**
 * The crate has types of its own for errors, and of this shape only the codes. A message that is
 * sent is JSON.
 */
const LEFT_OUT = new Set(["ClientTool", "Error", "SentMessage", "SentUserMessage"]);

/** Operations that may run twice, where the agent knows a repetition by an id of the caller's. */
const REPEATABLE = {
  appendEvents: "self.events.iter().all(|event| event.id.is_some())",
  appendMessage: "self.message.id.is_some()",
  appendMessages: "self.messages.iter().all(|message| message.id.is_some())",
  runTurn: "self.message.id.is_some()",
  addUsage: "self.id.is_some()",
};

/** A message that is sent. The document lets the AI SDK say what it holds. */
const SENT_MESSAGE = "NewMessage";
const TAKES_MESSAGE = new Set(["appendMessage", "updateMessage", "upsertMessage", "runTurn"]);

/** The type of a field that holds messages that are sent. */
function sentAs(field, operation) {
  if (field === "message" && TAKES_MESSAGE.has(operation)) return SENT_MESSAGE;
  if (field === "messages" && operation === "appendMessages") return `Vec<${SENT_MESSAGE}>`;
  return undefined;
}

const WIDTH = 100;
/** The most arguments of a function: clippy's own bound. */
const MOST_ARGUMENTS = 7;

/** The lines of a file, at most. The shapes of a longer module are a module of their own. */
const LONGEST = 550;

/** The files: their text by their path. `modules` is another order, for tests. */
export function render(api, { groups = GROUPS, modules = MODULES } = {}) {
  const crate = new Crate(api);
  const operations = operationsOf(api);
  const parts = new Map();
  for (const [title, names] of Object.entries(groups)) {
    const own = names.filter((name) => operations.has(name));
    if (own.length === 0) continue;
    if (modules[title] === undefined)
      throw new Error(`the group \`${title}\` has no module: add one to MODULES in scripts/crate.mjs`);
    parts.set(modules[title], { title, operations: own.map((name) => operations.get(name)), shapes: [] });
  }
  const shared = { title: "Shapes that several operations use", operations: [], shapes: [] };
  const places = crate.places(parts, api);
  for (const name of operations.keys())
    if (places.has(pascal(name))) throw new Error(`\`${pascal(name)}\` is a shape and an operation: rename the shape`);
  for (const name of [...places.keys()].sort()) (parts.get(places.get(name)) ?? shared).shapes.push(name);
  for (const [module, part] of [...parts]) {
    if (lengthOf(crate.file(part, module, places)) <= LONGEST) continue;
    const apart = `${module}_shapes`;
    parts.set(apart, { title: `${part.title}: the shapes`, operations: [], shapes: part.shapes });
    for (const name of part.shapes) places.set(name, apart);
    part.shapes = [];
  }
  parts.set(SHARED, shared);
  if (lengthOf(crate.file(shared, SHARED, places)) > LONGEST) {
    const names = shared.shapes;
    shared.shapes = names.slice(0, names.length / 2);
    const later = { title: `${shared.title}: the second half`, operations: [], shapes: names.slice(names.length / 2) };
    parts.set(SHARED_LATER, later);
    for (const name of later.shapes) places.set(name, SHARED_LATER);
  }

  const files = new Map([["mod.rs", indexOf([...parts.keys()].sort())]]);
  for (const [module, part] of parts) files.set(`${module}.rs`, crate.file(part, module, places));
  files.set("codes.rs", codesOf(api));
  const [sources, tests] = GENERATED;
  const placed = [...files].map(([name, text]) => [`${sources}/${name}`, text]);
  return new Map([...placed, [`${tests}/examples.rs`, examplesOf([...operations.keys()].sort())]]);
}

const lengthOf = (text) => text.split("\n").length;

function operationsOf({ paths }) {
  const calls = Object.entries(paths).filter(([path]) => path.includes("/rpc/"));
  return new Map(calls.map(([, { post }]) => [post.operationId, post]));
}

function indexOf(modules) {
  const declared = [...modules, "codes"].sort();
  return `//! Every operation: a struct of what it takes, named as the operation, and its answer.
//!
//! \`${COMMAND}\` writes this folder from the API's own document.

${declared.map((name) => `mod ${name};`).join("\n")}

${declared.map((name) => `pub use self::${name}::${name === "codes" ? "Code" : "*"};`).join("\n")}
`;
}

/** A test of the crate: the document's example of each operation is read and written again. */
function examplesOf(names) {
  const holds = names.map((name) => `    holds::<${pascal(name)}>(&api);\n`);
  return `//! The example of each operation in the API's document is what its struct reads and writes.
//!
//! \`${COMMAND}\` writes this file.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_macros,
    reason = "a test may panic"
)]

use serde::de::DeserializeOwned;
use serde_json::Value;
use session_agent_client::*;

fn holds<O: Operation + DeserializeOwned>(api: &Value) {
    let path = format!("/agents/session-agent/{{agent}}/rpc/{}", O::NAME);
    let body = &api["paths"][&path]["post"]["requestBody"]["content"]["application/json"];
    let example = &body["example"];
    assert!(example.is_object(), "{path}");
    let read: O = serde_json::from_value(example.clone()).unwrap();
    assert_eq!(&serde_json::to_value(&read).unwrap(), example, "{path}");
}

#[test]
fn every_example_is_read_and_written_again() {
    let api = std::fs::read("../../generated/openapi.json").unwrap();
    let api: Value = serde_json::from_slice(&api).unwrap();
${holds.join("")}}
`;
}

function codesOf({ components }) {
  const { enum: codes } = components.schemas.Error.properties.error.properties.code;
  return `//! The codes of errors.
//!
//! \`${COMMAND}\` writes this file.

words! {
    /// Why an agent refused. Codes are stable.
    pub enum Code {
${codes.map((code) => `        ${pascal(code)} = ${JSON.stringify(code)},`).join("\n")}
    }
}
`;
}

class Crate {
  #schemas;
  /** The shapes that callers send. */
  #sent = new Set();
  /** The uses of each shape: the operations that answer with it, and the shape that it is a part of. */
  #answers = new Map();
  #wholes = new Map();
  /** The shapes that the file under way names. */
  #named = new Set();

  constructor({ paths, components: { schemas } }) {
    this.#schemas = schemas;
    for (const [name, { post }] of Object.entries(paths).flatMap(([path, { post }]) =>
      path.includes("/rpc/") ? namesIn(outputOf(post)).map((name) => [name, { post }]) : [],
    ))
      this.#answers.set(name, [...(this.#answers.get(name) ?? []), `\`${post.operationId}\``]);
    for (const [whole, schema] of Object.entries(schemas))
      for (const name of namesIn(schema)) if (!this.#wholes.has(name)) this.#wholes.set(name, whole);
  }

  /** The module of each shape: that of the only group that uses it, or else the shared one. */
  places(parts, { paths }) {
    const users = new Map();
    const note = (schema, module, isSent, seen = new Set()) => {
      for (const name of namesIn(schema)) {
        if (seen.has(name)) continue;
        seen.add(name);
        if (this.#isShape(name)) {
          users.set(name, (users.get(name) ?? new Set()).add(module));
          if (isSent) this.#sent.add(name);
        }
        note(this.#schemas[name], module, isSent, seen);
      }
    };
    for (const [module, { operations }] of parts) {
      for (const operation of operations) {
        note(this.#resolved(inputOf(operation)), module, true);
        note(outputOf(operation), module, false);
      }
    }
    const imports = Object.values(paths).flatMap((methods) => Object.values(methods));
    const imported = imports.find(({ operationId }) => operationId === "importSession");
    if (imported) note(outputOf(imported), SHARED, false);
    return new Map([...users].map(([name, modules]) => [name, modules.size === 1 ? [...modules][0] : SHARED]));
  }

  file({ title, operations, shapes }, module, places) {
    this.#named = new Set();
    const parts = [
      ...operations.map((operation) => this.#operation(operation)),
      ...shapes.map((name) => this.#shape(name)),
    ];
    const body = parts.join("\n");
    const words = new Set(body.replaceAll(/^\s*\/\/.*$/gm, "").match(/\w+/g));
    const others = [...places].filter(([name, place]) => place !== module && this.#named.has(name));
    const uses = [
      words.has("BTreeMap") && "use std::collections::BTreeMap;\n",
      useOf("serde", words.has("Deserialize") ? ["Deserialize", "Serialize"] : ["Serialize"]),
      words.has("Value") && "use serde_json::Value;",
      "",
      ...[...new Set(others.map(([, place]) => place))].sort().map((from) => {
        const names = others.filter(([, place]) => place === from).map(([name]) => name);
        return useOf(`super::${from}`, names);
      }),
      ...this.#crateUses(words),
      operations.length > 0 && "use crate::operation::Operation;",
    ].filter((line) => line !== false && line !== null);
    return `//! ${title}.\n//!\n//! \`${COMMAND}\` writes this file.\n\n${uses.join("\n").trim()}\n\n${body}`;
  }

  #crateUses(words) {
    const names = ["Object", `message::${SENT_MESSAGE}`];
    return names.filter((name) => words.has(name.split("::").at(-1))).map((name) => `use crate::${name};`);
  }

  #operation(operation) {
    const { operationId: name, summary, description } = operation;
    const type = pascal(name);
    const schema = this.#resolved(inputOf(operation));
    const fields = this.#fieldsOf(type, schema, name);
    const output = this.#type(outputOf(operation), `${type}Output`, []);
    const repeatable = REPEATABLE[name];
    return [
      docs([summary, description].filter(Boolean).join("\n\n")),
      struct(type, fields),
      "\n",
      this.#making(type, fields),
      `\nimpl Operation for ${type} {\n    type Output = ${output};\n    const NAME: &'static str = ${JSON.stringify(name)};\n`,
      `    const READS: bool = ${operation["x-presets"].includes("read")};\n`,
      repeatable ? `\n    fn is_repeatable(&self) -> bool {\n        ${repeatable}\n    }\n` : "",
      "}\n",
    ].join("");
  }

  #shape(name) {
    const schema = this.#schemas[name];
    const answers = this.#answers.get(name);
    const use = answers ? `What ${answers.join(", ")} answers.` : `A part of \`${this.#wholes.get(name)}\`.`;
    const head = docs(schema.description ?? use);
    if (isWords(schema)) return words(name, head, schema);
    if (schema.anyOf) return this.#choice(name, head, schema);
    const enums = [];
    const fields = this.#fieldsOf(name, schema, undefined, enums);
    const open = schema.additionalProperties === true;
    const parts = [head, struct(name, fields, open)];
    const making = this.#sent.has(name) ? this.#making(name, fields, open) : "";
    if (making) parts.push("\n", making);
    return [...parts, ...enums.map((text) => `\n${text}`)].join("");
  }

  /** One of several shapes, told apart by their fields. */
  #choice(name, head, { anyOf }) {
    const variants = anyOf.map((one) => {
      const type = this.#type(one, name, []);
      return `    ${one.$ref ? type : "Text"}(${type}),`;
    });
    return `${head}#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]\n#[serde(untagged)]\npub enum ${name} {\n${variants.join("\n")}\n}\n`;
  }

  /** The fields of a struct: those that must be there first. */
  #fieldsOf(owner, schema, operation, enums = []) {
    const { properties = {}, required = [] } = schema;
    const names = [...new Set([...required, ...Object.keys(properties)])];
    return names.map((json) => {
      const field = properties[json];
      const name = snake(json);
      if (camel(name) !== json) throw new Error(`\`${owner}.${json}\` can't be told in Rust's letters`);
      const isRequired = required.includes(json);
      const sent = sentAs(json, operation);
      const whole = sent ?? this.#type(field, `${owner}${pascal(json)}`, enums);
      const bare = whole.replace(/^Option<(.*)>$/, "$1");
      const nulls = !isRequired && saysNull(field, operation);
      return {
        name: KEYWORDS.has(name) ? `r#${name}` : name,
        json,
        isRequired,
        words: [wordsOf(field), nulls && "`Some(None)` sends `null`."].filter(Boolean).join("\n"),
        bare,
        type: isRequired ? whole : nulls ? `Option<Option<${bare}>>` : `Option<${bare}>`,
        saysNull: nulls,
      };
    });
  }

  /** How a caller makes a value: what it must have, and a method for each other field. */
  #making(type, fields, open = false) {
    const required = fields.filter(({ isRequired }) => isRequired);
    const left = fields.filter(({ isRequired }) => !isRequired);
    // A value of so many fields is read from an answer and sent back: nobody writes it by hand.
    const isWritten = required.length <= MOST_ARGUMENTS;
    const parts = isWritten ? [`impl ${type} {\n    #[must_use]\n${constructor(required, left, open)}}\n`] : [];
    if (left.length > 0) {
      const lines = left.map(
        ({ name, bare, saysNull }) => `    ${saysNull ? "or null " : ""}${name}: ${argument(bare)};`,
      );
      parts.push(`${isWritten ? "\n" : ""}setters! {\n    ${type}:\n${lines.join("\n")}\n}\n`);
    }
    return parts.join("");
  }

  /** The Rust of a schema. */
  #type(schema, place, enums) {
    if (schema === true || schema === undefined) return "Value";
    if (schema.$ref) {
      const name = refName(schema);
      if (!this.#isShape(name)) return this.#type(this.#schemas[name], name, enums);
      this.#named.add(name);
      return name;
    }
    if (schema.anyOf) {
      const [one, ...more] = schema.anyOf.filter(({ type }) => type !== "null");
      if (more.length > 0 || schema.anyOf.length !== 2) throw new Error(`\`${place}\` is one of several things`);
      return `Option<${this.#type(one, place, enums)}>`;
    }
    if (isWords(schema)) {
      enums.push(words(place, docs("The words of this field."), schema));
      return place;
    }
    if (schema.type === undefined) return "Value";
    const types = [schema.type].flat();
    const [one, ...more] = types.filter((type) => type !== "null");
    if (more.length > 0) throw new Error(`\`${place}\` is one of several types`);
    const plain = this.#plain(one, schema, place, enums);
    return types.length > 1 ? `Option<${plain}>` : plain;
  }

  #plain(type, schema, place, enums) {
    if (type === "string") return "String";
    if (type === "boolean") return "bool";
    if (type === "number") return "f64";
    if (type === "integer") return "i64";
    if (type === "array") {
      const item = this.#type(schema.items ?? true, place, enums);
      return schema.maxItems === 2 && schema.minItems === 2 ? `[${item}; 2]` : `Vec<${item}>`;
    }
    if (type !== "object" || schema.properties) throw new Error(`\`${place}\` is of the type ${type}, without a name`);
    const values = schema.additionalProperties;
    return values === true || values === undefined ? "Object" : `BTreeMap<String, ${this.#type(values, place, enums)}>`;
  }

  /** Whether a schema is a type of its own; any other, such as `Id`, is what it is made of. */
  #isShape(name) {
    const schema = this.#schemas[name];
    if (schema === undefined) throw new Error(`the API's document has no shape \`${name}\``);
    return !LEFT_OUT.has(name) && (schema.properties !== undefined || isWords(schema) || schema.anyOf !== undefined);
  }

  #resolved(schema) {
    return schema.$ref ? this.#schemas[refName(schema)] : schema;
  }
}

const KEYWORDS = new Set(["type", "match", "ref", "self", "use", "where", "loop", "move", "in"]);

const inputOf = ({ requestBody }) => requestBody.content["application/json"].schema;
const outputOf = ({ responses }) => responses["200"].content["application/json"].schema;
const refName = ({ $ref }) => $ref.split("/").at(-1);
const isWords = ({ enum: values, oneOf }) =>
  values !== undefined || (oneOf ?? []).some((one) => one.const !== undefined || one.enum !== undefined);

/** Whether `null` says something else than a field that is left out. */
function saysNull(field, operation) {
  const types = field.anyOf ? field.anyOf.map(({ type }) => type) : [field.type].flat();
  if (!types.includes("null") || types.includes("array"))
    return operation === "configureAgent" && types.includes("null");
  return operation === "configureAgent" || field.default === null;
}

const OPTIONAL = '    #[serde(skip_serializing_if = "Option::is_none")]\n';
const NULLABLE = `    #[serde(
        default,
        deserialize_with = "crate::operation::nullable",
        skip_serializing_if = "Option::is_none"
    )]
`;

function struct(name, fields, open = false) {
  const isPlain = fields.every(({ isRequired }) => !isRequired);
  const derived = ["Clone", "Debug", isPlain && "Default", "Deserialize", "PartialEq", "Serialize"];
  const head = `#[derive(${derived.filter(Boolean).join(", ")})]\n#[non_exhaustive]\n`;
  if (fields.length === 0) return `${head}pub struct ${name} {}\n`;
  const lines = fields.map(
    ({ words, isRequired, saysNull, name, type }) =>
      `${docs(words, "    ")}${isRequired ? "" : saysNull ? NULLABLE : OPTIONAL}    pub ${name}: ${type},\n`,
  );
  if (open) lines.push("    /// The fields that have no name here.\n    #[serde(flatten)]\n    pub more: Object,\n");
  return `${head}#[serde(rename_all = "camelCase")]\npub struct ${name} {\n${lines.join("")}}\n`;
}

function constructor(required, left, open) {
  if (required.length === 0) return "    pub fn new() -> Self {\n        Self::default()\n    }\n";
  const args = required.map(({ name, bare, type }) => `${name}: ${type === bare ? argument(bare) : type}`);
  const line = `    pub fn new(${args.join(", ")}) -> Self {\n`;
  const head =
    line.length - 1 <= WIDTH
      ? line
      : `    pub fn new(\n${args.map((arg) => `        ${arg},\n`).join("")}    ) -> Self {\n`;
  const values = [
    ...required.map(({ name, bare, type }) => (type === bare && isInto(bare) ? `${name}: ${name}.into()` : name)),
    ...left.map(({ name }) => `${name}: None`),
    ...(open ? ["more: Object::new()"] : []),
  ];
  const short = values.join(", ");
  // rustfmt writes a literal of at most 18 characters in one line.
  const body =
    short.length <= 18
      ? `        Self { ${short} }\n`
      : `        Self {\n${values.map((value) => `            ${value},\n`).join("")}        }\n`;
  return `${head}${body}    }\n`;
}

const isInto = (type) => type === "String" || type === SENT_MESSAGE;
const argument = (type) => (isInto(type) ? `impl Into<${type}>` : type);

/** An enum of words, which keeps a word that it does not know. */
function words(name, head, { enum: values = [], oneOf = [] }) {
  const variants = [
    ...oneOf.flatMap((one) => (one.enum ?? [one.const]).map((value) => [value, one.description])),
    ...values.map((value) => [value]),
  ];
  const lines = variants.map(
    ([value, said]) => `${docs(said, "        ")}        ${pascal(value)} = ${JSON.stringify(value)},\n`,
  );
  return `words! {\n${head.replaceAll(/^/gm, "    ").trimEnd()}\n    pub enum ${name} {\n${lines.join("")}    }\n}\n`;
}

function wordsOf(schema) {
  if (schema === true) return undefined;
  const usual =
    schema.default === undefined || schema.default === null ? [] : [`Default: \`${JSON.stringify(schema.default)}\`.`];
  return [schema.description, ...usual].filter(Boolean).join("\n") || undefined;
}

/** A doc comment, or nothing. A link of the agent's own code leads nowhere here. */
function docs(text, indent = "") {
  if (!text) return "";
  const plain = text.replaceAll(/\[(`[^`]+`)\](?!\()/g, "$1");
  const lines = plain.split("\n").flatMap((line) => wrapped(line, WIDTH - indent.length - "/// ".length));
  return `${lines.map((line) => `${indent}/// ${line}`.trimEnd()).join("\n")}\n`;
}

function wrapped(text, width) {
  const lines = [""];
  for (const word of text.split(" ")) {
    const line = lines.at(-1);
    if (line !== "" && line.length + 1 + word.length > width) lines.push(word);
    else lines[lines.length - 1] = line === "" ? word : `${line} ${word}`;
  }
  return lines;
}

function useOf(path, names) {
  const sorted = names.toSorted();
  const line = `use ${path}::${sorted.length === 1 ? sorted[0] : `{${sorted.join(", ")}}`};`;
  if (line.length <= WIDTH) return line;
  const rows = [""];
  for (const name of sorted) {
    const row = rows.at(-1);
    if (row !== "" && `    ${row} ${name},`.length > WIDTH) rows.push(`${name},`);
    else rows[rows.length - 1] = row === "" ? `${name},` : `${row} ${name},`;
  }
  return `use ${path}::{\n${rows.map((row) => `    ${row}`).join("\n")}\n};`;
}

/** The shapes that a schema names. */
function namesIn(schema) {
  if (Array.isArray(schema)) return schema.flatMap(namesIn);
  if (schema === null || typeof schema !== "object") return [];
  return Object.entries(schema).flatMap(([key, value]) =>
    key === "$ref" ? [value.split("/").at(-1)] : key === "example" ? [] : namesIn(value),
  );
}

function pascal(name) {
  const words = name.split(/[_-]/).filter(Boolean);
  return words.map((word) => word[0].toUpperCase() + word.slice(1)).join("");
}

const snake = (name) => name.replaceAll(/(?<!^)[A-Z]/g, "_$&").toLowerCase();
const camel = (name) => name.replaceAll(/_(\w)/g, (_, letter) => letter.toUpperCase());

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const files = render(JSON.parse(readFileSync(OPENAPI, "utf8")));
  for (const folder of GENERATED) {
    mkdirSync(join(ROOT, folder), { recursive: true });
    const there = readdirSync(join(ROOT, folder)).map((name) => `${folder}/${name}`);
    for (const file of there) if (!files.has(file)) rmSync(join(ROOT, file));
  }
  for (const [file, text] of files) writeFileSync(join(ROOT, file), text);
}
