// How the build processes agent-defaults.json, and the errors that it reports.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { pathToFileURL } from "node:url";
import { buildDefaults, findDefaultsFault } from "../../scripts/build/defaults.mjs";

const roots = [];
after(() => roots.forEach((root) => rmSync(root, { recursive: true })));

/** The module's defaults after a build with these files. */
async function built(files) {
  const root = mkdtempSync(join(tmpdir(), "session-agent-defaults-"));
  roots.push(root);
  for (const [name, text] of Object.entries(files)) writeFileSync(join(root, name), text);
  await buildDefaults(root, join(root, "build"));
  const { agentDefaults } = await import(pathToFileURL(join(root, "build", "agent-defaults.js")));
  return agentDefaults();
}

test("the file reaches the module byte for byte", async () => {
  const text = '{ "systemInstructions": ["a\u2028b \\u0041 `${x}`"],\n "maxSteps": 1.0 }';
  assert.equal(await built({ "agent-defaults.json": text }), text);
  assert.equal(await built({}), undefined);
});

test("a file that is not a JSON object, or is too long, stops the build", async () => {
  for (const [text, sentence] of [
    ["{", /^agent-defaults\.json is not JSON: /],
    ["[]", /^agent-defaults\.json must contain a JSON object\.$/],
    ["null", /^agent-defaults\.json must contain a JSON object\.$/],
    [JSON.stringify({ x: "y".repeat(256 * 1024) }), /has 262152 bytes; at most 262144 are read/],
  ]) {
    await assert.rejects(built({ "agent-defaults.json": text }), { name: "UserError", message: sentence });
  }
});

test("a field that an agent would ignore stops the build and is named", async () => {
  const block = { label: "user", kind: "writable" };
  const tool = { name: "weather", url: "https://tools.example" };
  for (const [defaults, sentence] of [
    [{ maxStepz: 3 }, /^agent-defaults\.json: `maxStepz` is not a field here\. The fields are .*`maxSteps`/],
    [{ maxSteps: "3" }, /: `maxSteps` must be an integer or `null`\.$/],
    [{ maxSteps: 101 }, /: `maxSteps` must be at most 100\.$/],
    [{ refreshPrompt: "often" }, /: `refreshPrompt` must be "manual", "compaction" or "turn"\.$/],
    [{ systemInstructions: "Be kind." }, /: `systemInstructions` must be an array or `null`\.$/],
    [{ systemInstructions: ["a", 1] }, /: `systemInstructions\[1\]` must be a string\.$/],
    [{ prices: { input: 3 } }, /: `prices\.output` is missing\.$/],
    [{ limits: { costPerDay: -1 } }, /: `limits\.costPerDay` must be at least 0\.000001\.$/],
    [{ blocks: [block, { label: "x", kind: "written" }] }, /: `blocks\[1\]\.kind` must be "readonly", /],
    [{ blocks: [{ ...block, sessionId: "s" }] }, /: `blocks\[0\]\.sessionId` is not a field here/],
    [{ blocks: [block, { ...block, label: "USER" }] }, /: `blocks\[1\]\.label` is already used by another item/],
    [
      { blocks: [{ ...block, source: { agent: "a", r2: "b" } }] },
      /: `blocks\[0\]\.source` must have exactly one of `r2`/,
    ],
    [{ tools: [{ url: "https://x" }] }, /: `tools\[0\]\.name` is missing\.$/],
    [{ tools: [{ name: "x" }] }, /: `tools\[0\]` must have exactly one of `service`, `url`\.$/],
    [{ tools: [tool, tool] }, /: `tools\[1\]\.name` is already used by another item/],
    [{ tools: [{ name: "x", mcp: "https://x" }] }, /: `tools\[0\]\.mcp` can't be deployed/],
    [{ compaction: { compactAfter: -1 } }, /: `compaction\.compactAfter` must be at least 0\.$/],
    [{ compaction: [] }, /: `compaction` must be an object or `null`\.$/],
  ]) {
    await assert.rejects(
      built({ "agent-defaults.json": JSON.stringify(defaults) }),
      { name: "UserError", message: sentence },
      JSON.stringify(defaults),
    );
  }
  const config = `name = "a"\nmain = "m.js"\ncompatibility_date = "2026-11-17"\n[vars]\nAGENT_DEFAULTS = '{"maxSteps": 0}'\n`;
  await assert.rejects(built({ "wrangler.toml": config, "m.js": "" }), {
    name: "UserError",
    message: "AGENT_DEFAULTS in wrangler.toml: `maxSteps` must be at least 1.",
  });
});

/** A value of each kind, to replace any field. */
const STRANGE = [null, true, -7, 1.5, 1e300, "", "x".repeat(300), [], [null], {}, { x: 1 }];

test("each field is validated like its operation and an error names it", () => {
  const good = {
    model: "demo",
    maxSteps: 5,
    systemInstructions: ["a"],
    sessionSearch: true,
    vectors: false,
    temperature: 0.5,
    reasoningEffort: "low",
    refreshPrompt: "turn",
    whenBusy: "queue",
    prices: { input: 1, output: 2, models: { demo: { input: 0, output: 0 } } },
    limits: { turnsPerMinute: 5, costPerDay: 1 },
    onTurnEnd: { url: "https://x" },
    reservedMetadataKeys: ["a"],
    blocks: [{ label: "user", kind: "writable", maxTokens: 5, source: { agent: "user:{2}" }, whenChanged: "remind" }],
    tools: [{ name: "weather", url: "https://x", parameters: { type: "object" }, headers: { a: "b" } }],
    compaction: { compactAfter: null, protectHead: 1 },
  };
  assert.equal(findDefaultsFault(good), undefined);
  let tried = 0;
  let refused = 0;
  const places = (value, path) =>
    value !== null && typeof value === "object"
      ? Object.entries(value).flatMap(([name, part]) => [[...path, name], ...places(part, [...path, name])])
      : [];
  for (const path of places(good, [])) {
    for (const strange of STRANGE) {
      const copy = structuredClone(good);
      path.slice(0, -1).reduce((part, name) => part[name], copy)[path.at(-1)] = strange;
      tried += 1;
      const fault = findDefaultsFault(copy);
      if (fault === undefined) continue;
      refused += 1;
      assert.match(fault, new RegExp(`^\`${path[0]}`), `${path.join(".")} = ${JSON.stringify(strange)}`);
    }
  }
  console.log(`${tried} values tried, ${refused} refused`);
  assert.ok(refused > tried / 2);
});

test("a variable over the length limit stops the build", async () => {
  const config = (value, section = "vars") =>
    `name = "a"\nmain = "m.js"\ncompatibility_date = "2026-11-17"\n[${section}]\nAGENT_DEFAULTS = '${value}'\n`;
  const start = '{"systemInstructions":["';
  const long = `${start}${"x".repeat(5 * 1024 - start.length - 3)}"]}`;
  assert.equal(await built({ "wrangler.toml": config(long), "m.js": "" }), undefined);
  for (const section of ["vars", "env.production.vars"]) {
    await assert.rejects(built({ "wrangler.toml": config(`${long} `, section), "m.js": "" }), {
      name: "UserError",
      message:
        "AGENT_DEFAULTS in wrangler.toml has 5121 bytes; the limit of a variable is 5120. Put its JSON into the file agent-defaults.json next to wrangler.toml.",
    });
  }
  assert.equal(await built({ "wrangler.toml": `# AGENT_DEFAULTS = '${long}x'\n` }), undefined);
});
