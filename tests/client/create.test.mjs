// `npm create session-agent`: each template is made, served, tried and deployed dry, with the
// packages from their archives.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { test } from "node:test";
import { promisify } from "node:util";
import { NODE, quietly } from "../../scripts/wrangler.mjs";
import { create, made } from "./created.mjs";
import { dev, npmRun, wrangler } from "./packed.mjs";

const LINKS = ["ai", "zod", "wrangler"];
const TYPED = [...LINKS, "typescript", "@cloudflare/workers-types"];

test("the_worker_is_served_with_its_console_and_deployed_dry", async () => {
  const { folder: place, remove } = await made("worker", LINKS);
  try {
    assert.match(await wrangler(place, "deploy", "--dry-run"), /env\.SESSION_AGENT \(SessionAgent\)/);
    const server = await dev(place);
    try {
      assert.equal((await (await fetch(`${server.url}/health`)).json()).status, "ok");
      assert.match(await (await fetch(server.url)).text(), /<title>/);
      const response = await fetch(`${server.url}/agents/session-agent/alice/rpc/getBlocks`, {
        method: "POST",
        body: "{}",
      });
      assert.match(await response.text(), /"label":"memory".*"label":"facts"/);
    } finally {
      await server.stop();
    }
  } finally {
    await remove();
  }
});

test("the_class_has_the_right_types_passes_its_own_tests_and_is_deployed_dry", async () => {
  const { folder: place, remove } = await made("class", TYPED);
  try {
    assert.match(await npmRun(place, "check"), /env\.SESSION_AGENT \(Assistant\)/);
    // A test's own runner would not run inside of another one.
    const { NODE_TEST_CONTEXT, ...env } = quietly();
    const { stdout, stderr } = await promisify(execFile)(NODE, ["--test", "--test-reporter=tap"], {
      cwd: place,
      env: { ...env, CI: "1" },
    }).catch((error) => error);
    assert.match(stdout, /^# pass 2$/m, `${stdout}\n${stderr}`);
  } finally {
    await remove();
  }
});

const USAGE = "Usage: npm create session-agent@latest [folder] -- [--template class|react|worker]";

test("what_can_not_be_made_is_said_in_a_sentence", async () => {
  const said = (...args) =>
    create(...args).then(
      () => assert.fail("it was made"),
      ({ stderr }) => stderr.trim(),
    );
  assert.equal(await said("one", "--template", "castle"), "There is no template `castle`: class, react, worker.");
  assert.equal(await said("one", "--templat", "class"), USAGE);
  assert.equal(await said("one", "two"), USAGE);
  assert.equal((await create("--help")).stdout.trim(), USAGE);
  await create("twice");
  assert.equal(await said("twice"), "twice is there already, and not empty.");
  // What it prints is what a shell takes.
  assert.match((await create("Ann's agent")).stdout, /^ {2}cd 'Ann'\\''s agent'$/m);
});
