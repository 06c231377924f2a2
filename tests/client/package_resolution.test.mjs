// Ways to install the package: from its archive or in a workspace, an adapter resolves the
// project's packages. A linked package is refused with an explanation.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, test } from "node:test";
import { promisify } from "node:util";
import { CLIENT, ROOT } from "../../scripts/paths.mjs";
import { NODE, quietEnv } from "../../scripts/wrangler.mjs";
import { project } from "./packed_project.mjs";

const runFile = promisify(execFile);
const USES = 'import { SessionAgentSaver } from "session-agent/langgraph"; console.log(typeof SessionAgentSaver);';

const folder = await mkdtemp(join(tmpdir(), "session-agent-linked-"));
after(() => rm(folder, { recursive: true, force: true }));

// `npm link` writes to a global folder, which this test replaces with its own.
await mkdir(join(folder, "machine/lib"), { recursive: true });
// As in a user's shell: without the variables that `npm test` sets for its programs, such as the
// repository's own `ignore-scripts`.
const shell = Object.fromEntries(Object.entries(quietEnv()).filter(([name]) => !name.startsWith("npm_")));
const env = { ...shell, npm_config_prefix: join(folder, "machine") };

const npm = (cwd, ...args) =>
  runFile("npm", [...args, "--offline", "--no-audit", "--no-fund", "--legacy-peer-deps"], { cwd, env });

/** A folder with a package.json, and with a copy of the package in it if it is a workspace. */
async function makeProject(name, more = {}) {
  const path = join(folder, name);
  await mkdir(path);
  await writeFile(join(path, "package.json"), JSON.stringify({ name, private: true, type: "module", ...more }));
  return path;
}

const copyTo = (to) =>
  cp(CLIENT, to, { recursive: true, filter: (from) => !from.endsWith("/worker") && !from.endsWith("/src") });

/** LangGraph's packages, as npm would install them next to it. */
async function addFramework(at) {
  for (const name of ["@langchain/core", "@langchain/langgraph-checkpoint"]) {
    const to = join(at, "node_modules", name);
    await mkdir(dirname(to), { recursive: true });
    await symlink(join(ROOT, "tests/client/node_modules", name), to, "dir");
  }
}

async function uses(at) {
  await writeFile(join(at, "uses.mjs"), USES);
  return (await runFile(NODE, ["uses.mjs"], { cwd: at })).stdout;
}

test("a_linked_package_is_refused_with_advice", async () => {
  const clone = await makeProject("clone");
  await copyTo(join(clone, "packages/session-agent"));
  const user = await makeProject("user");
  for (const args of [
    ["install", "../clone/packages/session-agent"],
    ["link", "../clone/packages/session-agent"],
  ]) {
    const { stderr } = await npm(user, ...args).then(
      () => assert.fail(`${args[0]} was not refused`),
      (error) => error,
    );
    assert.match(
      stderr,
      /session-agent can't be installed as a link.*Create an archive and install that: `npm pack \.\/packages\/session-agent`/,
    );
  }
  await assert.rejects(uses(user), /ERR_MODULE_NOT_FOUND/);
});

test("an_example_in_the_repository_uses_a_linked_client", async () => {
  const example = await makeProject("clone/examples");
  await npm(example, "install", "../packages/session-agent");
  await writeFile(
    join(example, "client.mjs"),
    'import { sessionAgent } from "session-agent"; console.log(typeof sessionAgent);',
  );
  assert.equal((await runFile(NODE, ["client.mjs"], { cwd: example })).stdout, "function\n");
});

test("an_adapter_resolves_the_projects_packages_from_the_archive", async () => {
  const sources = await makeProject("sources");
  const { folder: path, remove } = await project(sources);
  try {
    await addFramework(path);
    assert.equal(await uses(path), "function\n");
  } finally {
    await remove();
  }
});

test("an_adapter_resolves_the_projects_packages_in_a_workspace", async () => {
  const root = await makeProject("root", { workspaces: ["packages/*"] });
  await copyTo(join(root, "packages/session-agent"));
  await npm(root, "install");
  await addFramework(root);
  assert.equal(await uses(root), "function\n");
});
