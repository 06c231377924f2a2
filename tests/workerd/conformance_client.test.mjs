// An agent as a client of the Model Context Protocol, in those scenarios of the pinned conformance
// suite that concern tools. Excluded:
//
// - `elicitation-sep1034-client-defaults`: a server of an older revision asks during the call, and an
//   agent answers no requests of servers;
// - `auth/2025-03-26-oauth-endpoint-fallback`: endpoints that no metadata name are not guessed;
// - `auth/client-credentials-*`, `auth/enterprise-managed-authorization`, `auth/dpop*` and
//   `auth/wif-jwt-bearer`: extensions that an agent doesn't have;
// - `sep-2640-*`: skills of servers, likewise.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { play } from "../conformance/client.mjs";

const FOLDER = fileURLToPath(new URL("../conformance", import.meta.url));
const results = await mkdtemp(join(tmpdir(), "session-agent-client-conformance-"));
after(() => rm(results, { recursive: true, force: true }));

/** Runs the scenarios that the suite's program requests, and returns their output. */
const player = createServer(async (request, response) => {
  const lines = [];
  try {
    const { address, scenario, context } = JSON.parse(await text(request));
    await play(address, scenario, context, (line) => lines.push(line));
  } catch (error) {
    response.statusCode = 500;
    lines.push(error.stack);
  }
  response.end(lines.join("\n"));
}).listen(0, "127.0.0.1");
await once(player, "listening");
after(() => player.close());
const env = { ...process.env, CONFORMANCE_PLAYER: `http://127.0.0.1:${player.address().port}` };

const SIGN_IN = [
  "metadata-default",
  "metadata-var1",
  "metadata-var2",
  "metadata-var3",
  "basic-cimd",
  "scope-from-www-authenticate",
  "scope-from-scopes-supported",
  "scope-omitted-when-undefined",
  "scope-step-up",
  "scope-retry-limit",
  "token-endpoint-auth-basic",
  "token-endpoint-auth-post",
  "token-endpoint-auth-none",
  "pre-registration",
].map((name) => `auth/${name}`);

const REVISIONS = {
  "2025-03-26": ["auth/2025-03-26-oauth-metadata-backcompat"],
  "2025-11-25": ["initialize", "tools_call", "sse-retry", "json-schema-2020-12-preservation", ...SIGN_IN],
  "2026-07-28": [
    "tools_call",
    "request-metadata",
    "http-standard-headers",
    "http-custom-headers",
    "http-invalid-tool-headers",
    "sep-2322-client-request-state",
    "json-schema-ref-no-deref",
    "json-schema-2020-12-preservation",
    ...SIGN_IN,
    "auth/resource-mismatch",
    "auth/offline-access-scope",
    "auth/offline-access-not-supported",
    "auth/authorization-server-migration",
    "auth/iss-supported",
    "auth/iss-not-advertised",
    "auth/iss-supported-missing",
    "auth/iss-wrong-issuer",
    "auth/iss-unexpected",
    "auth/iss-normalized",
    "auth/metadata-issuer-mismatch",
  ],
};

for (const [revision, scenarios] of Object.entries(REVISIONS)) {
  for (const scenario of scenarios) {
    test(`an_agent_is_a_client_of_${revision}_in_${scenario}`, async () => {
      const suite = join(FOLDER, "node_modules/conformance-0.2/dist/index.js");
      const command = `${process.execPath} ${join(FOLDER, "command.mjs")}`;
      const options = ["client", "--command", command, "--scenario", scenario, "--spec-version", revision];
      const child = spawn(process.execPath, [suite, ...options], {
        cwd: results,
        env,
        stdio: ["ignore", "pipe", "pipe"],
      });
      let printed = "";
      for (const output of [child.stdout, child.stderr])
        output.setEncoding("utf8").on("data", (text) => (printed += text));
      const code = await new Promise((resolve) => child.on("close", resolve));
      assert.equal(code, 0, printed.slice(-8_000));
    });
  }
}
