// The test harness: starts the built Worker on the production runtime with access to the storage of
// its objects.
//
//   const server = await startServer({ vars: { AUTH: "open" } });
//   after(() => server.stop());
//   const { status, body, rowsWritten } = await server.call("demo", "createSession", { name: "first" });
//   const rows = await server.sql("demo", "SELECT id FROM cf_agents_sessions WHERE id = ?", body.id);
//
// The harness uses miniflare directly, in wrangler's version, so the tests run the same
// workerd as `npm start`. A start takes a quarter of a second. Each test file has its own
// server, and each test its own agent name. No host but this machine is contacted.

import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { HOST, startWorkerd } from "../../scripts/workerd.mjs";
import { answers } from "./answers.mjs";
import { decode, encode } from "./workers/sql_json.mjs";

// The sockets of other packages' clients are checked as well.
globalThis.WebSocket = answers.checkedSockets(globalThis.WebSocket);

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const PACKAGE = join(ROOT, "packages/session-agent");
const WORKER = "session-agent";
const CLASS = "SessionAgent";
const DIRECTORY = "AgentDirectory";
const CALLER = "caller";
const DAY_MS = 86_400_000;

/**
 * Starts the built Worker.
 *
 * - `vars`, `secrets`: its environment. By default `AUTH` is `open`.
 * - `storage`: the folder of its storage. By default a folder that goes with the server.
 * - `site`: `true` puts the platform's stand-in for static files in front, as wrangler.toml
 *   says. The stand-in takes time, and changes nothing that other tests ask.
 * - `directory`: `true` binds the directory of agents.
 * - `defaults`: what `agent-defaults.json` holds. By default there is no such file.
 * - `date`: the Worker's compatibility date. Default: that of wrangler.toml.
 * - `inspect`: `false` runs the build unchanged, without `sql`, `incarnation` and `abort`.
 * - `own`: the text of a module with a class that extends `SessionAgent`, and exports it under that
 *   name. It imports the npm package's Worker as `session-agent/worker`. There is no `sql`.
 * - `workers`: other Workers beside it, by name: `{ provider: "export default { … }" }`, or
 *   `{ provider: { contents, env } }` with bindings of its own.
 *   Each is bound to the Worker under its name in capitals. They find the Worker as
 *   `SERVICE` and its objects as `OBJECT`.
 * - `registry`: a folder by which other runtimes on this machine find the Worker and its
 *   objects, as one `wrangler dev` finds another's: see `second_worker.mjs`.
 * - `ai`: the address of an HTTP server that the platform's own `Ai` class asks, bound as
 *   `AI`. `"local"`: `AI` is bound and can't be served, as in a local run.
 */
export async function startServer(options = {}) {
  const server = new Server(options, options.storage ?? (await mkdtemp(join(tmpdir(), "session-agent-"))));
  await server.start();
  return server;
}

/** Days begin at midnight UTC. Waits for the next one if there is less than a minute left of this. */
export async function awayFromMidnight() {
  const left = DAY_MS - (Date.now() % DAY_MS);
  if (left < 60_000) await pause(left);
}

class Server {
  #options;
  #storage;
  #miniflare;
  #workerd;
  #callerUrl;
  #isEnding = false;
  /** The server's address. `kill9` changes its port. */
  url;
  /** The lines that the Worker logged. */
  logs = [];

  constructor(options, storage) {
    this.#options = options;
    this.#storage = storage;
  }

  /**
   * Calls one operation. An `input` that is a string or bytes is sent as it is, and any
   * other as JSON. `via: "service"` goes through another Worker's service binding, `via:
   * "object"` through its `script_name` binding straight to the object.
   */
  async call(agent, operation, input, { headers = {}, via } = {}) {
    const raw = input === undefined || typeof input === "string" || ArrayBuffer.isView(input);
    const response = await this.fetch(
      `/agents/session-agent/${encodeURIComponent(agent)}/rpc/${operation}`,
      { method: "POST", headers, body: raw ? input : JSON.stringify(input) },
      { via, agent },
    );
    return {
      status: response.status,
      headers: response.headers,
      body: parsed(await response.text()),
      rowsRead: count(response, "x-rows-read"),
      rowsWritten: count(response, "x-rows-written"),
    };
  }

