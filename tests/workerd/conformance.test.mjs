// Two pinned versions of the conformance suite of the Model Context Protocol against the built
// Worker. tests/conformance/ lists the expected failures with their reasons. An unlisted failure
// fails the test, and so does a listed one that passes.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { TOOLS, WORKER } from "../conformance/fixture.mjs";
import { call } from "./chat_server.mjs";
import { startServer } from "./harness.mjs";

const FOLDER = fileURLToPath(new URL("../conformance", import.meta.url));
const AGENT = "conformance";

const server = await startServer({
  vars: { AUTH: "local" },
  own: await readFile(join(FOLDER, "own_class.mjs"), "utf8"),
  workers: { fixture: WORKER },
});
const results = await mkdtemp(join(tmpdir(), "session-agent-conformance-"));
after(async () => {
  await server.stop();
  await rm(results, { recursive: true, force: true });
});
await call(server, AGENT, "defineBlock", { label: "memory", kind: "writable" });
for (const tool of TOOLS) await call(server, AGENT, "defineTool", tool);

/** Runs a suite and returns its exit status and output. */
async function run(suite, expected, args) {
  const program = join(FOLDER, "node_modules", suite, "dist/index.js");
  const url = new URL(`/agents/session-agent/${AGENT}/mcp`, server.url).href;
  const options = ["server", "--url", url, "--expected-failures", join(FOLDER, expected), ...args];
  const child = spawn(process.execPath, [program, ...options], { cwd: results, stdio: ["ignore", "pipe", "pipe"] });
  let printed = "";
  for (const output of [child.stdout, child.stderr]) output.setEncoding("utf8").on("data", (text) => (printed += text));
  const code = await new Promise((resolve) => child.on("close", resolve));
  const [, summary] = printed.split("=== SUMMARY ===\n");
  assert.ok(summary, printed);
  console.log(`${suite} ${args.join(" ")}\n${summary}`);
  return { code, summary };
}

const passed = (summary) => [...summary.matchAll(/^✓ (\S+): (\d+) passed, 0 failed/gm)].map(([, name]) => name);

test("the_suite_for_revisions_with_a_handshake_passes", async () => {
  const { code, summary } = await run("conformance-0.1", "expected-2025.yaml", []);
  assert.equal(code, 0, summary);
  for (const name of [
    "server-initialize",
    "ping",
    "tools-list",
    "tools-call-image",
    "tools-call-error",
    "resources-list",
    "resources-read-binary",
    "resources-templates-read",
    "resources-subscribe",
    "resources-unsubscribe",
    "prompts-list",
    "prompts-get-with-args",
    "prompts-get-with-image",
    "dns-rebinding-protection",
  ]) {
    assert.ok(passed(summary).includes(name), name);
  }
});

test("the_suite_for_the_newest_revision_passes", async () => {
  const { code, summary } = await run("conformance-0.2", "expected-2026.yaml", ["--requirements", "2026-07-28"]);
  assert.equal(code, 0, summary);
  for (const name of [
    "tools-list",
    "tools-call-mixed-content",
    "resources-read-text",
    "prompts-get-embedded-resource",
    "input-required-result-non-tool-request",
    "input-required-result-ignore-extra-params",
    "server-stateless",
    "sep-2164-resource-not-found",
    "caching",
    "json-schema-2020-12",
    "http-header-validation",
  ]) {
    assert.ok(passed(summary).includes(name), name);
  }
});

test("each_expected_failure_has_its_reason", async () => {
  for (const file of ["expected-2025.yaml", "expected-2026.yaml"]) {
    let reason = "";
    const lines = (await readFile(join(FOLDER, file), "utf8")).split("\n");
    for (const line of lines.slice(lines.findIndex((line) => line.startsWith("server:")) + 1)) {
      if (line.startsWith("  # ")) reason = line;
      else if (line !== "") assert.ok(line.startsWith("  - ") && reason !== "", `${file}: ${line}`);
    }
  }
});
