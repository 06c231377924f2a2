// The errors of `npx session-agent`: one sentence, and never a stack trace.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { CLIENT, ROOT } from "../../scripts/paths.mjs";

const folder = mkdtempSync(join(tmpdir(), "session-agent-command-"));
after(() => rmSync(folder, { recursive: true, force: true }));

const CLI = join(CLIENT, "bin/session-agent.mjs");
const file = join(folder, "kept.ndjson");

/** The command's exit status and its error output. */
function run(...args) {
  const { status, stderr } = spawnSync(process.execPath, [CLI, ...args], { cwd: ROOT, encoding: "utf8" });
  return [status, stderr];
}

const NO_SCHEME = "A URL begins with `https://` or `http://`, and `example.com` does not.\n";

for (const [command, ...more] of [["export", file], ["import", file], ["verify"], ["backup"]]) {
  test(`${command}_reports_an_invalid_url`, () => {
    assert.deepEqual(run(command, "kept", ...more, "--url", "example.com"), [1, NO_SCHEME]);
  });
}

test("an_agent_name_that_a_url_cannot_express_is_refused", () => {
  const sentence = "An agent's name must be a non-empty string other than `.` and `..`.\n";
  assert.deepEqual(run("export", "..", file, "--url", "http://127.0.0.1:9"), [1, sentence]);
});

test("check_reports_an_unreadable_configuration", () => {
  const config = join(folder, "wrangler.toml");
  writeFileSync(config, '[vars\nAGENT_DEFAULTS = "{}"\n');
  const sentence = `${config} can't be read: Invalid TOML document: illegal character in key\n`;
  assert.deepEqual(run("check", "--config", config), [1, sentence]);
});
