// Cold start: the time from the start of a fresh process to its first answer, which opens
// the object and its tables. workerd is started directly, with as little around it as
// possible. Results: results/cold.md.
//
//   npm run bench -- cold

import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { request } from "node:http";
import { createServer } from "node:net";
import { join } from "node:path";
import { promisify } from "node:util";
import { default as program } from "workerd";
import { compatibilityDate, makeStorage, modulesOf, TARGETS } from "./frame/frame.mjs";
import { bars, machine, ms, report, table } from "./frame/report.mjs";
import { shuffled, spread } from "./frame/stats.mjs";

const runFile = promisify(execFile);
const WORKERD = program.default ?? program;
const ROUNDS = 15;
const PATIENCE_MS = 20_000;

const create = { method: "POST", path: "/agents/session-agent/a/rpc/createSession", body: '{"id":"s"}' };
const STARTERS = {
  "the floor": { target: "FLOOR", first: create },
  "this Worker": { target: "AGENT", first: create },
  "the peer": { target: "PEER", first: create },
  "the chat peer": { target: "CHAT_PEER", first: { method: "GET", path: "/agents/chat-peer/a/get-messages" } },
};

/** A Worker without an object; its code loads the Wasm module, or doesn't. */
const empty = (imports) => `${imports}
export class SessionAgent {}
export default { fetch: () => new Response("ok") };`;
const health = { method: "GET", path: "/health" };
const ofAgent = (operation) => ({ ...create, path: `/agents/session-agent/a/rpc/${operation}` });

/** This Worker's start, step by step: each step does what the previous step does, and more. */
const STEPS = {
  "an empty Worker": { first: health, code: () => empty(""), wasm: false },
  "has the Wasm module": { first: health, code: () => empty("") },
  "imports it": {
    first: health,
    code: () => empty('import wasm from "./index_bg.wasm"; globalThis.wasm = wasm;'),
  },
  "runs the Worker's code: `/health`": { first: health },
  "opens an object: a read": { first: { ...ofAgent("getConfig"), body: "{}" } },
  "creates its tables: a write": { first: create },
};

const folder = await makeStorage();
const prepared = [];
for (const [name, { target, first }] of Object.entries(STARTERS))
  prepared.push({ name, first, config: await prepare(target), times: [] });
const steps = [];
for (const [name, { first, code, wasm }] of Object.entries(STEPS))
  steps.push({ name, first, config: await prepare("AGENT", `step-${steps.length}`, { code, wasm }), times: [] });
for (let round = -1; round < ROUNDS; round += 1) {
  for (const starter of shuffled([...prepared, ...steps], round)) {
    const time = await coldStart(starter);
    if (round >= 0) starter.times.push(time);
  }
}
await rm(folder, { recursive: true, force: true });

/** A step's own time: the median difference from the previous step, in the same round. */
const stepRows = steps.map(({ name, times }, index) => {
  const before = steps[index - 1]?.times;
  const own = spread(times.map((time, round) => time - (before?.[round] ?? 0)));
  return [name, ms(spread(times).median), ms(own.median), `${ms(own.low)}–${ms(own.high)}`];
});

const rows = prepared.map(({ name, times }) => {
  const { median, low, high } = spread(times);
  return [name, ms(median), `${ms(low)}–${ms(high)}`, ms(Math.min(...times))];
});
await report(
  "cold",
  [
    "# Cold start",
    "",
    `By \`npm run bench -- cold\`: from a fresh process to the first answer, in milliseconds; ${ROUNDS} starts each, in turn.`,
    machine(),
    "",
    ...table(["who starts", "median", "quarters", "least"], rows),
    "",
    "This Worker's start, step by step. Each step does what the step before does, and more. *Own* is the median difference from that step in the same round:",
    "",
    ...table(["step", "median", "own", "quarters"], stepRows),
  ],
  {
    "": bars({
      title: "Cold start",
      unit: "milliseconds from a fresh process to the first answer; less is better",
      series: ["median", "least"],
      groups: prepared.map(({ name, times }) => ({ name, bars: [spread(times).median, Math.min(...times)] })),
      show: ms,
    }),
  },
);

/**
 * Writes the Worker's modules and a configuration that names them, compiled as wrangler hands it to
 * workerd: read as text, the configuration of a module of 4 MiB alone takes 43 ms. `code`: another
 * main module. `wasm`: whether the Wasm module is among the modules.
 */
async function prepare(target, name = target, { code, wasm = true } = {}) {
  const { source, className, objectBinding } = TARGETS[target];
  const build = join(folder, name);
  await mkdir(build);
  const modules = await modulesOf(source);
  if (code) modules["main.mjs"].contents = code();
  if (!wasm) delete modules["index_bg.wasm"];
  for (const [name, { contents }] of Object.entries(modules)) await writeFile(join(build, name), contents);
  const listed = Object.entries(modules).map(
    ([name, { type }]) => `(name = "${name}", ${type === "wasm" ? "wasm" : "esModule"} = embed "${name}")`,
  );
  await writeFile(
    join(build, "config.capnp"),
    `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [(name = "main", worker = .main), (name = "disk", disk = (writable = true))],
  sockets = [(name = "http", http = (), service = "main")],
  # What the platform has inside itself and agents imports.
  extensions = [(modules = [(name = "cloudflare-internal:email", internal = true, esModule = "export default { EmailMessage: class {} };")])],
);
const main :Workerd.Worker = (
  modules = [${listed.join(", ")}],
  compatibilityDate = "${await compatibilityDate()}",
  durableObjectNamespaces = [(className = "${className}", uniqueKey = "bench", enableSql = true)],
  durableObjectStorage = (localDisk = "disk"),
  bindings = [
    (name = "${objectBinding}", durableObjectNamespace = "${className}"),
    (name = "AUTH", text = "open"),
    (name = "OPENAI_BASE_URL", text = "http://127.0.0.1:1/v1"),
  ],
);
`,
  );
  const compiled = await runFile(WORKERD, ["compile", "--config-only", join(build, "config.capnp")], {
    encoding: "buffer",
    maxBuffer: 64 * 1024 * 1024,
  });
  const file = join(build, "config.bin");
  await writeFile(file, compiled.stdout);
  return file;
}

async function coldStart({ config, first }) {
  const port = await freePort();
  const storage = join(folder, `storage-${port}`);
  await mkdir(storage, { recursive: true });
  const start = performance.now();
  const settings = [`--socket-addr=http=127.0.0.1:${port}`, `--directory-path=disk=${storage}`];
  const child = spawn(WORKERD, ["serve", "--binary", "--experimental", ...settings, config], {
    stdio: ["ignore", "ignore", "inherit"],
  });
  const exited = once(child, "exit");
  try {
    for (;;) {
      const status = await ask(port, first);
      if (status === 200) return performance.now() - start;
      if (status !== null) throw new Error(`the first answer has status ${status}`);
      if (child.exitCode !== null || performance.now() - start > PATIENCE_MS)
        throw new Error("workerd does not answer");
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
  } finally {
    child.kill("SIGKILL");
    await exited;
    await rm(storage, { recursive: true, force: true });
  }
}

/** The status of the response; `null` while nothing listens. */
function ask(port, { method, path, body }) {
  return new Promise((resolve, reject) => {
    const sent = request({ host: "127.0.0.1", port, method, path }, (response) => {
      response.resume();
      response.on("end", () => resolve(response.statusCode));
    });
    sent.on("error", (error) => (["ECONNREFUSED", "ECONNRESET"].includes(error.code) ? resolve(null) : reject(error)));
    sent.end(body);
  });
}

async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  await once(server, "close");
  return port;
}
