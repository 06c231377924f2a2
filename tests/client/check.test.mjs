// `npx session-agent check` from the packed archive: what it refuses of a Worker's
// configuration, and that wrangler stops with it.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { promisify } from "node:util";
import { quietly } from "../../scripts/wrangler.mjs";
import { project, wrangler } from "./packed.mjs";

const runFile = promisify(execFile);

const sources = await mkdtemp(join(tmpdir(), "session-agent-check-"));
const made = await project(sources, ["wrangler"]);
after(async () => {
  await made.remove();
  await rm(sources, { recursive: true });
});

const HEAD = `name = "a"
main = "index.js"
compatibility_date = "2026-11-17"
[durable_objects]
bindings = [{ name = "SESSION_AGENT", class_name = "SessionAgent" }]
[[migrations]]
tag = "v1"
new_sqlite_classes = ["SessionAgent"]
`;

/** What the command says, and how it ends. */
async function check(...args) {
  const ended = await runFile(join(made.folder, "node_modules/.bin/session-agent"), args, {
    cwd: made.folder,
    env: quietly(),
  }).catch((error) => error);
  return { code: ended.code ?? 0, said: `${ended.stdout}${ended.stderr}`.trim() };
}

const put = (name, text) => writeFile(join(made.folder, name), text);

test("a_file_that_no_build_reads_and_a_missing_wrangler_are_said", async () => {
  await put("wrangler.toml", `${HEAD}[vars]\nAGENT_DEFAULTS = '{}'\n`);
  await put("agent-defaults.json", '{"retention": {"eventsDays": 30}}');
  const unread = await check("check");
  assert.equal(unread.code, 1);
  assert.match(unread.said, /^agent-defaults\.json is only read by the build in a clone .* AGENT_DEFAULTS\.$/);
  await rm(join(made.folder, "agent-defaults.json"));

  const other = await mkdtemp(join(tmpdir(), "session-agent-check-"));
  await writeFile(join(other, "wrangler.toml"), `${HEAD}[vars]\nAGENT_DEFAULTS = '{}'\n`);
  const bare = await check("check", "--config", join(other, "wrangler.toml"));
  assert.deepEqual(bare, { code: 0, said: "The defaults for every agent are valid." });
  const program = join(made.folder, "node_modules/.bin/session-agent");
  const failed = await runFile(program, ["check"], { cwd: other, env: quietly() }).catch((error) => error);
  assert.equal(failed.code, 1);
  assert.match(
    failed.stderr,
    /^wrangler is needed to read the configuration, but is not installed in .*\. Run: npm install --save-dev wrangler\n$/,
  );
  await rm(other, { recursive: true });
  await rm(join(made.folder, "wrangler.toml"));
});

test("defaults_that_agents_can_use_pass_and_others_are_named", async () => {
  assert.deepEqual(await check("check"), { code: 1, said: `There is no wrangler.toml in ${made.folder}.` });
  await put("wrangler.toml", HEAD);
  assert.deepEqual(await check("check"), { code: 0, said: "The defaults for every agent are valid." });
  for (const [defaults, sentence] of [
    ['{"maxSteps": 5, "blocks": [{"label": "memory", "kind": "writable"}]}', undefined],
    ['{"maxStepz": 5}', /^AGENT_DEFAULTS in wrangler\.toml: `maxStepz` is not a field here\. The fields are /],
    ['{"blocks": [{"label": "memory", "kind": "writeable"}]}', /: `blocks\[0\]\.kind` must be "readonly", /],
    ['{"blocks": ', /^AGENT_DEFAULTS in wrangler\.toml is not JSON: /],
    ["nonsense", /^AGENT_DEFAULTS in wrangler\.toml is not JSON: /],
    [
      JSON.stringify({ systemInstructions: ["x".repeat(5 * 1024)] }),
      /has \d+ bytes; the limit of a variable is 5120\. For longer blocks and tools, use the methods `blocks\(\)`/,
    ],
  ]) {
    for (const section of ["vars", "env.staging.vars"]) {
      await put("wrangler.toml", `${HEAD}[${section}]\nAGENT_DEFAULTS = '${defaults}'\n`);
      const { code, said } = await check("check");
      assert.equal(code, sentence === undefined ? 0 : 1, `${section} ${defaults}: ${said}`);
      if (sentence !== undefined) assert.match(said, sentence);
    }
  }
  await put(
    "other.jsonc",
    JSON.stringify({
      name: "a",
      main: "index.js",
      compatibility_date: "2026-11-17",
      vars: { AGENT_DEFAULTS: { maxSteps: 0 } },
    }),
  );
  assert.deepEqual(await check("check", "--config", "other.jsonc"), {
    code: 1,
    said: "AGENT_DEFAULTS in other.jsonc: `maxSteps` must be at least 1.",
  });
  assert.match((await check("chekc")).said, /^Usage: session-agent check/);
});

test("a_login_that_nobody_has_replaced_is_named_and_not_deployed", async () => {
  await put("wrangler.toml", HEAD);
  await put("login.ts", "function userOf() {\n  // placeholder-login: believes anybody.\n  return null;\n}\n");
  const sentence = /The login in login\.ts, line 2, is a placeholder that accepts any name\. Replace it /;
  const warned = await check("check");
  assert.deepEqual([warned.code, sentence.test(warned.said)], [0, true], warned.said);
  const refused = await check("check", "--deploy");
  assert.deepEqual([refused.code, sentence.test(refused.said)], [1, true], refused.said);
  await put("login.ts", 'const said = "// placeholder-login";\n');
  assert.deepEqual(await check("check", "--deploy"), { code: 0, said: "The defaults for every agent are valid." });
  await rm(join(made.folder, "login.ts"));
});

test("as_the_build_command_it_stops_a_deployment", async () => {
  await put("index.js", 'export { default, SessionAgent } from "session-agent/worker";');
  const config = (maxSteps) =>
    `${HEAD}[build]\ncommand = "npx session-agent check"\n[vars]\nAGENT_DEFAULTS = '{"maxSteps": ${maxSteps}}'\n`;
  await put("wrangler.toml", config(0));
  await assert.rejects(wrangler(made.folder, "deploy", "--dry-run"), ({ stdout, stderr }) =>
    /`maxSteps` must be at least 1/.test(stdout + stderr),
  );
  await put("wrangler.toml", config(5));
  assert.match(
    await wrangler(made.folder, "deploy", "--dry-run"),
    /The defaults for every agent are valid[\s\S]*env\.SESSION_AGENT/,
  );
});
