// Starts an example by its documented command.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { ROOT } from "../../scripts/paths.mjs";
import { NODE } from "../../scripts/wrangler.mjs";
import { startModel } from "../workerd/model_server.mjs";
import { reservePort } from "../workerd/ports.mjs";

const START_MS = 240_000;

/** Runs `npm start` of an example while `work` uses its URL. */
export async function withExample(name, work, env = {}) {
  const reserved = await reservePort();
  const { port } = reserved.address();
  reserved.close();
  const child = spawn(NODE, [join(ROOT, "scripts/run.cjs"), "example", name], {
    cwd: join(ROOT, "examples", name),
    env: { ...process.env, ...env, PORT: `${port}` },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", (text) => (output += text));
  const ended = once(child, "exit");
  try {
    const url = `http://127.0.0.1:${port}`;
    for (const until = Date.now() + START_MS; ; await wait(200)) {
      if (
        await fetch(url).then(
          (response) => response.arrayBuffer(),
          () => null,
        )
      )
        break;
      // Wrangler waits for a change of the sources when it could not bundle them.
      assert.ok(
        child.exitCode === null && !/\bERROR\b/.test(output) && Date.now() < until,
        "The example does not answer.",
      );
    }
    await work(url);
  } catch (error) {
    throw new Error(`${error.message}\n${output}`, { cause: error });
  } finally {
    child.kill("SIGINT");
    await ended;
  }
}

/** The chat with a scripted model. */
export async function withChat(work) {
  const model = await startModel();
  const env = { MODEL: "openai:test", OPENAI_BASE_URL: model.url, OPENAI_API_KEY: "a key" };
  await withExample("session-agent", (url) => work(url, model), env).finally(() => model.stop());
}
