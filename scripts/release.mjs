// `npm run release -- npm|crates|pypi`: publishes the packages of one registry. Each registry needs
// its own login first: `npm login`, `cargo login`, and twine's TWINE_USERNAME and TWINE_PASSWORD.
//
//   npm run release -- npm               session-agent and create-session-agent
//   npm run release -- crates            session-agent-client
//   npm run release -- pypi              session-agent
//   npm run release -- npm --dry-run     everything but the upload; without a registry: all of them

import { mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { build } from "./build.mjs";
import { close, fromCheck } from "./test_counts.mjs";
import { BUILD, CLIENT, ROOT } from "./paths.mjs";
import { outputOf, run, runCaptured } from "./processes.mjs";
import { setUp } from "./setup.mjs";
import { pythonPackages } from "./setup/python.mjs";
import { UserError } from "./user_error.mjs";

const NPM_PACKAGES = [CLIENT, join(ROOT, "packages", "create-session-agent")];
const CRATE = "session-agent-client";
const PYTHON = join(ROOT, "python");

/** npm's message about a version that it has. A dry run between two releases is not a failure. */
const PUBLISHED_BEFORE = /cannot publish over the previously published version/i;

const REGISTRIES = { npm: toNpm, crates: toCrates, pypi: toPypi };

const USAGE = `Name a registry: \`npm run release -- ${Object.keys(REGISTRIES).join("|")} [--dry-run]\`.`;

export async function main(args) {
  const { registries, dryRun } = readArguments(args);
  const version = sharedVersion();
  if (!dryRun) mustBeReady(version);
  await setUp();
  await build();
  const counts = [];
  for (const registry of registries) {
    console.log(`\n── ${registry}: version ${version}${dryRun ? ", without the upload" : ""}\n`);
    counts.push(fromCheck(await REGISTRIES[registry](dryRun)));
  }
  return close(counts);
}

/** One registry is published at a time: a failure leaves the others as they were. */
export function readArguments(args) {
  let read;
  try {
    read = parseArgs({ args, options: { "dry-run": { type: "boolean", default: false } }, allowPositionals: true });
  } catch {
    throw new UserError(USAGE);
  }
  const dryRun = read.values["dry-run"];
  const registries = read.positionals.length === 0 && dryRun ? Object.keys(REGISTRIES) : read.positionals;
  const isKnown = registries.every((name) => Object.hasOwn(REGISTRIES, name));
  if (!isKnown || registries.length === 0 || (registries.length > 1 && !dryRun)) throw new UserError(USAGE);
  return { registries, dryRun };
}

/** The version that all packages have. */
export function sharedVersion() {
  const versionIn = (file, pattern) => readFileSync(join(ROOT, file), "utf8").match(pattern)?.[1];
  const versions = {
    "packages/session-agent/package.json": versionIn("packages/session-agent/package.json", /"version": "(.+)"/),
    "packages/create-session-agent/package.json": versionIn(
      "packages/create-session-agent/package.json",
      /"version": "(.+)"/,
    ),
    "Cargo.toml": versionIn("Cargo.toml", /^version = "(.+)"/m),
    "python/pyproject.toml": versionIn("python/pyproject.toml", /^version = "(.+)"/m),
    "python/src/session_agent/_version.py": versionIn("python/src/session_agent/_version.py", /= "(.+)"/),
  };
  const [first, ...others] = new Set(Object.values(versions));
  if (others.length === 0 && first !== undefined) return first;
  const list = Object.entries(versions).map(([file, version]) => `${file}: ${version}`);
  throw new UserError(
    `The packages have different versions. Write the same version into each file:\n${list.join("\n")}`,
  );
}

function mustBeReady(version) {
  const changes = outputOf("git", ["-C", ROOT, "status", "--porcelain"]);
  if (changes !== "") throw new UserError("There are uncommitted changes. Commit them, then release.");
  const problem = problemWithChangelog(readFileSync(join(ROOT, "CHANGELOG.md"), "utf8"), version);
  if (problem !== null) throw new UserError(problem);
}

/** Why a changelog isn't ready for the release of this version, or `null`. */
export function problemWithChangelog(changelog, version) {
  const sections = changelog.split(/^## /m).slice(1);
  const textOf = (title) => sections.find((section) => section.startsWith(`${title}\n`))?.slice(title.length);
  if (!textOf(version)?.trim()) return `CHANGELOG.md has no section \`## ${version}\`. Write it, then release.`;
  if (textOf("Unreleased")?.trim())
    return `CHANGELOG.md has changes under \`## Unreleased\`. Move them to \`## ${version}\`, or raise the version.`;
  return null;
}

async function toNpm(dryRun) {
  for (const folder of NPM_PACKAGES) {
    const { code, output } = await runCaptured("npm", ["publish", ...(dryRun ? ["--dry-run"] : [])], { cwd: folder });
    console.log(output);
    if (code !== 0 && !(dryRun && PUBLISHED_BEFORE.test(output))) return code;
  }
  return 0;
}

/** `--no-verify`: `npm test -- cargo` compiles the packed archive in an empty folder. */
function toCrates(dryRun) {
  const more = dryRun ? ["--dry-run", "--allow-dirty"] : [];
  return run("cargo", ["publish", "--locked", "--package", CRATE, "--no-verify", ...more], { cwd: ROOT });
}

async function toPypi(dryRun) {
  const requirements = readFileSync(join(PYTHON, "release-requirements.txt"), "utf8")
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"));
  const found = await pythonPackages({ title: "what publishes a Python package", requirements }, { variables: {} });
  if (found.because)
    throw new UserError(`The Python package can't be built: ${found.because}. To fix this, ${found.help}.`);
  const env = { ...process.env, ...found.env };
  const folder = join(BUILD, "pypi");
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const built = await run(found.python, ["-m", "build", "--no-isolation", "--outdir", folder, PYTHON], { env });
  if (built !== 0) return built;
  const archives = readdirSync(folder).map((name) => join(folder, name));
  const checked = await run(found.python, ["-m", "twine", "check", "--strict", ...archives], { env });
  if (checked !== 0 || dryRun) return checked;
  return await run(found.python, ["-m", "twine", "upload", "--non-interactive", ...archives], { env });
}
