// The matrix of callers, bindings and ways to run Workers, with real `wrangler dev`. Each
// combination returns the same errors, with the same classes and codes.

import assert from "node:assert/strict";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { BUILD, ROOT } from "../../scripts/paths.mjs";
import { CODES, createData, REFUSALS } from "../workerd/refusals.mjs";
import { bundle, NEWEST_DATE } from "../workerd/second_worker.mjs";
import { dev, project } from "./packed_project.mjs";

const SECRET = "the secret of this test, long enough";
const TARGETS = ["service", "namespace", "url"];
const ADAPTERS = ["openaiAgents", "langgraph", "agentsContext", "anthropicMemory"];

const folder = await mkdtemp(join(tmpdir(), "session-agent-ways-"));
const stops = [() => rm(folder, { recursive: true, force: true })];
after(async () => {
  for (const stop of stops.toReversed()) await stop();
});
// Other runs on this machine are not discovered.
process.env.WRANGLER_REGISTRY_PATH = join(folder, "registry");

async function starting(project, ...args) {
  const server = await dev(project, ...args);
  stops.push(server.stop);
  return server;
}

const VARS = `[vars]\nMODEL = "demo"\nSESSION_AGENT_TOKEN = "${SECRET}"\n`;
const head = (name) =>
  `name = "${name}"\nmain = "main.mjs"\ncompatibility_date = "${NEWEST_DATE}"\ncompatibility_flags = ["nodejs_compat"]\n`;

/** The calling Worker, which forwards the requests for the agents. */
const MAIN = [
  'import caller from "./caller.mjs";',
  'const isForAgents = (request) => new URL(request.url).pathname.startsWith("/agents/");',
  "export default { fetch: (request, env) => (isForAgents(request) ? env.SERVICE.fetch(request) : caller.fetch(request, env)) };",
  "",
].join("\n");

async function writeAll(name, files) {
  const project = join(folder, name);
  await mkdir(project, { recursive: true });
  for (const [file, text] of Object.entries(files)) await writeFile(join(project, file), text);
  return project;
}

/** A user's Worker that binds Session Agent, as deployed. */
async function writeOwn(name, caller, service) {
  const services = `[[services]]\nbinding = "SERVICE"\nservice = "${service}"\n`;
  const objects = `[[durable_objects.bindings]]\nname = "OBJECT"\nclass_name = "SessionAgent"\nscript_name = "${service}"\n`;
  const files = { "main.mjs": MAIN, "caller.mjs": caller, "package.json": "{}" };
  return await writeAll(name, { ...files, "wrangler.toml": [head(name), services, objects].join("\n") });
}

/**
 * The shipped configuration, with a name, a secret, and no build step, because the build is done.
 */
async function writeShipped(name, { ai }) {
  const text = await readFile(join(ROOT, "wrangler.toml"), "utf8");
  const without = (section) => new RegExp(`^\\[${section}\\]\\n(?:.+\\n)+`, "m");
  assert.match(text, without("build"));
  assert.match(text, without("ai"));
  const built = text
    .replace(without("build"), "")
    .replaceAll('"build/', `"${BUILD}/`)
    .replace('name = "session-agent"', `name = "${name}"`);
  return await writeAll(name, {
    "package.json": "{}",
    "wrangler.toml": `${ai ? built : built.replace(without("ai"), "")}\n${VARS}`,
  });
}

/** A Worker that is both: it exports the package's object and Worker, and binds itself. */
async function writeBoth(caller) {
  const main = `${MAIN}export { default as Memory, SessionAgent } from "session-agent/worker";\n`;
  const objects = ["SESSION_AGENT", "OBJECT"].map(
    (name) => `[[durable_objects.bindings]]\nname = "${name}"\nclass_name = "SessionAgent"\n`,
  );
  const services = '[[services]]\nbinding = "SERVICE"\nservice = "both"\nentrypoint = "Memory"\n';
  const migrations = '[[migrations]]\ntag = "v1"\nnew_sqlite_classes = ["SessionAgent"]\n';
  const sources = await writeAll("both", {
    "main.mjs": main,
    "caller.mjs": caller,
    "wrangler.toml": [head("both"), ...objects, services, migrations, VARS].join("\n"),
  });
  const app = await project(sources);
  stops.push(app.remove);
  return app.folder;
}

/** The caller's location, and the agents' location. */
const setups = {};
before(async () => {
  const caller = await bundle("second.mjs");
  const one = await starting(await writeBoth(caller), "--persist-to", join(folder, "state one"));
  setups["one wrangler dev"] = { caller: one.url, agents: one.url };
  const agents = await starting(
    await writeShipped("session-agent", { ai: true }),
    "--persist-to",
    join(folder, "state two"),
  );
  const mine = await starting(await writeOwn("mine", caller, "session-agent"));
  setups["two wrangler dev"] = { caller: mine.url, agents: agents.url };
  // Wrangler has no `--local` for a second configuration: if that contains Workers AI, wrangler
  // logs in.
  const shipped = await writeShipped("session-agent-beside", { ai: false });
  const own = await writeOwn("mine-beside", caller, "session-agent-beside");
  const configurations = [own, shipped].flatMap((project) => ["-c", join(project, "wrangler.toml")]);
  const both = await starting(own, ...configurations, "--persist-to", join(folder, "state three"));
  setups["wrangler dev -c mine -c shipped"] = { caller: both.url, agents: both.url };
});

async function ask({ caller, agents }, all, isRaw = false) {
  const response = await fetch(`${caller}/ask`, {
    method: "POST",
    body: JSON.stringify({ all, url: agents, raw: isRaw }),
  });
  const text = await response.text();
  assert.equal(response.status, 200, text.slice(0, 1000));
  return JSON.parse(text);
}

