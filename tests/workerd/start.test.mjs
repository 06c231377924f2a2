// Starts and stops `npm start` as a person does.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { OPENAPI, ROOT } from "../../scripts/paths.mjs";
import { NODE, quietEnv, WRANGLER } from "../../scripts/wrangler.mjs";
import { reservePort } from "./ports.mjs";

const RUN = fileURLToPath(new URL("../../scripts/run.cjs", import.meta.url));
const state = mkdtempSync(join(tmpdir(), "session-agent-start-"));
after(() => rmSync(state, { recursive: true, force: true }));

test("npm_start_skips_a_taken_port_prints_its_url_and_ends_on_a_signal", async () => {
  const reserved = await reservePort();
  const { port } = reserved.address();

  const npmStart = spawn(process.execPath, [RUN, "start"], {
    env: { ...process.env, PORT: String(port), SESSION_AGENT_STATE: state },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const ended = once(npmStart, "exit");
  try {
    const { address, access } = await banner(npmStart.stdout);
    assert.match(access, /^open to everyone on this machine, /);
    assert.notEqual(address, `http://127.0.0.1:${port}`);
    assert.equal((await fetch(`${address}/health`)).status, 200);
    // wrangler serves the static files here, in place of the platform.
    assert.equal(await (await fetch(`${address}/openapi.json`)).text(), await readFile(OPENAPI, "utf8"));
    assert.match(await (await fetch(address)).text(), /<h1>Session Agent<\/h1>/);

    // Programs on this machine have access. A foreign name that resolves to this machine does not.
    const listed = new URL("/agents/session-agent/a/rpc/listSessions", address);
    assert.equal(await statusOf(listed, {}), 200);
    assert.equal(await statusOf(listed, { host: "rebound.example" }), 403);
    assert.equal(await statusOf(listed, { origin: "https://evil.example" }), 403);

    npmStart.kill("SIGTERM");
    assert.deepEqual(await ended, [0, null]);
    await assert.rejects(fetch(`${address}/health`));
  } finally {
    npmStart.kill("SIGTERM");
    await ended;
    reserved.close();
  }
});

test("wrangler_dev_in_the_clone_names_the_command_to_run", async () => {
  const port = await reservePort();
  const options = ["dev", "--port", `${port.address().port}`, "--inspector-port", "0"];
  port.close();
  const child = spawn(NODE, [WRANGLER, ...options], {
    cwd: ROOT,
    env: { ...quietEnv(), CI: "1" },
    detached: true,
    stdio: ["ignore", "pipe", "pipe"],
  });
  const ended = once(child, "close");
  let output = "";
  const printed = new Promise((resolve) => {
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding("utf8").on("data", (text) => {
        output += text;
        if (output.includes("run `npm start`")) resolve();
      });
  });
  await Promise.race([printed, ended]);
  if (child.exitCode === null) process.kill(-child.pid, "SIGINT");
  await ended;
  assert.match(output, /To try Session Agent on this machine, run `npm start`/);
});

test("npm_start_mentions_a_configured_secret", async () => {
  // wrangler reads secrets from the environment as from `.dev.vars`.
  const secret = {
    CLOUDFLARE_INCLUDE_PROCESS_ENV: "true",
    SESSION_AGENT_TOKEN: "a secret of this test, long enough to be one",
  };
  const npmStart = spawn(process.execPath, [RUN, "start"], {
    env: { ...process.env, ...secret, SESSION_AGENT_STATE: state },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const ended = once(npmStart, "exit");
  try {
    const { access } = await banner(npmStart.stdout);
    assert.match(access, /^requires a token, because SESSION_AGENT_TOKEN is set /);
  } finally {
    npmStart.kill("SIGTERM");
    await ended;
  }
});

/** Sends a request without `fetch`, which sets `Host` itself. */
async function statusOf(url, headers) {
  const outgoing = request(url, { method: "POST", headers });
  outgoing.end("{}");
  const [response] = await once(outgoing, "response");
  response.resume();
  return response.statusCode;
}

/** The printed URL, and who has access. */
async function banner(output) {
  let address;
  for await (const line of createInterface({ input: output })) {
    address ??= line.match(/^Session Agent is running at (http:\S+)$/)?.[1];
    if (address && line.startsWith("  ")) {
      output.resume();
      return { address, access: line.trim() };
    }
  }
  throw new Error("it ended without saying where it answers");
}
