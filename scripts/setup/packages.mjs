// Installs the npm packages, exactly as in package-lock.json.

import { existsSync, readFileSync } from "node:fs";
import { join, relative, sep } from "node:path";
import { LOCAL, ROOT } from "../paths.mjs";
import { run } from "../processes.mjs";
import { UserError } from "../user_error.mjs";

/** What building, serving and deploying need. */
export const packages = packagesIn(
  ROOT,
  "Installing the npm packages (wrangler, Node 22, wasm-opt, TypeScript: some 500 MB on disk)",
);

/** What the workerd tests need in addition: the client packages that people use with the Worker. */
export const testPackages = packagesIn(
  join(ROOT, "tests"),
  "Installing the tests' npm packages (the AI SDK, the Agents SDK, React)",
);

/**
 * What the tests of the client's adapters need in addition: the frameworks and their own test
 * suites.
 */
export const clientTestPackages = packagesIn(
  join(ROOT, "tests/client"),
  "Installing the packages of the client's tests (LangChain, TanStack AI, Google's ADK, the AI SDK's providers and the SDKs of OpenAI and Anthropic)",
);

/** What the tests of the Python package need from npm: the checker of its types. */
export const pythonTestPackages = packagesIn(
  join(ROOT, "tests/python"),
  "Installing the Python type checker (pyright)",
);

/** The oldest versions that the npm package supports, and other ways to run a Worker. */
export const versionPackages = packagesIn(
  join(ROOT, "tests/client/versions"),
  "Installing the oldest supported versions of wrangler and of the AI SDK",
);

/** Third-party generators of clients from openapi.json. */
export const generatorPackages = packagesIn(
  join(ROOT, "tests/client/generators"),
  "Installing programs that generate clients from openapi.json (openapi-typescript, hey-api)",
);

/** Coding agents, which the tests of the base URL run: some 600 MB on disk. */
export const codingAgentPackages = packagesIn(
  join(ROOT, "tests/client/coding_agents"),
  "Installing the coding agents that the base URL is tried with (Claude Code, pi: some 600 MB on disk)",
);

/**
 * The conformance suites of the Model Context Protocol, which the tests run as programs, and its
 * SDK.
 */
export const conformancePackages = packagesIn(
  join(ROOT, "tests/conformance"),
  "Installing the conformance suites of the Model Context Protocol",
);

/** What the benchmarks need in addition: the peers, with which the Worker is compared. */
export const benchPackages = packagesIn(
  join(ROOT, "bench"),
  "Installing the benchmarks' npm packages (the Agents SDK and its chat)",
);

/** The linter and formatter of JavaScript and TypeScript. */
export const lintPackages = packagesIn(
  join(ROOT, "tools/lint"),
  "Installing Biome, which lints JavaScript and TypeScript",
);

/** An example's own packages. */
export const packagesOfExample = (folder) => packagesIn(folder, "Installing the example's npm packages");

function packagesIn(folder, title) {
  const lock = join(relative(ROOT, folder), "package-lock.json");
  const modules = join(folder, "node_modules");
  return {
    title: () => title,
    lock: () => join(LOCAL, `packages-${relative(ROOT, folder).replaceAll(sep, "-")}.lock`),

    isDone() {
      const installed = readLock(join(modules, ".package-lock.json"));
      return installed !== null && isComplete(readLock(join(folder, "package-lock.json")), installed, process);
    },

    async run() {
      // Under wrangler, `npm ci` would remove the program that is running this script.
      if (process.env.WRANGLER_COMMAND && existsSync(modules)) {
        throw new UserError(`node_modules doesn't match ${lock}: run \`npm ci\`, then run this again.`);
      }
      const code = await run("npm", ["ci", "--no-audit", "--no-fund", "--loglevel=error"], { cwd: folder });
      if (code !== 0) {
        throw new UserError(
          `\`npm ci\` failed for ${lock} (see the reason above). This step needs access to the npm registry the first time.`,
        );
      }
    },
  };
}

/**
 * Whether `installed` has everything in `wanted` that this platform needs. Of the optional
 * packages, those for its system and processor are needed (workerd, esbuild, Node); npm decides
 * about the others.
 */
export function isComplete(wanted, installed, { platform, arch }) {
  const needed = ([path, entry]) =>
    path !== "" && (!entry.optional || (isFor(entry.os, platform) && isFor(entry.cpu, arch) && !entry.libc));
  return Object.entries(wanted.packages)
    .filter(needed)
    .every(([path, entry]) => installed.packages[path]?.version === entry.version);
}

function isFor(names, name) {
  return [].concat(names ?? []).includes(name);
}

/** npm writes its own copy last, so an incomplete installation has none. */
function readLock(file) {
  try {
    return JSON.parse(readFileSync(file, "utf8"));
  } catch {
    return null;
  }
}
