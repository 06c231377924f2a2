#!/usr/bin/env node
// `npx session-agent check`: what of a Worker's configuration the agents could not use. As
// `[build] command` of a wrangler.toml, it stops `wrangler dev` and `wrangler deploy`.
// `npx session-agent export` and `import`: see whole.mjs; `agents`, `erase`, `backup`, `restore`
// and `verify`: see agents.mjs.

import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { runAgents, USAGE as USAGE_AGENTS } from "./agents.mjs";
import { findVariableFault } from "./defaults.mjs";
import { runWhole, USAGE as USAGE_WHOLE } from "./whole.mjs";

const CONFIGS = ["wrangler.json", "wrangler.jsonc", "wrangler.toml"];
const others = [USAGE_WHOLE, USAGE_AGENTS].map((usage) => usage.replace("Usage:", "      "));
const USAGE = `Usage: session-agent check [--config wrangler.toml]\n${others.join("\n\n")}`;

const readApi = () => JSON.parse(readFileSync(join(import.meta.dirname, "../worker/site/openapi.json"), "utf8"));

/** The project's own wrangler, which reads its configuration. */
function loadWrangler() {
  const { resolve: find } = createRequire(join(process.cwd(), "package.json"));
  return import(pathToFileURL(find("wrangler")));
}

async function check(given) {
  const config = given ?? CONFIGS.find((name) => existsSync(name));
  if (config === undefined || !existsSync(config))
    return `There is no ${config ?? "wrangler.toml"} in ${process.cwd()}.`;
  const tooLong = "Give your class `blocks()` and `tools()` for what is longer.";
  return await findVariableFault(resolve(config), { loadWrangler, readApi, tooLong });
}

/** Runs `export` or `import` until it ends, or until Ctrl-C. */
async function transfer(command, args) {
  const stop = new AbortController();
  // A second Ctrl-C ends the process at once.
  process.once("SIGINT", () => stop.abort());
  return await runWhole(command, args, { signal: stop.signal });
}

const [command, ...args] = process.argv.slice(2);
const [option, config, ...more] = args;
const isCheck =
  command === "check" && more.length === 0 && (option === undefined || (option === "--config" && config !== undefined));
const run = {
  check: () => (isCheck ? check(config) : USAGE),
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
} else if (isCheck) console.log("The defaults for every agent can be used.");
