// The claims of docs/operations-guide.md beyond its programs: the workflow's commands run in a
// project from a template with the guide's settings, and a new secret has the described effects.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, test } from "node:test";
import { promisify } from "node:util";
import { parse } from "yaml";
import { sessionAgent } from "../../packages/session-agent/dist/index.js";
import { CLIENT, ROOT } from "../../scripts/paths.mjs";
import { quietEnv } from "../../scripts/wrangler.mjs";
import { documents } from "../workerd/documents.mjs";
import { startServer } from "../workerd/harness.mjs";

const runFile = promisify(execFile);
const guide = documents.find(({ path }) => path === "docs/operations-guide.md");

const folder = await mkdtemp(join(tmpdir(), "session-agent-workflow-"));
after(() => rm(folder, { recursive: true, force: true }));

/** As on a GitHub runner, without a network and without an account. */
const { NODE_TEST_CONTEXT, ...env } = {
  ...quietEnv(),
  CI: "1",
  npm_config_offline: "true",
  WRANGLER_LOG_PATH: join(folder, "logs"),
};

/** A project from the template, whose package-lock.json names the package's archive. */
async function haveProject() {
  await cp(join(ROOT, "packages/create-session-agent/templates/class"), folder, { recursive: true });
  await runFile("npm", ["pack", CLIENT, "--pack-destination", folder], { env });
  const archive = (await readdir(folder)).find((name) => name.endsWith(".tgz"));
  const { scripts } = JSON.parse(await readFile(join(folder, "package.json"), "utf8"));
  const described = {
    name: "my-agent",
    private: true,
    type: "module",
    scripts,
    dependencies: { "session-agent": `file:${archive}` },
  };
  await writeFile(join(folder, "package.json"), JSON.stringify(described));
  await runFile("npm", ["install", "--package-lock-only", "--no-audit", "--legacy-peer-deps"], { cwd: folder, env });
  const config = await readFile(join(folder, "wrangler.toml"), "utf8");
  const settings = guide.blocks.filter(({ language }) => language === "toml own").map(({ text }) => text);
  assert.equal(settings.length, 2);
  await writeFile(join(folder, "wrangler.toml"), [config.replace("PROJECT_NAME", "my-agent"), ...settings].join("\n"));
}

/** Additional dependencies of the template's package.json, as installed here. */
async function link(names) {
  for (const name of names) {
    const to = join(folder, "node_modules", name);
    await mkdir(dirname(to), { recursive: true });
    await symlink(join(ROOT, name.startsWith("wrangler") ? "node_modules" : "tests/node_modules", name), to, "dir");
  }
  await mkdir(join(folder, "node_modules/.bin"), { recursive: true });
  await symlink("../wrangler/bin/wrangler.js", join(folder, "node_modules/.bin/wrangler"));
}

test("each_command_of_the_workflow_runs_in_a_project", async () => {
  await haveProject();
  const { on, jobs } = parse(await readFile(join(ROOT, "examples/github-actions/deploy.yml"), "utf8"));
  assert.deepEqual(Object.keys(on), ["pull_request", "push"]);
  assert.deepEqual([jobs.staging.needs, jobs.production.needs], ["check", "staging"]);
  const lines = Object.values(jobs).flatMap(({ steps }) =>
    steps.map(({ run }) => run).filter((run) => run !== undefined),
  );
  for (const line of new Set(lines)) {
    // Without an account, a deployment ends before anything is sent.
    const run = /^npx wrangler deploy\b/.test(line) && !line.includes("--dry-run") ? `${line} --dry-run` : line;
    const { stdout } = await runFile("bash", ["-euo", "pipefail", "-c", run], { cwd: folder, env }).catch((error) =>
      assert.fail(`${run}\n${error.stdout}\n${error.stderr}`),
    );
    if (line === "npm ci") await link(["ai", "zod", "wrangler"]);
    if (line === "npm test") assert.match(stdout, /^(?:#|ℹ) pass 3$/m);
    if (line.includes("deploy"))
      assert.match(stdout, /The defaults for every agent are valid[\s\S]*env\.SESSION_AGENT \(Assistant\)/);
    if (line.includes("--env staging")) assert.match(stdout, /env\.AGENT_DEFAULTS \("\{"maxSteps": 5\}"\)/);
  }
  assert.deepEqual(
    [...new Set(lines)],
    [
      "npm ci",
      "npm test",
      "npx session-agent check",
      "npx wrangler deploy --dry-run",
      "npx wrangler deploy --env staging",
      'npx wrangler deploy --env=""',
    ],
  );
  // Only the deploying steps of the workflow get the account.
  for (const { steps } of Object.values(jobs)) {
    for (const { run, env: given } of steps)
      assert.equal(given !== undefined, /^npx wrangler deploy --env/.test(run ?? ""), run);
  }
});

test("a_new_secret_invalidates_tokens_and_loses_no_data", async () => {
  const storage = await mkdtemp(join(tmpdir(), "session-agent-secret-"));
  const [old, fresh] = ["the first secret, which is long enough", "the second secret, which is long enough"];
  try {
    const before = await startServer({ storage, vars: {}, secrets: { SESSION_AGENT_TOKEN: old } });
    const agent = sessionAgent(before.url, "alice", { token: old });
    await agent.createSession({ id: "s", name: "kept" });
    const { token } = await agent.mintToken({ preset: "read", expiresIn: 3600 });
    assert.equal((await sessionAgent(before.url, "alice", { token }).getSession({ sessionId: "s" })).name, "kept");
    await before.stop();
    const after = await startServer({ storage, vars: {}, secrets: { SESSION_AGENT_TOKEN: fresh } });
    try {
      for (const stale of [old, token]) {
        await assert.rejects(sessionAgent(after.url, "alice", { token: stale }).getSession({ sessionId: "s" }), {
          code: "unauthorized",
        });
      }
      const now = sessionAgent(after.url, "alice", { token: fresh });
      const renewed = sessionAgent(after.url, "alice", {
        token: async () => (await now.mintToken({ preset: "read", expiresIn: 60 })).token,
      });
      assert.equal((await renewed.getSession({ sessionId: "s" })).name, "kept");
    } finally {
      await after.stop();
    }
  } finally {
    await rm(storage, { recursive: true, force: true });
  }
});
