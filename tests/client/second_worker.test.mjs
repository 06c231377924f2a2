// Runs the adapters' suites again from a Worker in its own runtime, over a service binding and a
// Durable Object namespace, against the shipped configuration with its static files. The suites are
// the same files; the environment names the agent: see evicting_server.mjs.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";

const WAYS = ["service", "namespace"];

/** The suites, and the fewest tests of each. */
const SUITES = {
  openai_memory_session: 24,
  openai_agents: 15,
  tanstack_ai: 18,
  adk: 9,
  langgraph: 7,
  agents_context: 4,
  anthropic_memory: 4,
};

/** Runs a suite in a separate process and returns its output as TAP. */
async function run(suite, way) {
  const file = join(import.meta.dirname, `${suite}.test.mjs`);
  const child = spawn(process.execPath, ["--test-reporter=tap", file], {
    env: { ...process.env, NODE_TEST_CONTEXT: undefined, SUITE_WAY: way },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (more) => (output += more));
  const code = await new Promise((resolve) => child.once("close", resolve));
  return { output, code };
}

for (const way of WAYS) {
  test(`every_adapters_suite_passes_by_a_${way}_of_a_second_worker`, { concurrency: 2 }, async (context) => {
    const suites = Object.entries(SUITES).map(([suite, least]) =>
      context.test(suite, async (own) => {
        const { output, code } = await run(suite, way);
        const [passed, failed] = ["pass", "fail"].map((word) =>
          Number(output.match(new RegExp(`^# ${word} (\\d+)$`, "m"))?.[1]),
        );
        assert.ok(code === 0 && failed === 0 && passed >= least, output);
        own.diagnostic(`${passed} passed`);
      }),
    );
    await Promise.all(suites);
  });
}
