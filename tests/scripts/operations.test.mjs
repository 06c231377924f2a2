// docs/operations.md is the output of scripts/operations.mjs for openapi.json.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { COMMAND, GENERATED, render } from "../../scripts/operations.mjs";
import { OPENAPI, ROOT } from "../../scripts/paths.mjs";

const api = JSON.parse(await readFile(OPENAPI, "utf8"));

const OBJECT = { "application/json": { schema: { type: "object" } } };

/** A document of one operation. `more` is merged into the operation. */
function documentOf(more) {
  const operation = {
    operationId: "ask",
    summary: "Asks.",
    description: "For all.",
    responses: { 200: { content: OBJECT } },
    "x-max-body-bytes": 2 ** 20,
    ...more,
  };
  const code = { enum: ["not_found", "forbidden"] };
  return {
    paths: { "/agents/session-agent/{agent}/rpc/ask": { post: operation } },
    components: { schemas: { Error: { properties: { error: { properties: { code, message: {}, details: {} } } } } } },
  };
}

const sent = (schema, more = {}) => ({ requestBody: { content: { "application/json": { schema, ...more } } } });
const renderOne = (more) => render(documentOf(more), { All: ["ask"] });

test("the_reference_matches_the_api", async () => {
  const written = await readFile(join(ROOT, GENERATED), "utf8");
  assert.ok(written === render(api), `${GENERATED} is outdated: \`${COMMAND}\` regenerates it`);
});

test("every_operation_has_a_section_and_an_example_body", async () => {
  const written = await readFile(join(ROOT, GENERATED), "utf8");
  const operations = Object.values(api.paths).flatMap((methods) => Object.values(methods));
  assert.ok(operations.length > 60);
  for (const { operationId, requestBody } of operations) {
    const [, after] = written.split(`\n### \`${operationId}\`\n`);
    assert.ok(after !== undefined, operationId);
    if (!requestBody?.content["application/json"]) continue;
    const [section] = after.split(/\n##/);
    const [, example] = section.match(/^```json\n(.*)\n```$/m) ?? assert.fail(`${operationId} has no example`);
    assert.deepEqual(JSON.parse(example), requestBody.content["application/json"].example, operationId);
  }
});

test("an_operation_without_a_group_is_reported", () => {
  assert.throws(() => render(documentOf({}), { All: [] }), /`ask` is in no group: add the operation to GROUPS/);
});

test("a_group_with_an_unknown_operation_is_refused", () => {
  assert.throws(() => render(documentOf({}), { All: ["ask", "gone"] }), /names `gone`/);
});

test("a_field_shows_its_type_and_whether_it_is_optional", () => {
  const properties = {
    limit: { type: "integer", minimum: 1, maximum: 500, default: 50, description: "How\nmany." },
    id: { type: ["string", "null"] },
  };
  const text = renderOne(sent({ properties, required: ["id"] }));
  assert.ok(
    text.includes(
      "| `id` | string or `null` |  |\n| `limit` (optional) | integer (1 to 500) | How many. Default: `50`. |\n",
    ),
    text,
  );
});

test("the_last_paragraph_states_who_may_call_it", () => {
  const text = renderOne({
    description: "More of it, see `not_found`.\n\nRequires the secret.",
    "x-presets": ["read"],
  });
  assert.ok(
    text.includes(
      "\nMore of it, see `not_found`.\n\n**Who may call it.** Requires the secret. The preset `read` includes it.\n",
    ),
    text,
  );
  assert.ok(text.includes("**Errors** that this description names: `not_found`."), text);
});

test("an_example_has_its_fields_in_table_order", () => {
  const schema = {
    properties: { n: {}, parts: { items: { properties: { kind: {}, text: {} }, required: ["text"] } }, id: {} },
    required: ["id"],
  };
  const example = { n: [1, 2], parts: [{ kind: "a", text: "b" }], id: "s" };
  const text = renderOne(sent(schema, { example }));
  assert.ok(
    text.includes('**Example**\n\n```json\n{"id": "s", "n": [1, 2], "parts": [{"text": "b", "kind": "a"}]}\n```\n'),
    text,
  );
});

test("two_headings_with_one_anchor_are_refused", () => {
  assert.throws(() => render(documentOf({}), { Ask: ["ask"] }), /two headings .* #ask/);
});
