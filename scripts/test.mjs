// `npm test`: the native tests, then those of the set-up, in workerd and in a browser,
// then one line that sums all up.
//
//   npm test                                    everything
//   npm test -- native [name …]                 Rust's tests, as `cargo test` takes them
//   npm test -- workerd [tests/workerd/x.test.mjs …]
//   npm test -- client [tests/client/x.test.mjs …]   the client under others' frameworks
//   npm test -- scripts                         the set-up's own tests
//   npm test -- console [tests/console/x.test.mjs …]
//   npm test -- player                          some seconds of random play
//   npm test -- player --hours 2 [--workerd] [--seed 7]   as long as one likes

import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { build } from "./build.mjs";
import { close, fromCargo, fromCheck, fromTap, skippedInTap } from "./counts.mjs";
import { ROOT, withPackages } from "./places.mjs";
import { run, runKeeping } from "./processes.mjs";
import { setUp } from "./setup.mjs";
import { clientTestPackages, conformancePackages, testPackages } from "./setup/packages.mjs";
import { Stop } from "./stop.mjs";
import { NODE } from "./wrangler.mjs";

// A test that hangs is a failure, not a run without an end. A file counts as a test,
// and memory.test.mjs starts a runtime for each operation: some minutes' worth.
const TEST_TIMEOUT_MS = 900_000;

/** What the parts need besides what building does. */
const PACKAGES = { workerd: [testPackages, conformancePackages], player: [testPackages], client: [testPackages, clientTestPackages], console: [testPackages] };

const PARTS = {
  native,
  scripts: (files) => inNode(files, "tests/scripts"),
  workerd: (files) => inWorkerd(files, "tests/workerd"),
  client: (files) => inWorkerd(files, "tests/client"),
  console: (files) => inWorkerd(files, "tests/console"),
  player: (files) => (files.length > 0 ? playing(files) : inWorkerd(files, "tests/player")),
};

export async function main([part, ...rest]) {
  if (part !== undefined && !(part in PARTS)) {
    throw new Stop(`There is no part \`${part}\`: ${Object.keys(PARTS).join(", ")}.`);
  }
  const parts = part === undefined ? Object.keys(PARTS) : [part];
  await setUp(...new Set(parts.flatMap((name) => PACKAGES[name] ?? [])));
  const counts = [];
  for (const name of parts) {
    counts.push(await counted(name, () => PARTS[name](rest)));
  }
  return close(counts);
}

/** A part that can't even run is one failure, and the others still have their turn. */
async function counted(name, run) {
  console.log(`\n── ${name}\n`);
  try {
    return await run();
  } catch (error) {
    console.error(error instanceof Stop ? error.message : error);
    return { passed: 0, failed: 1 };
  }
}

async function native(filters) {
  const { code, output } = await runKeeping("cargo", ["test", "--locked", ...filters], { cwd: ROOT });
  return fromCargo(output, code);
}

async function inWorkerd(files, folder) {
  await build();
  return await inNode(files, folder);
}

/** Random play for as long as the options say. */
async function playing(options) {
  await build();
  return fromCheck(await run(NODE, [join("tests", "player", "play.mjs"), ...options], { cwd: ROOT, env: withPackages() }));
}

async function inNode(files, folder) {
  const tests = files.length > 0 ? files : testsIn(folder);
  const report = mkdtempSync(join(tmpdir(), "session-agent-report-"));
  const tap = join(report, "tap");
  const reporters = [
    ["--test-reporter=spec", "--test-reporter-destination=stdout"],
    ["--test-reporter=tap", `--test-reporter-destination=${tap}`],
  ];
  try {
    const code = await run(NODE, ["--test", `--test-timeout=${TEST_TIMEOUT_MS}`, ...reporters.flat(), ...tests], {
      cwd: ROOT,
      env: withPackages(),
    });
    const said = readFileSync(tap, "utf8");
    // Told again where it can't be overlooked: skipped is neither passed nor failed.
    for (const reason of skippedInTap(said)) console.log(`SKIPPED: ${reason}`);
    return fromTap(said, code);
  } finally {
    rmSync(report, { recursive: true, force: true });
  }
}

/** Named one by one: what `node --test` makes of a folder differs by version. */
function testsIn(folder) {
  return readdirSync(join(ROOT, folder))
    .filter((name) => name.endsWith(".test.mjs"))
    .sort()
    .map((name) => join(folder, name));
}
