// Runs `npm create session-agent` from its packed archive in a temporary folder.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after } from "node:test";
import { promisify } from "node:util";
import { ROOT } from "../../scripts/paths.mjs";
import { NODE, quietEnv } from "../../scripts/wrangler.mjs";
import { project } from "./packed_project.mjs";

const runFile = promisify(execFile);

export const folder = await mkdtemp(join(tmpdir(), "session-agent-create-"));
after(() => rm(folder, { recursive: true, force: true }));

// As npm has it: from the archive, without the files that npm omits.
await runFile("npm", ["pack", join(ROOT, "packages/create-session-agent"), "--pack-destination", folder], {
  env: quietEnv(),
});
const archive = (await readdir(folder)).find((name) => name.endsWith(".tgz"));
await runFile("tar", ["-xzf", archive], { cwd: folder });

/** The program's output, run in the folder of this test. */
export const create = (...args) =>
  runFile(NODE, [join(folder, "package/index.js"), ...args], { cwd: folder, env: quietEnv() });

/** A project from a template, with its packages: `links` names those that are linked. */
export async function createProject(template, links) {
  await create(`My ${template}!`, "--template", template);
  const files = await readdir(join(folder, `My ${template}!`));
  assert.ok(
    files.includes(".gitignore") && files.includes("package.json") && !files.includes("gitignore"),
    files.join(),
  );
  const { name, dependencies } = JSON.parse(await readFile(join(folder, `My ${template}!`, "package.json"), "utf8"));
  assert.equal(name, `my-${template}`);
  const { version } = JSON.parse(await readFile(join(ROOT, "packages/session-agent/package.json"), "utf8"));
  assert.equal(dependencies["session-agent"], `^${version}`);
  return await project(join(folder, `My ${template}!`), links);
}
