// `npx session-agent check` from the packed archive: the configuration errors that it finds, and
// that they stop wrangler.

import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, test } from "node:test";
import { promisify } from "node:util";
import { quietEnv } from "../../scripts/wrangler.mjs";
import { project, wrangler } from "./packed_project.mjs";

const runFile = promisify(execFile);

const sources = await mkdtemp(join(tmpdir(), "session-agent-check-"));
const app = await project(sources, ["wrangler"]);
const COMMAND = join(app.folder, "node_modules/session-agent/bin/session-agent.mjs");
const program = spawn(process.execPath, [join(import.meta.dirname, "commands.mjs"), COMMAND], {
  cwd: app.folder,
  env: quietEnv(),
  stdio: ["pipe", "pipe", "inherit"],
});
const answers = createInterface({ input: program.stdout })[Symbol.asyncIterator]();
after(async () => {
  const ended = once(program, "close");
  program.stdin.end();
  await ended;
  await app.remove();
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

/** The command's output and exit status, in a process that has loaded wrangler already. */
async function check(...args) {
  program.stdin.write(`${JSON.stringify(args)}\n`);
  const { value } = await answers.next();
  return JSON.parse(value);
}

/** The same, as a person runs it. */
async function checkAlone(...args) {
  const ended = await runFile(join(app.folder, "node_modules/.bin/session-agent"), args, {
    cwd: app.folder,
    env: quietEnv(),
  }).catch((error) => error);
  return { code: ended.code ?? 0, output: `${ended.stdout}${ended.stderr}`.trim() };
}

const put = (name, text) => writeFile(join(app.folder, name), text);

test("an_unread_defaults_file_and_a_missing_wrangler_are_reported", async () => {
  await put("wrangler.toml", `${HEAD}[vars]\nAGENT_DEFAULTS = '{}'\n`);
  await put("agent-defaults.json", '{"retention": {"eventsDays": 30}}');
  const unread = await checkAlone("check");
  assert.equal(unread.code, 1);
  assert.match(unread.output, /^agent-defaults\.json is only read by the build in a clone .* AGENT_DEFAULTS\.$/);
  await rm(join(app.folder, "agent-defaults.json"));

  const other = await mkdtemp(join(tmpdir(), "session-agent-check-"));
  await writeFile(join(other, "wrangler.toml"), `${HEAD}[vars]\nAGENT_DEFAULTS = '{}'\n`);
  const bare = await checkAlone("check", "--config", join(other, "wrangler.toml"));
  assert.deepEqual(bare, { code: 0, output: "The defaults for every agent are valid." });
  const program = join(app.folder, "node_modules/.bin/session-agent");
  const failed = await runFile(program, ["check"], { cwd: other, env: quietEnv() }).catch((error) => error);
  assert.equal(failed.code, 1);
  assert.match(
    failed.stderr,
    /^wrangler is needed to read the configuration, but is not installed in .*\. Run: npm install --save-dev wrangler\n$/,
  );
  await rm(other, { recursive: true });
  await rm(join(app.folder, "wrangler.toml"));
});

test("valid_defaults_pass_and_others_are_named", async () => {
  assert.deepEqual(await checkAlone("check"), { code: 1, output: `There is no wrangler.toml in ${app.folder}.` });
  await put("wrangler.toml", HEAD);
  assert.deepEqual(await checkAlone("check"), { code: 0, output: "The defaults for every agent are valid." });
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
      const { code, output } = await check("check");
      assert.equal(code, sentence === undefined ? 0 : 1, `${section} ${defaults}: ${output}`);
      if (sentence !== undefined) assert.match(output, sentence);
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
  assert.deepEqual(await checkAlone("check", "--config", "other.jsonc"), {
    code: 1,
    output: "AGENT_DEFAULTS in other.jsonc: `maxSteps` must be at least 1.",
  });
  assert.match((await checkAlone("chekc")).output, /^Usage: session-agent check/);
});

/** The same configuration as wrangler.toml, wrangler.json and wrangler.jsonc. */
function written({ bindings = [], migrations = [], main = "agents.ts" }) {
  const json = {
    name: "a",
    main,
    compatibility_date: "2026-11-17",
    durable_objects: { bindings },
    migrations: migrations.map((step, index) => ({ tag: `v${index + 1}`, ...step })),
  };
  const lists = bindings.map((item) => ["durable_objects.bindings", item]);
  lists.push(...json.migrations.map((item) => ["migrations", item]));
  const line = ([key, value]) => `${key} = ${JSON.stringify(value).replaceAll(/"(\w+)":/g, "$1 = ")}`;
  const toml = ["name", "main", "compatibility_date"].map((key) => line([key, json[key]]));
  for (const [table, item] of lists) toml.push(`[[${table}]]`, ...Object.entries(item).map(line));
  return {
    "objects.toml": toml.join("\n"),
    "objects.json": JSON.stringify(json),
    "objects.jsonc": `// The agents.\n${JSON.stringify(json)}`,
  };
}

test("a_worker_without_the_agents_objects_is_refused_with_what_it_lacks", async () => {
  const bindings = [{ name: "SESSION_AGENT", class_name: "Assistant" }];
  const migrations = [{ new_sqlite_classes: ["Assistant"] }];
  const own = "export class Assistant extends SessionAgent {}\nexport default {};\n";
  const valid = /^The defaults for every agent are valid\.$/;
  const cases = [
    [{ bindings, migrations }, own, valid],
    [{ bindings, migrations }, "class A {}\nexport { A as Assistant };\n", valid],
    [{ bindings, migrations }, 'export * from "./others.ts";\n', valid],
    [{ bindings, migrations, main: "not-built-yet.js" }, own, valid],
    [{ bindings: [{ ...bindings[0], script_name: "b" }] }, "export default {};\n", valid],
    [
      { bindings, migrations: [{ new_sqlite_classes: ["A"] }, { renamed_classes: [{ from: "A", to: "Assistant" }] }] },
      own,
      valid,
    ],
    [{ migrations }, own, /^objects\.\w+ has no Durable Object binding SESSION_AGENT, .*\bclass_name\W+SessionAgent/],
    [{ bindings: [{ ...bindings[0], name: "AGENTS" }], migrations }, own, valid],
    [{ bindings }, own, /no migration for the class Assistant .*\bnew_sqlite_classes\W+Assistant/],
    [{ bindings, migrations: [{ new_sqlite_classes: ["Other"] }] }, own, /no migration for the class Assistant /],
    [{ bindings, migrations: [{ new_classes: ["Assistant"] }] }, own, /creates the class Assistant .* without SQLite/],
    [
      { bindings, migrations },
      "class Assistant {}\n// export { Assistant };\nexport default {};\n",
      /^agents\.ts doesn't export the class Assistant /,
    ],
    [{ bindings, migrations }, "export { Assistant as Other };\n", /^agents\.ts doesn't export the class Assistant /],
  ];
  for (const [given, source, sentence] of cases) {
    await put("agents.ts", source);
    const files = Object.entries(written(given));
    for (const [name, text] of files) {
      await put(name, text);
      const ended = await check("check", "--config", name);
      assert.match(ended.output, sentence, text);
      assert.equal(ended.code, sentence === valid ? 0 : 1, ended.output);
    }
  }
  await rm(join(app.folder, "agents.ts"));
});

test("a_placeholder_login_is_named_and_not_deployed", async () => {
  await put("wrangler.toml", HEAD);
  await put("login.ts", "function userOf() {\n  // placeholder-login: believes anybody.\n  return null;\n}\n");
  const sentence = /The login in login\.ts, line 2, is a placeholder that accepts any name\. Replace it /;
  const warned = await checkAlone("check");
  assert.deepEqual([warned.code, sentence.test(warned.output)], [0, true], warned.output);
  const refused = await checkAlone("check", "--deploy");
  assert.deepEqual([refused.code, sentence.test(refused.output)], [1, true], refused.output);
  await put("login.ts", 'const said = "// placeholder-login";\n');
  assert.deepEqual(await checkAlone("check", "--deploy"), {
    code: 0,
    output: "The defaults for every agent are valid.",
  });
  await rm(join(app.folder, "login.ts"));
});

test("as_the_build_command_check_stops_a_deployment", async () => {
  await put("index.js", 'export { default, SessionAgent } from "session-agent/worker";');
  const config = (maxSteps) =>
    `${HEAD}[build]\ncommand = "npx session-agent check"\n[vars]\nAGENT_DEFAULTS = '{"maxSteps": ${maxSteps}}'\n`;
  await put("wrangler.toml", config(0));
  await assert.rejects(wrangler(app.folder, "deploy", "--dry-run"), ({ stdout, stderr }) =>
    /`maxSteps` must be at least 1/.test(stdout + stderr),
  );
  await put("wrangler.toml", config(5));
  assert.match(
    await wrangler(app.folder, "deploy", "--dry-run"),
    /The defaults for every agent are valid[\s\S]*env\.SESSION_AGENT/,
  );
});
