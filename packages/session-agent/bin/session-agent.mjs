#!/usr/bin/env node
// `npx session-agent check`: rejects a Worker configuration that agents can't use. As `[build] command`
// of a wrangler.toml, it stops `wrangler dev` and `wrangler deploy`. With `--deploy`, it also rejects
// a template's placeholder login.
// `npx session-agent export` and `import`: see whole.mjs; `agents`, `erase`, `backup`, `restore`
// and `verify`: see agents.mjs.

import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { runAgents, USAGE as USAGE_AGENTS } from "./agents.mjs";
import { findVariableFault } from "./defaults.mjs";
import { findObjectsFault } from "./objects.mjs";
import { findPlaceholder } from "./placeholder.mjs";
import { runWhole, USAGE as USAGE_WHOLE } from "./whole.mjs";

const CONFIGS = ["wrangler.json", "wrangler.jsonc", "wrangler.toml"];
const others = [USAGE_WHOLE, USAGE_AGENTS].map((usage) => usage.replace("Usage:", "      "));
const USAGE = `Usage: session-agent check [--config wrangler.toml] [--deploy]\n${others.join("\n\n")}`;

const readApi = () => JSON.parse(readFileSync(join(import.meta.dirname, "../worker/site/openapi.json"), "utf8"));

class Missing extends Error {}

/** The project's wrangler, which reads its configuration. */
function loadWrangler() {
  const { resolve: find } = createRequire(join(process.cwd(), "package.json"));
  let wrangler;
  try {
    wrangler = find("wrangler");
  } catch {
    throw new Missing(
      `wrangler is needed to read the configuration, but is not installed in ${process.cwd()}. Run: npm install --save-dev wrangler`,
    );
  }
  return import(pathToFileURL(wrangler));
}

/** The file of defaults that a build of the repository deploys. */
const FILE = "agent-defaults.json";

/** Whether this folder is a clone of the repository, whose build checks the file. */
function isClone(folder) {
  try {
    return JSON.parse(readFileSync(join(folder, "package.json"), "utf8")).name === "session-agent";
  } catch {
    return false;
  }
}

async function check({ config: given, deploy }) {
  const config = given ?? CONFIGS.find((name) => existsSync(name));
  if (config === undefined || !existsSync(config))
    return `There is no ${config ?? "wrangler.toml"} in ${process.cwd()}.`;
  const folder = dirname(resolve(config));
  // Without the Worker, the rules would apply nowhere: retention, for example, would delete nothing.
  if (existsSync(join(folder, FILE)) && !isClone(folder))
    return `${FILE} is only read by the build in a clone of the repository, and has no effect here. Put its JSON in the variable AGENT_DEFAULTS.`;
  const tooLong = "For longer blocks and tools, use the methods `blocks()` and `tools()` of your class.";
  try {
    const fault = await findVariableFault(resolve(config), { loadWrangler, readApi, tooLong });
    if (fault !== undefined) return fault;
    const unbound = await findObjectsFault(resolve(config), { loadWrangler });
    if (unbound !== undefined) return unbound;
    const placeholder = findPlaceholder(folder);
    if (deploy) return placeholder;
    if (placeholder !== undefined) console.error(`Before you deploy: ${placeholder}`);
    return undefined;
  } catch (error) {
    return error instanceof Missing ? error.message : `${config} can't be read: ${error.message}`;
  }
}

/** Runs `export` or `import` until it ends, or until Ctrl-C. */
async function transfer(command, args) {
  const stop = new AbortController();
  // A second Ctrl-C ends the process at once.
  process.once("SIGINT", () => stop.abort());
  return await runWhole(command, args, { signal: stop.signal });
}

const [command, ...args] = process.argv.slice(2);

/** The options of `check`, or `null` where they are wrong. */
function checkOptions() {
  try {
    const options = { config: { type: "string" }, deploy: { type: "boolean" } };
    return parseArgs({ args, options }).values;
  } catch {
    return null;
  }
}

const checkArguments = command === "check" ? checkOptions() : null;
const run = {
  check: () => (checkArguments === null ? USAGE : check(checkArguments)),
  export: () => transfer(command, args),
  import: () => transfer(command, args),
  agents: () => runAgents(command, args),
  erase: () => runAgents(command, args),
  backup: () => runAgents(command, args),
  restore: () => runAgents(command, args),
  verify: () => runAgents(command, args),
};
const fault = await (Object.hasOwn(run, command ?? "") ? run[command]() : USAGE);
if (fault !== undefined) {
  console.error(fault);
  process.exitCode = 1;
} else if (checkArguments !== null) console.log("The defaults for every agent are valid.");
