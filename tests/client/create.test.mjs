// `npm create session-agent`: each template is made, served, tried and deployed dry, with the
// packages from their archives.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { promisify } from "node:util";
import { ROOT } from "../../scripts/places.mjs";
import { NODE, quietly } from "../../scripts/wrangler.mjs";
import { dev, project, wrangler } from "./packed.mjs";

const runFile = promisify(execFile);
const LINKS = ["ai", "zod", "wrangler"];

const folder = await mkdtemp(join(tmpdir(), "session-agent-create-"));
after(() => rm(folder, { recursive: true, force: true }));

// As npm has it: from the archive, where npm has left out what it leaves out.
await runFile("npm", ["pack", join(ROOT, "packages/create-session-agent"), "--pack-destination", folder], { env: quietly() });
const archive = (await readdir(folder)).find((name) => name.endsWith(".tgz"));
await runFile("tar", ["-xzf", archive], { cwd: folder });

/** What the program says, in the folder of this test. */
const create = (...args) => runFile(NODE, [join(folder, "package/index.js"), ...args], { cwd: folder, env: quietly() });

/** A project from a template, with its packages. */
async function made(template) {
  await create(`My ${template}!`, "--template", template);
  const files = await readdir(join(folder, `My ${template}!`));
  assert.ok(files.includes(".gitignore") && files.includes("package.json") && !files.includes("gitignore"), files.join());
  const { name, dependencies } = JSON.parse(await readFile(join(folder, `My ${template}!`, "package.json"), "utf8"));
  assert.equal(name, `my-${template}`);
  const { version } = JSON.parse(await readFile(join(ROOT, "packages/session-agent/package.json"), "utf8"));
  assert.equal(dependencies["session-agent"], `^${version}`);
  return await project(join(folder, `My ${template}!`), LINKS);
}

test("the_worker_is_served_with_its_console_and_deployed_dry", async () => {
  const { folder: place, remove } = await made("worker");
  try {
    assert.match(await wrangler(place, "deploy", "--dry-run"), /env\.SESSION_AGENT \(SessionAgent\)/);
    const server = await dev(place, "--var", "AUTH:local");
    try {
      assert.equal((await (await fetch(`${server.url}/health`)).json()).status, "ok");
      assert.match(await (await fetch(server.url)).text(), /<title>/);
      const response = await fetch(`${server.url}/agents/session-agent/alice/rpc/getBlocks`, { method: "POST", body: "{}" });
      assert.match(await response.text(), /"label":"memory".*"label":"facts"/);
    } finally {
      await server.stop();
    }
  } finally {
    await remove();
  }
});

test("the_class_passes_its_own_test_and_is_deployed_dry", async () => {
  const { folder: place, remove } = await made("class");
  try {
    assert.match(await wrangler(place, "deploy", "--dry-run"), /env\.SESSION_AGENT \(Assistant\)/);
    // A test's own runner would not run inside of another one.
    const { NODE_TEST_CONTEXT, ...env } = quietly();
    const { stdout, stderr } = await runFile(NODE, ["--test", "--test-reporter=tap"], { cwd: place, env: { ...env, CI: "1" } }).catch((error) => error);
    assert.match(stdout, /^# pass 1$/m, `${stdout}\n${stderr}`);
  } finally {
    await remove();
  }
});

test("what_can_not_be_made_is_said_in_a_sentence", async () => {
  const said = (...args) => create(...args).then(() => assert.fail("it was made"), ({ stderr }) => stderr.trim());
  assert.equal(await said("one", "--template", "castle"), "There is no template `castle`: class, worker.");
  await create("twice");
  assert.equal(await said("twice"), "twice is there already, and not empty.");
});
