// What the build makes of agent-defaults.json, and what it refuses.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { pathToFileURL } from "node:url";
import { buildDefaults } from "../../scripts/build/defaults.mjs";

const roots = [];
after(() => roots.forEach((root) => rmSync(root, { recursive: true })));

/** What a build of these files gives the module. */
async function built(files) {
  const root = mkdtempSync(join(tmpdir(), "session-agent-defaults-"));
  roots.push(root);
  for (const [name, text] of Object.entries(files)) writeFileSync(join(root, name), text);
  await buildDefaults(root, join(root, "build"));
  const { agentDefaults } = await import(pathToFileURL(join(root, "build", "agent-defaults.js")));
  return agentDefaults();
}

test("the file's text reaches the module to the byte", async () => {
  const text = '{ "systemInstructions": ["a\u2028b \\u0041 `${x}`"],\n "maxSteps": 1.0 }';
  assert.equal(await built({ "agent-defaults.json": text }), text);
  assert.equal(await built({}), undefined);
});

test("a file that is no JSON object, or is too long, stops the build", async () => {
  for (const [text, sentence] of [
    ["{", /^agent-defaults\.json is not JSON: /],
    ["[]", /^agent-defaults\.json must hold a JSON object\.$/],
    ["null", /^agent-defaults\.json must hold a JSON object\.$/],
    [JSON.stringify({ x: "y".repeat(256 * 1024) }), /has 262152 bytes; at most 262144 are read/],
  ]) {
    await assert.rejects(built({ "agent-defaults.json": text }), { name: "Stop", message: sentence });
  }
});

test("a variable that is longer than a variable can be stops the build", async () => {
  const config = (value, section = "vars") => `name = "a"\nmain = "m.js"\ncompatibility_date = "2026-11-17"\n[${section}]\nAGENT_DEFAULTS = '${value}'\n`;
  const long = "x".repeat(5 * 1024);
  assert.equal(await built({ "wrangler.toml": config(long), "m.js": "" }), undefined);
  for (const section of ["vars", "env.production.vars"]) {
    await assert.rejects(built({ "wrangler.toml": config(`${long}x`, section), "m.js": "" }), {
      name: "Stop",
      message: "AGENT_DEFAULTS in wrangler.toml has 5121 bytes; a variable holds 5120. Put its JSON into the file agent-defaults.json beside wrangler.toml.",
    });
  }
  assert.equal(await built({ "wrangler.toml": `# AGENT_DEFAULTS = '${long}x'\n` }), undefined);
});
