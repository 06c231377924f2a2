// `npm run create -- ../my-agent [--template worker|class|react]`: `npm create session-agent` from this
// clone. The npm package is packed into the new project, so the project installs and deploys without
// the registry.

import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { build } from "./build.mjs";
import { CLIENT, ROOT } from "./paths.mjs";
import { run } from "./processes.mjs";
import { setUp } from "./setup.mjs";
import { UserError } from "./user_error.mjs";
import { NODE, quietEnv } from "./wrangler.mjs";

const CREATE = join(ROOT, "packages", "create-session-agent", "index.js");
const PACKAGES = "packages";

const USAGE = "Name the folder of the new project: `npm run create -- ../my-agent [--template class|react|worker]`.";

export async function main(args) {
  const { folder, template } = readArguments(args);
  await setUp();
  await build();
  return await createProject(folder, template);
}

/**
 * The caller's options. npm changes to the clone before it runs a script; `from` is the caller's
 * folder.
 */
export function readArguments(args, from = process.env.INIT_CWD ?? process.cwd()) {
  try {
    const options = { template: { type: "string", short: "t", default: "class" } };
    const { values, positionals } = parseArgs({ args, options, allowPositionals: true });
    if (positionals.length === 1) return { folder: resolve(from, positionals[0]), template: values.template };
  } catch {
    // An unknown option: the usage is more helpful than Node's own message.
  }
  throw new UserError(USAGE);
}

/** Creates the project from a template, with the package of this clone. Expects a current build. */
export async function createProject(folder, template) {
  const code = await run(NODE, [CREATE, folder, "--template", template], { env: quietEnv() });
  if (code !== 0) return code;
  const packages = join(folder, PACKAGES);
  mkdirSync(packages);
  const packed = await run("npm", ["pack", CLIENT, "--silent", "--pack-destination", packages], { env: quietEnv() });
  if (packed !== 0) throw new UserError("The package could not be packed: see the reason above.");
  const [archive] = readdirSync(packages);
  const manifest = join(folder, "package.json");
  const project = JSON.parse(readFileSync(manifest, "utf8"));
  project.dependencies["session-agent"] = `file:${PACKAGES}/${archive}`;
  writeFileSync(manifest, `${JSON.stringify(project, null, 2)}\n`);
  return 0;
}
