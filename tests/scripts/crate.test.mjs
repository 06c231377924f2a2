// The operations of crates/client are what scripts/crate.mjs makes of the API's document.

import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { COMMAND, GENERATED, render } from "../../scripts/crate.mjs";
import { OPENAPI, ROOT } from "../../scripts/places.mjs";

const api = JSON.parse(await readFile(OPENAPI, "utf8"));

const CODES = { properties: { error: { properties: { code: { enum: ["leaf_moved"] } } } } };

/** The module of one operation, with the shapes of a document. `more` is merged into the operation. */
function renderOne({ input = { type: "object" }, output = { type: "string" }, schemas = {}, ...more }) {
  const content = (schema) => ({ content: { "application/json": { schema } } });
  const post = {
    operationId: "askThem",
    summary: "Asks.",
    requestBody: content(input),
    responses: { 200: content(output) },
    "x-presets": [],
    ...more,
  };
  const document = {
    paths: { "/agents/session-agent/{agent}/rpc/askThem": { post } },
    components: { schemas: { ...schemas, Error: CODES } },
  };
  return render(document, { groups: { All: ["askThem"] }, modules: { All: "all" } }).get(`${GENERATED[0]}/all.rs`);
}

const count = { type: "integer", minimum: 0 };

test("the_crate_is_in_step_with_the_api", async () => {
  const files = render(api);
  assert.ok(files.size > 15);
  const there = await Promise.all(
    GENERATED.map(async (folder) => (await readdir(join(ROOT, folder))).map((name) => `${folder}/${name}`)),
  );
  assert.deepEqual(there.flat().sort(), [...files.keys()].sort(), `\`${COMMAND}\` writes these files anew`);
  for (const [file, text] of files) {
    const written = await readFile(join(ROOT, file), "utf8");
    assert.ok(written === text, `${file} is behind the API's document: \`${COMMAND}\` writes it anew`);
  }
});

test("every_operation_is_a_struct_with_every_field_of_its_input", () => {
  const text = [...render(api).values()].join("\n");
  const operations = Object.entries(api.paths).filter(([path]) => path.includes("/rpc/"));
  assert.ok(operations.length > 60);
  for (const [, { post }] of operations) {
    const { schema } = post.requestBody.content["application/json"];
    const { properties = {} } = schema.$ref ? api.components.schemas[schema.$ref.split("/").at(-1)] : schema;
    const named = new RegExp(
      `impl Operation for (\\w+) \\{\\n.*\\n {4}const NAME: &'static str = "${post.operationId}"`,
    );
    const [, type] = text.match(named);
    const [, fields] = text.match(new RegExp(`^pub struct ${type} \\{(\\}|\\n(?: {4}.*\\n)*)`, "m"));
    const written = [...fields.matchAll(/^ {4}pub (?:r#)?(\w+): /gm)].map(([, name]) => name.replaceAll("_", ""));
    const expected = Object.keys(properties).map((name) => name.toLowerCase());
    assert.deepEqual(written.sort(), expected.sort(), post.operationId);
  }
});

test("no_file_is_long", () => {
  const long = [...render(api)].filter(([, text]) => text.split("\n").length > 551);
  assert.deepEqual(
    long.map(([name]) => name),
    [],
  );
});

test("what_is_required_is_an_argument_and_the_rest_is_a_method", () => {
  const properties = { maxBytes: count, name: { type: "string" }, at: { type: ["string", "null"] } };
  const text = renderOne({ input: { type: "object", properties, required: ["name"] } });
  assert.ok(text.includes("    pub fn new(name: impl Into<String>) -> Self {\n"), text);
  assert.ok(text.includes("    pub max_bytes: Option<i64>,\n"), text);
  assert.ok(text.includes("setters! {\n    AskThem:\n    max_bytes: i64;\n    at: impl Into<String>;\n}\n"), text);
});

test("null_that_says_something_is_told_from_a_field_that_is_left_out", () => {
  const leaf = { anyOf: [{ type: "string" }, { type: "null" }], default: null };
  const text = renderOne({
    input: { type: "object", properties: { leafId: leaf, since: { type: ["integer", "null"] } } },
  });
  assert.ok(text.includes("    /// `Some(None)` sends `null`.\n"), text);
  assert.ok(text.includes("    pub leaf_id: Option<Option<String>>,\n"), text);
  assert.ok(text.includes("    pub since: Option<i64>,\n"), text);
});

test("a_shape_that_the_generator_does_not_know_is_refused", () => {
  const ask = (field) => () => renderOne({ input: { type: "object", properties: { field } } });
  assert.throws(ask({ type: "object", properties: { a: count } }), /of the type object, without a name/);
  assert.throws(ask({ type: ["string", "integer"] }), /one of several types/);
  assert.throws(ask({ anyOf: [{ type: "string" }, count] }), /one of several things/);
  assert.throws(ask({ $ref: "#/components/schemas/Gone" }), /no shape `Gone`/);
});

test("a_shape_that_is_called_as_an_operation_is_refused", () => {
  const AskThem = { properties: { n: count } };
  assert.throws(
    () => renderOne({ output: { $ref: "#/components/schemas/AskThem" }, schemas: { AskThem } }),
    /`AskThem` is a shape and an operation/,
  );
});

test("a_group_without_a_module_is_named", () => {
  const groups = { New: ["listSessions"] };
  assert.throws(
    () => render(api, { groups }),
    /the group `New` has no module: add one to MODULES in scripts\/crate\.mjs/,
  );
});

test("a_words_own_sentence_is_its_documentation_and_an_unknown_word_is_kept", () => {
  const Mood = {
    oneOf: [
      { const: "very-good", type: "string", description: "The best." },
      { const: "bad", type: "string" },
    ],
  };
  const text = renderOne({ output: { $ref: "#/components/schemas/Mood" }, schemas: { Mood } });
  assert.ok(
    text.includes(
      '    pub enum Mood {\n        /// The best.\n        VeryGood = "very-good",\n        Bad = "bad",\n    }\n',
    ),
    text,
  );
});
