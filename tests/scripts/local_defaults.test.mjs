// The defaults of `npm start`: memory blocks with which a new agent remembers, unless the folder
// has its own defaults.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { localDefaults } from "../../scripts/local_defaults.mjs";
import { ROOT } from "../../scripts/paths.mjs";

test("a_fresh_agent_has_memory_and_facts_and_learns", () => {
  const [option, variable] = localDefaults(ROOT);
  assert.equal(option, "--var");
  const { blocks, learn } = JSON.parse(variable.slice("AGENT_DEFAULTS:".length));
  assert.deepEqual(
    blocks.map(({ label, kind, whenChanged }) => [label, kind, whenChanged]),
    [
      ["memory", "writable", "remind"],
      ["facts", "searchable", undefined],
    ],
  );
  assert.deepEqual(learn, { into: "facts", review: "auto" });
});

test("a_folders_own_defaults_are_unchanged", () => {
  for (const [file, text, isOwn] of [
    ["agent-defaults.json", "{}", true],
    ["wrangler.toml", '[vars]\nAGENT_DEFAULTS = "{}"\n', true],
    ["wrangler.toml", '# AGENT_DEFAULTS = "{}"\n', false],
    [".dev.vars", "MEMORY_BLOCKS=[]\n", true],
    [".dev.vars", "OPENAI_API_KEY=k\n", false],
  ]) {
    const folder = mkdtempSync(join(tmpdir(), "defaults-"));
    writeFileSync(join(folder, file), text);
    assert.equal(localDefaults(folder).length, isOwn ? 0 : 2, `${file}: ${text}`);
    rmSync(folder, { recursive: true });
  }
});