async function called({ agents }, agent, operation, input) {
  const headers = { authorization: `Bearer ${SECRET}` };
  const response = await fetch(`${agents}/agents/session-agent/${encodeURIComponent(agent)}/rpc/${operation}`, {
    method: "POST",
    headers,
    body: JSON.stringify(input),
  });
  const body = await response.json();
  assert.equal(response.status, 200, JSON.stringify(body));
  return body;
}

/** A refusal as the client reports it: its class, its code, its status. */
const asError = ({ error }) => (error?.isOurs ? [error.name, error.code, error.status] : null);

const nameOf = (code) => Object.keys(CODES).find((name) => CODES[name] === code);

/** The callers. Each returns the results of all refused requests. `null`: another result. */
const CALLERS = {
  async client(setup, target, agent, refusals) {
    const all = refusals.map(({ method, input, token }) => ({
      target,
      agent,
      options: { token },
      method: "call",
      given: [method, input],
    }));
    return (await ask(setup, all)).map(asError);
  },
  // Without the client: `request` of a binding, or a request over HTTP.
  async "request, or HTTP"(setup, target, agent, refusals) {
    const all = refusals.map(({ method, input, token }) => {
      const json = JSON.stringify(input);
      if (target === "url")
        return {
          target,
          agent,
          method,
          given: { method: "POST", headers: { authorization: `Bearer ${token}` }, body: json },
        };
      const options = { token, ...(target === "namespace" && { agent }) };
      return {
        target,
        agent,
        method: "request",
        given: [...(target === "service" ? [agent] : []), method, json, options],
      };
    });
    return (await ask(setup, all, true)).map(({ answer }, n) => {
      const { code } = answer?.error ?? {};
      return code === undefined ? null : [nameOf(code), code, answer.status ?? refusals[n].status];
    });
  },
  // A method of the object throws, and every transport delivers its message. Other names are not
  // methods.
  async "methods of the object"(setup, target, agent, refusals) {
    if (target !== "namespace") return undefined;
    const ofObject = (refusal) => refusal.method !== "frobnicate";
    const all = refusals.map(({ method, input, token }) => ({
      target,
      agent,
      method: ofObject({ method }) ? method : "call",
      given: ofObject({ method }) ? [input, { token, agent }] : [method, JSON.stringify(input), { token, agent }],
    }));
    const sentences = await ask(
      setup,
      refusals.map(({ method, input, token }) => ({
        target,
        agent,
        options: { token },
        method: "call",
        given: [method, input],
      })),
    );
    const thrown = await ask(setup, all, true);
    return thrown.map(({ error }, n) => {
      const expected = sentences[n].error;
      if (error?.message.replace(/^\w*Error: /, "") !== expected.message) return null;
      assert.ok(error.code === undefined || error.code === expected.code, `${error.code} ${expected.code}`);
      return [expected.name, expected.code, expected.status];
    });
  },
  ...Object.fromEntries(
    ADAPTERS.map((adapter) => [
      adapter,
      async (setup, target, agent, refusals) => {
        const all = refusals.map(({ method, input, token }) => ({
          target,
          agent,
          options: { token },
          adapter,
          refused: { method, input },
        }));
        return (await ask(setup, all)).map(asError);
      },
    ]),
  ),
};

test("each_error_has_its_class_and_code_over_every_transport", async (context) => {
  const table = [];
  for (const [title, setup] of Object.entries(setups)) {
    for (const target of TARGETS) {
      const cells = {};
      for (const [caller, outcomesOf] of Object.entries(CALLERS)) {
        const agent = `${title} ${target} ${caller}`;
        // An object that is first woken over the namespace knows only its id.
        await ask(setup, [{ target, agent, options: { token: SECRET }, method: "listSessions", given: [] }]);
        const tokens = await createData((operation, input) => called(setup, agent, operation, input));
        const refusals = REFUSALS.map(([method, input, name, status, , token]) => ({
          method,
          input,
          name,
          status,
          token: tokens[token] ?? SECRET,
        }));
        const outcomes = await outcomesOf(setup, target, agent, refusals);
        if (outcomes === undefined) {
          cells[caller] = "–";
          continue;
        }
        const right = refusals.map(({ name, status }) => [name, CODES[name], status]);
        const wrong = outcomes.flatMap((outcome, n) =>
          JSON.stringify(outcome) === JSON.stringify(right[n]) ? [] : [[REFUSALS[n][0], right[n][0], outcome]],
        );
        cells[caller] =
          `${outcomes.length - wrong.length}/${outcomes.length}${wrong.length === 0 ? "" : ` ${JSON.stringify(wrong.slice(0, 3))}`}`;
        assert.equal(
          (await called(setup, agent, "getPathLength", { sessionId: "s" })).length,
          1,
          "a refusal writes nothing",
        );
      }
      table.push([title, target, cells]);
    }
  }
  const columns = Object.keys(CALLERS);
  context.diagnostic(`| run as | found by | ${columns.join(" | ")} |`);
  for (const [title, target, cells] of table)
    context.diagnostic(`| ${title} | ${target} | ${columns.map((caller) => cells[caller]).join(" | ")} |`);
  const all = `${REFUSALS.length}/${REFUSALS.length}`;
  const failing = table.flatMap(([title, target, cells]) =>
    Object.entries(cells)
      .filter(([, cell]) => cell !== all && cell !== "–")
      .map(([caller, cell]) => `${title}, ${target}, ${caller}: ${cell}`),
  );
  assert.deepEqual(failing, []);
});
