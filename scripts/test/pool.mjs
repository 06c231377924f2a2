// Runs test files, some at once: most of them wait for the runtime or for a browser, and
// each starts its own. A file's output is shown when the file has ended.

import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fromTap, skippedInTap, testsInTap } from "../test_counts.mjs";
import { ROOT, withPackages } from "../paths.mjs";
import { runCaptured } from "../processes.mjs";
import { NODE } from "../wrangler.mjs";
import { ALONE, WAITING } from "./files.mjs";

/** Two cores: one file computes while others wait. A file that mostly waits runs in addition. */
const AT_ONCE = 3;

// A hanging test is a failure, not an endless run. isolate_memory.test.mjs starts a runtime for each
// operation and takes minutes.
const TEST_TIMEOUT_MS = 900_000;

/**
 * Runs the files. Returns `{ passed, failed, ms, tests }` of each, in the order in which they
 * ended. `tests` are the file's longest tests.
 */
export async function runFiles(files) {
  const done = [];
  const alone = files.filter((file) => ALONE.includes(file));
  const waiting = files.filter((file) => WAITING.includes(file));
  const others = files.filter((file) => ![...alone, ...waiting].includes(file));
  const runAll = async (queue) => {
    for (let file = queue.shift(); file !== undefined; file = queue.shift()) done.push(await runFile(file));
  };
  await Promise.all([runAll(waiting), ...Array.from({ length: AT_ONCE }, () => runAll(others))]);
  await runAll(alone);
  return done;
}

async function runFile(file) {
  const report = mkdtempSync(join(tmpdir(), "session-agent-report-"));
  const tap = join(report, "tap");
  const reporters = [
    ["--test-reporter=spec", "--test-reporter-destination=stdout"],
    ["--test-reporter=tap", `--test-reporter-destination=${tap}`],
  ];
  const started = performance.now();
  try {
    const args = ["--test", `--test-timeout=${TEST_TIMEOUT_MS}`, ...reporters.flat(), file];
    const { code, output } = await runCaptured(NODE, args, { cwd: ROOT, env: withPackages() });
    const ms = performance.now() - started;
    const results = readFileSync(tap, "utf8");
    const count = fromTap(results, code);
    console.log(
      `\n── ${file}: ${count.passed} passed, ${count.failed} failed in ${(ms / 1000).toFixed(1)} s\n\n${output.trimEnd()}`,
    );
    // Repeated outside the log: a skipped test neither passes nor fails.
    for (const reason of skippedInTap(results)) console.log(`SKIPPED: ${reason}`);
    return { file, ms, ...count, tests: testsInTap(results) };
  } finally {
    rmSync(report, { recursive: true, force: true });
  }
}