  /**
   * The text that an operation returns over Workers RPC, called from another Worker: `via:
   * "service"` on the Worker, `via: "object"` on the object. `given` are the arguments after the
   * agent's name. An error is thrown with what reached the caller.
   */
  async rpc(agent, operation, given, { via = "service" } = {}) {
    const names = via === "service" ? [agent, operation] : [operation];
    const answer = await this.callMethod({ via, agent, method: "call", given: [...names, ...given] });
    return this.#answered(operation, answer);
  }

  /**
   * One call to each of the agents, all started before the first is answered. Returns the result of
   * `Promise.allSettled` for them.
   */
  async rpcAtOnce(agents, operation, given) {
    const atOnce = agents.map((agent) => [agent, operation]);
    const answer = await this.callMethod({ via: "service", method: "call", atOnce, given });
    return await Promise.allSettled(answer.map(async (one) => this.#answered(operation, one)));
  }

  #answered(operation, { answer, error }) {
    if (error !== undefined) {
      if (error.code !== undefined)
        answers.holdError(operation, { error: { code: error.code, message: error.message, details: error.details } });
      throw Object.assign(new Error(error.message), error);
    }
    answers.holdAnswer(operation, JSON.parse(answer));
    return answer;
  }

  /** Any method or property of a binding, as another Worker sees it: see workers/caller.mjs. */
  async callMethod(what) {
    const response = await fetch(new URL("/__call", this.#callerUrl), { method: "POST", body: JSON.stringify(what) });
    const text = await response.text();
    assert.equal(response.status, 200, text);
    return JSON.parse(text);
  }

  /** Sends any request. The `text` and `json` of the response are compared with openapi.json. */
  async fetch(path, init = {}, options = {}) {
    const workerd = this.#workerd;
    const isCutOff = () => this.#isEnding || this.#workerd !== workerd;
    return answers.checked(await this.#send(path, init, options), init.method ?? "GET", path, isCutOff);
  }

  async #send(path, init, { via, agent }) {
    if (via === undefined) return fetch(new URL(path, this.url), init);
    const headers = new Headers(init.headers);
    headers.set("x-via", via);
    if (agent !== undefined) headers.set("x-agent", encodeURIComponent(agent));
    return fetch(new URL(path, this.#callerUrl), { ...init, headers });
  }

  /** The rows of a query in the object's own storage. Blobs are `Uint8Array`s, both ways. */
  async sql(agent, query, ...params) {
    return await this.#ask(agent, "sql", { query, params });
  }

  /** The rows that a query reads and writes in the object: `{ read, written }`. */
  async sqlCost(agent, query, ...params) {
    return await this.#ask(agent, "sql-cost", { query, params });
  }

  /** The rows that the object reads and writes during `work` and after its answers: `{ read, written }`. */
  async metered(agent, work) {
    await this.#ask(agent, "meter");
    await work();
    return await this.#ask(agent, "metered");
  }

  /** Identifies one activation of the object. `evict`, `abort` and `kill9` start another one. */
  async incarnation(agent) {
    return await this.#ask(agent, "incarnation");
  }

  /**
   * Evicts an idle object, as the platform does: its memory is lost, its storage stays,
   * its sockets hibernate or close.
   */
  async evict(agent, { webSockets = "hibernate" } = {}) {
    await this.#miniflare.unsafeEvictDurableObject(WORKER, CLASS, { name: agent, webSockets });
  }

  /** Ends the object in the middle of its work: running requests fail. */
  async abort(agent) {
    await this.#ask(agent, "abort").catch(() => {});
  }

  /** Crashes Rust in the middle of a call, as a panic does. */
  async crash(agent) {
    await this.#ask(agent, "crash");
  }

  /** Kills workerd with `kill -9`, and starts another one on the same storage. */
  async kill9() {
    this.#isEnding = true;
    process.kill(this.#workerd.pid, "SIGKILL");
    await this.#end();
    await this.start();
  }

  /**
   * The peak memory of the runtime's process since the last call, in bytes; `null` where the system
   * doesn't report it.
   */
  async peakMemory() {
    const of = `/proc/${this.#workerd.pid}`;
    try {
      const [, kilobytes] = (await readFile(`${of}/status`, "utf8")).match(/^VmHWM:\s+(\d+) kB/m);
      await writeFile(`${of}/clear_refs`, "5");
      return Number(kilobytes) * 1024;
    } catch {
      return null;
    }
  }

  /** The memory of the runtime's process, in bytes; `null` where the system doesn't report it. */
  async memory() {
    try {
      const status = await readFile(`/proc/${this.#workerd.pid}/status`, "utf8");
      return Number(status.match(/^VmRSS:\s+(\d+) kB/m)[1]) * 1024;
    } catch {
      return null;
    }
  }

  /** The CPU time of the runtime, in milliseconds; `null` where the system doesn't report it. */
  async processorMs() {
    try {
      const stat = await readFile(`/proc/${this.#workerd.pid}/stat`, "utf8");
      // After the name, which may hold anything: the 12th and the 13th field, in hundredths of a second.
      const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
      return 10 * (Number(fields[11]) + Number(fields[12]));
    } catch {
      return null;
    }
  }

  /** The bytes that the runtime has written to the file system; `null` where the system doesn't report it. */
  async writtenBytes() {
    try {
      const io = await readFile(`/proc/${this.#workerd.pid}/io`, "utf8");
      return Number(io.match(/^wchar: (\d+)/m)[1]);
    } catch {
      return null;
    }
  }

  /** The URL of an additional Worker. */
  async urlOf(worker) {
    return await this.#miniflare.unsafeGetDirectURL(worker);
  }

  /** The Worker's bindings, for the test's own use: `(await server.env()).SKILLS_BUCKET.put(…)`. */
  async env() {
    return await this.#miniflare.getBindings(WORKER);
  }

  async start() {
    const workers = await describeWorkers(this.#options);
    const { miniflare, workerd } = await startWorkerd(workers, this.#storage, {
      handleStructuredLogs: (log) => this.logs.push(log),
      ...registryAt(this.#options.registry),
    });
    this.#miniflare = miniflare;
    this.#workerd = workerd;
    this.#isEnding = false;
    // Without this line, a test would only report that nothing listens.
    this.#workerd.once("exit", (code, signal) => {
      if (!this.#isEnding) console.error(`workerd ended by itself: ${signal ?? `exit code ${code}`}`);
    });
    this.url = await this.#miniflare.unsafeGetDirectURL(WORKER);
    this.#callerUrl = await this.#miniflare.unsafeGetDirectURL(CALLER);
  }

  async stop() {
    await this.#end();
    if (this.#options.storage === undefined) await rm(this.#storage, { recursive: true, force: true });
  }

  async #end() {
    this.#isEnding = true;
    const workerd = this.#workerd;
    const exited = workerd.exitCode !== null || workerd.signalCode !== null || once(workerd, "exit");
    await this.#miniflare.dispose();
    await exited;
  }

  async #ask(agent, what, input = {}) {
    if (this.#options.inspect === false) throw new Error(`\`${what}\` needs a server that is inspected`);
    const init = { method: "POST", body: JSON.stringify(encode(input)) };
    const response = await this.#send(`/__harness/${what}`, init, { via: "object", agent });
    const answer = parsed(await response.text());
    if (!response.ok) throw new Error(answer.error ?? answer);
    return decode(answer);
  }
}

/** Where runtimes on this machine find each other. By default they don't. */
export const registryAt = (folder) =>
  folder === undefined ? { enableDevRegistry: false } : { enableDevRegistry: true, unsafeDevRegistryPath: folder };

async function describeWorkers({
  vars = { AUTH: "open" },
  secrets = {},
  own,
  inspect = own === undefined,
  workers = {},
  ai,
  site = false,
  directory = false,
  defaults,
  date,
}) {
  const compatibilityDate = date ?? (await compatibilityDateOf(join(ROOT, "wrangler.toml")));
  const worker = (name, mainModule, modules, env, exports, assets) => ({
    config: {
      name,
      compatibilityDate,
      manifest: { mainModule, modulesRoot: ROOT, modules },
      env,
      exports,
      ...(assets && { assets }),
    },
    dev: {
      // A port of the Worker's own, without miniflare's entry in front.
      unsafeDirectSockets: [{ host: HOST, port: 0 }],
      // The API URL that `wrangler dev` sets after a login: here, the URL of the server that
      // replaces the platform.
      ...(ai !== undefined && ai !== "local" && { remoteProxyConnectionString: new URL(ai) }),
    },
  });
  const object = { type: "durable-object", worker: WORKER, exportName: CLASS };
  const ways = { SERVICE: { type: "worker", worker: WORKER }, OBJECT: object };
  const others = Object.entries(workers);
  return [
    worker(
      WORKER,
      own !== undefined ? "own.mjs" : inspect ? "inspected_object.mjs" : "index.js",
      {
        ...(own !== undefined && (await ownClass(own))),
        "index.js": { type: "esm", contents: await built("index.js", "utf8") },
        "agent-defaults.js": {
          type: "esm",
          contents: `export const agentDefaults = () => ${JSON.stringify(JSON.stringify(defaults))};`,
        },
        "index_bg.wasm": { type: "wasm", contents: new Uint8Array(await built("index_bg.wasm")) },
        "inspected_object.mjs": await source("inspected_object.mjs"),
        "sql_json.mjs": await source("sql_json.mjs"),
      },
      {
        SESSION_AGENT: object,
        ...(directory && { DIRECTORY: { ...object, exportName: DIRECTORY } }),
        SKILLS_BUCKET: { type: "r2", name: "session-agent-skills" },
        BACKUP_BUCKET: { type: "r2", name: "session-agent-backups" },
        // Lines of thousands of requests are of no use; request_log.test.mjs asks for them.
        ...map({ REQUEST_LOG: "off", ...vars, ...secrets }, (value) => ({ type: "text", value })),
        ...(ai !== undefined && { AI: { type: "ai", dev: { remote: true } } }),
        ...Object.fromEntries(others.map(([name]) => [bindingName(name), { type: "worker", worker: name }])),
      },
      Object.fromEntries(
        [CLASS, ...(directory ? [DIRECTORY] : [])].map((name) => [name, { type: "durable-object", storage: "sqlite" }]),
      ),
      site ? await assetsOf(join(ROOT, "wrangler.toml")) : undefined,
    ),
    worker(CALLER, "caller.mjs", { "caller.mjs": await source("caller.mjs") }, ways),
    ...others.map(([name, what]) => {
      const { contents, env = {} } = typeof what === "string" ? { contents: what } : what;
      return worker(name, "main.mjs", { "main.mjs": { type: "esm", contents } }, { ...ways, ...env });
    }),
  ];
}

/** A module with a custom class, and the npm package as installed. */
async function ownClass(contents) {
  const files = await readdir(join(PACKAGE, "dist"));
  const client = files.filter((file) => file.endsWith(".js")).map((file) => `dist/${file}`);
  const modules = ["worker/index.js", "worker/agent-defaults.js", ...client].map(async (file) => [
    file,
    { type: "esm", contents: await readFile(join(PACKAGE, file), "utf8") },
  ]);
  const wasm = new Uint8Array(await readFile(join(PACKAGE, "worker/index_bg.wasm")));
  const imported = contents.replaceAll('"session-agent/worker"', '"./worker/index.js"');
  return {
    ...Object.fromEntries(await Promise.all(modules)),
    "worker/index_bg.wasm": { type: "wasm", contents: wasm },
    "own.mjs": { type: "esm", contents: imported },
  };
}

async function built(file, encoding) {
  try {
    return await readFile(join(ROOT, "build", file), encoding);
  } catch (error) {
    throw new Error(`build/${file} is missing: run \`npm run build\` first`, { cause: error });
  }
}

async function source(file) {
  return { type: "esm", contents: await readFile(new URL(`workers/${file}`, import.meta.url), "utf8") };
}

async function compatibilityDateOf(configuration) {
  return (await readFile(configuration, "utf8")).match(/^compatibility_date = "(.+)"/m)[1];
}

/** `[assets]` in miniflare's terms. */
async function assetsOf(configuration) {
  const [, section] = (await readFile(configuration, "utf8")).split("\n[assets]\n");
  const of = (key) => JSON.parse(section.match(new RegExp(`^${key} = (.+)`, "m"))[1]);
  return { directory: join(ROOT, of("directory")), runWorkerFirst: of("run_worker_first"), hasUserWorker: true };
}

/** The value of a text in JSON; any other text as it is. */
function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function count(response, header) {
  const text = response.headers.get(header);
  return text === null ? null : Number(text);
}

function map(object, change) {
  return Object.fromEntries(Object.entries(object).map(([key, value]) => [key, change(value)]));
}

function bindingName(worker) {
  return worker.toUpperCase().replaceAll("-", "_");
}
