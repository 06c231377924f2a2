// `npm create session-agent`: each template is created, served, used and deployed in a dry run,
// with the packages from their archives.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { promisify } from "node:util";
import { NODE, quietEnv } from "../../scripts/wrangler.mjs";
import { until } from "../console/browser.mjs";
import { create, folder, createProject } from "./create_project.mjs";
import { dev, npmRun } from "./packed_project.mjs";

/** The number of our tables in each object of a project, under `wrangler dev`. */
async function tablesIn(project) {
  const state = join(project, ".wrangler/state/v3/do");
  const files = (await readdir(state, { recursive: true })).filter((name) => /[0-9a-f]{64}\.sqlite$/.test(name));
  return files.map((name) => {
    const db = new DatabaseSync(join(state, name), { readOnly: true });
    const [{ tables }] = db
      .prepare("SELECT count(*) AS tables FROM sqlite_master WHERE type = 'table' AND name GLOB 'cf_agents_*'")
      .all();
    db.close();
    return tables;
  });
}

const LINKS = ["ai", "zod", "wrangler"];
const TYPED = [...LINKS, "typescript", "@cloudflare/workers-types"];

test("the_worker_serves_its_console_and_passes_a_dry_run_deployment", async () => {
  const { folder: project, remove } = await createProject("worker", LINKS);
  try {
    assert.match(await npmRun(project, "check"), /env\.SESSION_AGENT \(SessionAgent\)/);
    await passes(project, 2);
    const server = await dev(project);
    try {
      assert.equal((await (await fetch(`${server.url}/health`)).json()).status, "ok");
      assert.match(await (await fetch(server.url)).text(), /<title>/);
      const response = await fetch(`${server.url}/agents/session-agent/alice/rpc/getBlocks`, {
        method: "POST",
        body: "{}",
      });
      assert.match(await response.text(), /"label":"memory".*"label":"facts"/);
      // Reading creates no agent: the object has only wrangler's own table. A write creates all
      // tables.
      const ask = (agent, operation) =>
        fetch(`${server.url}/agents/session-agent/${agent}/rpc/${operation}`, { method: "POST", body: "{}" });
      for (const operation of ["listSessions", "getConfig", "getStats"])
        assert.equal((await ask("alice", operation)).status, 200);
      assert.deepEqual(await tablesIn(project), [0]);
      assert.equal((await ask("alice", "createSession")).status, 200);
      assert.ok((await tablesIn(project))[0] > 10);
    } finally {
      await server.stop();
    }
  } finally {
    await remove();
  }
});

/** Runs a project's tests. Without `NODE_TEST_CONTEXT`: Node's test runner refuses to run inside itself. */
async function passes(project, count) {
  const { NODE_TEST_CONTEXT, ...env } = quietEnv();
  const { stdout, stderr } = await promisify(execFile)(NODE, ["--test", "--test-reporter=tap"], {
    cwd: project,
    env: { ...env, CI: "1" },
  }).catch((error) => error);
  assert.match(stdout, new RegExp(`^# pass ${count}$`, "m"), `${stdout}\n${stderr}`);
  assert.match(stdout, /^# fail 0$/m, stdout);
}

const edit = async (project, file, change) => {
  const path = join(project, file);
  const text = await readFile(path, "utf8");
  assert.notEqual(change(text), text, file);
  await writeFile(path, change(text));
};

/** A model that requires a key, as a provider does. */
const KEYED = `{ specificationVersion: "v4", provider: "keyed", modelId: "keyed", supportedUrls: {},
  doGenerate: () => Promise.reject(new Error("no key")), doStream: () => Promise.reject(new Error("no key")) }`;

test("the_class_passes_its_tests_and_check_and_serves_its_page", async () => {
  const { folder: project, remove } = await createProject("class", TYPED);
  try {
    const checked = await npmRun(project, "check");
    assert.match(checked, /env\.SESSION_AGENT \(Assistant\)/);
    assert.match(checked, /Before you deploy: The login in src\/index\.ts, line \d+, is a placeholder/);
    await assert.rejects(npmRun(project, "deploy"), ({ stderr }) => /is a placeholder that accepts/.test(stderr));
    await passes(project, 3);

    await edit(project, "src/index.ts", (text) => text.replace('return "demo"', `return ${KEYED}`));
    await passes(project, 3);
    const server = await dev(project);
    try {
      assert.match(await (await fetch(server.url)).text(), /<title>/);
      const ask = async (headers) => {
        const body = JSON.stringify({
          sessionId: "chat",
          message: { id: "1", role: "user", parts: [{ type: "text", text: "Hello" }] },
        });
        const response = await fetch(`${server.url}/agents/session-agent/ann/rpc/runTurn`, {
          method: "POST",
          headers,
          body,
        });
        return [response.status, (await response.json()).error?.code];
      };
      // The console on this machine, and then another user.
      assert.deepEqual(await ask({}), [502, "model_failed"]);
      assert.deepEqual(await ask({ cookie: "user=bob" }), [401, "unauthorized"]);
      await until(server.output, (output) => /no key/.test(output));
    } finally {
      await server.stop();
    }
    // The compiler refuses a misspelled field or kind of a block.
    const written = await readFile(join(project, "src/index.ts"), "utf8");
    for (const [right, wrong] of [
      ["maxTokens:", "maxToken:"],
      ['kind: "writable"', 'kind: "writeable"'],
    ]) {
      await edit(project, "src/index.ts", (text) => text.replace(right, wrong));
      await assert.rejects(npmRun(project, "check"), ({ stdout }) =>
        /src\/index\.ts\(\d+,\d+\): error TS/.test(stdout),
      );
      await writeFile(join(project, "src/index.ts"), written);
    }
    await edit(project, "wrangler.toml", (text) => text.replace('"review": "auto"', '"review": "never"'));
    await assert.rejects(npmRun(project, "check"), ({ stderr }) =>
      /AGENT_DEFAULTS in wrangler\.toml: `learn/.test(stderr),
    );
  } finally {
    await remove();
  }
});

const USAGE = "Usage: npm create session-agent@latest [folder] -- [--template class|react|worker]";

test("invalid_arguments_are_explained_in_a_sentence", async () => {
  const errorOf = (...args) =>
    create(...args).then(
      () => assert.fail("it was made"),
      ({ stderr }) => stderr.trim(),
    );
  assert.equal(
    await errorOf("one", "--template", "castle"),
    "There is no template `castle`. Available templates: class, react, worker.",
  );
  assert.equal(await errorOf("one", "--templat", "class"), USAGE);
  assert.equal(await errorOf("one", "two"), USAGE);
  assert.equal((await create("--help")).stdout.trim(), USAGE);
  await create("twice");
  assert.equal(await errorOf("twice"), "twice already exists and is not empty.");
  // A repository without files is an empty folder.
  await mkdir(join(folder, "begun", ".git"), { recursive: true });
  assert.match((await create("begun")).stdout, /^Created begun in begun/);
  assert.match((await create("Müllers Büro")).stdout, /^Created mullers-buro in Müllers Büro/);
  // The printed commands are valid in a shell.
  assert.match((await create("Ann's agent")).stdout, /^ {2}cd 'Ann'\\''s agent'$/m);
});
