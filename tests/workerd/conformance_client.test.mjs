// An agent as a client of the Model Context Protocol, in the scenarios of the pinned conformance
// suites that are about a client of tools. Not among them: those in which a client signs in, those of a
// stream that ends early and continues with another request, and those that a client passes only if it
// asks in the newest revision first (`request-metadata`, `http-standard-headers`). An agent begins with
// `initialize`, which servers of both revisions understand.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";

const FOLDER = fileURLToPath(new URL("../conformance", import.meta.url));
const results = await mkdtemp(join(tmpdir(), "session-agent-client-conformance-"));
after(() => rm(results, { recursive: true, force: true }));

const REVISIONS = {
  "2025-11-25": ["initialize", "tools_call", "json-schema-2020-12-preservation"],
  "2026-07-28": [
    "tools_call",
    "http-custom-headers",
    "http-invalid-tool-headers",
    "sep-2322-client-request-state",
    "json-schema-ref-no-deref",
    "json-schema-2020-12-preservation",
  ],
};

for (const [revision, scenarios] of Object.entries(REVISIONS)) {
  for (const scenario of scenarios) {
    test(`an_agent_is_a_client_of_${revision}_in_${scenario}`, async () => {
      const suite = join(FOLDER, "node_modules/conformance-0.2/dist/index.js");
      const command = `${process.execPath} ${join(FOLDER, "client.mjs")}`;
      const options = ["client", "--command", command, "--scenario", scenario, "--spec-version", revision];
      const child = spawn(process.execPath, [suite, ...options], { cwd: results, stdio: ["ignore", "pipe", "pipe"] });
      let said = "";
      for (const output of [child.stdout, child.stderr])
        output.setEncoding("utf8").on("data", (text) => (said += text));
      const code = await new Promise((resolve) => child.on("close", resolve));
      assert.equal(code, 0, said.slice(-8_000));
    });
  }
}
