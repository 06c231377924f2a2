// `npm test`: runs the native tests, then those of the setup, in workerd and in a browser, and
// prints the slowest tests and a summary line.
//
//   npm test                                    everything
//   npm test -- tests/console/chat.test.mjs     one file, by its path or as `chat`
//   npm test -- tests/native/chat/queue.rs      one file of Rust's tests, or one test by its name
//   npm test -- native [name …]                 Rust's tests, as `cargo test` takes them
//   npm test -- workerd [search …]              one file: tests/workerd/search.test.mjs
//   npm test -- client [langgraph …]            the client with other frameworks
//   npm test -- python                          the Python package, from its archive
//   npm test -- scripts                         the tests of the setup
//   npm test -- console [chat …]
//   npm test -- player                          a few seconds of random play
//   npm test -- player --hours 2 [--workerd] [--seed 7]   for a given time
//   npm test -- cargo                           the tests that compile other Rust code
//   npm test -- alone                           the tests that measure memory or need the whole machine
//   npm test -- workerd client                  several parts
//
// Several of Node's test files run concurrently (scripts/test/pool.mjs).

import { join } from "node:path";
import { build } from "./build.mjs";
import { close, fromCargo, fromCheck, sum } from "./test_counts.mjs";
import { ROOT, withPackages } from "./paths.mjs";
import { run, runWithCopy } from "./processes.mjs";
import { setUp } from "./setup.mjs";
import {
  clientTestPackages,
  codingAgentPackages,
  conformancePackages,
  pythonTestPackages,
  testPackages,
  generatorPackages,
  versionPackages,
} from "./setup/packages.mjs";
import { UserError } from "./user_error.mjs";
import { filesNamed, PARTS_IN_NODE, testsOf } from "./test/files.mjs";
import { findNamed } from "./test/named.mjs";
import { envOfTests } from "./test/native.mjs";
import { runFiles } from "./test/pool.mjs";
import { printTimes } from "./test/times.mjs";
import { NODE } from "./wrangler.mjs";

/** What the parts need in addition to the build. */
const PACKAGES = {
  workerd: [testPackages, clientTestPackages, conformancePackages],
  alone: [testPackages],
  player: [testPackages],
  client: [testPackages, clientTestPackages, generatorPackages, versionPackages, codingAgentPackages],
  console: [testPackages],
  // The harness needs the first, and LangGraph for JavaScript is among the second.
  python: [testPackages, clientTestPackages, pythonTestPackages],
};

const PARTS = ["native", ...PARTS_IN_NODE];

/** The parts that need the Worker. */
const isOfWorker = (part) => part !== "scripts" && part !== "cargo";

export async function main(args) {
  const { parts, rest } = partsOf(args);
  await setUp(...new Set(parts.flatMap((name) => PACKAGES[name] ?? [])));
  const counts = [];
  if (parts.includes("native")) counts.push(await orFailed(() => native(rest)));
  const inNode = parts.filter((name) => name !== "native");
  if (parts.join() === "player" && rest[0]?.startsWith("--")) counts.push(await orFailed(() => playing(rest)));
  else if (inNode.length > 0) counts.push(await orFailed(() => files(inNode, rest)));
  return close(counts);
}

/** The parts named first and their arguments, or the named tests. Without a name: all parts. */
export function partsOf(args) {
  if (args.length === 0) return { parts: PARTS, rest: [] };
  const other = args.findIndex((name) => !PARTS.includes(name));
  const [parts, rest] = other < 0 ? [args, []] : [args.slice(0, other), args.slice(other)];
  if (parts.length === 0) {
    const named = findNamed(args);
    if (named === null) throw new UserError(unknown(args));
    return named;
  }
  if (parts.length > 1 && rest.length > 0) throw new UserError(`There is no part \`${rest[0]}\`: ${PARTS.join(", ")}.`);
  return { parts, rest };
}

function unknown(names) {
  const first = names.find((name) => findNamed([name]) === null);
  if (first === undefined) return "Name Rust's tests and files of Node's tests in separate runs.";
  return (
    `There is no part and no test \`${first}\`. The parts are: ${PARTS.join(", ")}. A test is named by the path ` +
    "of its file, such as tests/workerd/search.test.mjs, or by its name, such as search."
  );
}

/** A suite that can't even run is one failure, and the others still run. */
async function orFailed(run) {
  try {
    return await run();
  } catch (error) {
    console.error(error instanceof UserError ? error.message : error);
    return { passed: 0, failed: 1 };
  }
}

async function native(filters) {
  console.log("\n── native\n");
  const { code, output } = await runWithCopy("cargo", ["test", "--locked", ...filters], {
    cwd: ROOT,
    env: envOfTests(),
  });
  return fromCargo(output, code);
}

async function files(parts, named) {
  const chosen = named.length > 0 ? filesNamed(named, parts) : testsOf(parts);
  if (parts.some(isOfWorker)) await build();
  const done = await runFiles(chosen);
  printTimes(done);
  return sum(done);
}

/** Random play for as long as the options specify. */
async function playing(options) {
  await build();
  return fromCheck(
    await run(NODE, [join("tests", "player", "play.mjs"), ...options], { cwd: ROOT, env: withPackages() }),
  );
}
