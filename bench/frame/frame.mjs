// The frame around this Worker, the floor and the peers: one workerd, one thread, the
// same settings, the same kind of storage, and one caller that binds all of them.
//
//   const frame = await startFrame();
//   await frame.ask({ target: "FLOOR", entryPoint: "service", agent: "a", path: pathOf("a", "createSession"), body: "{}" });
//   const { done, ms } = await frame.run({ …, ms: 300, lanes: 8 });
//   await frame.stop();

import { once } from "node:events";
import { builtinModules } from "node:module";
import { access, constants, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { build } from "esbuild";
import { ROOT } from "../../scripts/paths.mjs";
import { HOST, startWorkerd } from "../../scripts/workerd.mjs";

const FRAME = join(ROOT, "bench/frame");

/**
 * The Workers of the frame by their bindings' names: each one's main file, its object's
 * class, and its object's binding.
 */
export const TARGETS = {
  AGENT: { source: "agent.mjs", className: "SessionAgent", objectBinding: "SESSION_AGENT" },
  FLOOR: { source: "floor.mjs", className: "FloorObject", objectBinding: "OBJECT" },
  PEER: { source: "peer.mjs", className: "PeerObject", objectBinding: "OBJECT" },
  CHAT_PEER: { source: "chat_peer.mjs", className: "ChatPeer", objectBinding: "ChatPeer" },
};

/** The path of an operation, the same for every target. */
export const pathOf = (agent, operation) => `/agents/session-agent/${encodeURIComponent(agent)}/rpc/${operation}`;

/**
 * `targets` names the Workers. `meter` counts rows, which takes time. `vars` are additional
 * settings for all.
 */
export async function startFrame({ targets = ["AGENT", "FLOOR", "PEER"], meter = false, vars = {} } = {}) {
  const frame = new Frame(await makeStorage());
  await frame.start(targets, { AUTH: "open", REQUEST_LOG: "off", ...(meter && { METER: "on" }), ...vars });
  return frame;
}

class Frame {
  #storage;
  #miniflare;
  #workerd;
  #callerUrl;
  /** The address of each target, by its name. */
  urls = {};

  constructor(storage) {
    this.#storage = storage;
  }

  async start(targets, vars) {
    const workers = await Promise.all([describeCaller(targets), ...targets.map((name) => describe(name, vars))]);
    const { miniflare, workerd } = await startWorkerd(workers, this.#storage);
    this.#miniflare = miniflare;
    this.#workerd = workerd;
    this.#callerUrl = await this.#miniflare.unsafeGetDirectURL("caller");
    for (const name of targets) this.urls[name] = await this.#miniflare.unsafeGetDirectURL(workerName(name));
  }

  get pid() {
    return this.#workerd.pid;
  }

  /** Sends one request. Returns the answer as text. */
  async ask(order) {
    return await this.#order("/ask", order);
  }

  /**
   * Sends the same request repeatedly for `order.ms` in `order.lanes` lanes. Returns
   * `{ done, ms }`.
   */
  async run(order) {
    return JSON.parse(await this.#order("/run", order));
  }

  async #order(path, order) {
    const response = await fetch(new URL(path, this.#callerUrl), { method: "POST", body: JSON.stringify(order) });
    const text = await response.text();
    if (!response.ok) throw new Error(`${order.target} ${order.entryPoint}: ${text}`);
    return text;
  }

  async stop() {
    const exited = once(this.#workerd, "exit");
    await this.#miniflare.dispose();
    await exited;
    await rm(this.#storage, { recursive: true, force: true });
  }
}

/**
 * A folder for storage, in memory where the system has that. On a disk, an append would
 * measure how long the disk takes to make a write durable: the same for all Workers, and a
 * hundred times the rest.
 */
export async function makeStorage() {
  const memory = "/dev/shm";
  const parent = await access(memory, constants.W_OK).then(
    () => memory,
    () => tmpdir(),
  );
  return await mkdtemp(join(parent, "session-agent-bench-"));
}

const workerName = (target) => target.toLowerCase().replaceAll("_", "-");

async function describe(target, vars) {
  const { source, className, objectBinding } = TARGETS[target];
  return worker(
    workerName(target),
    await modulesOf(source),
    await compatibilityDate(),
    {
      [objectBinding]: { type: "durable-object", worker: workerName(target), exportName: className },
      ...Object.fromEntries(Object.entries(vars).map(([key, value]) => [key, { type: "text", value }])),
    },
    { [className]: { type: "durable-object", storage: "sqlite" } },
  );
}

async function describeCaller(targets) {
  const bindings = targets.flatMap((name) => [
    [name, { type: "worker", worker: workerName(name) }],
    [`${name}_OBJECT`, { type: "durable-object", worker: workerName(name), exportName: TARGETS[name].className }],
  ]);
  return worker("caller", await modulesOf("caller.mjs"), await compatibilityDate(), Object.fromEntries(bindings), {});
}

function worker(name, modules, compatibilityDate, env, exports) {
  return {
    config: { name, compatibilityDate, manifest: { mainModule: "main.mjs", modulesRoot: ROOT, modules }, env, exports },
    dev: { unsafeDirectSockets: [{ host: HOST, port: 0 }] },
  };
}

/** Resolves `require("path")` in packages that are not ES modules, as wrangler does. */
const builtins = {
  name: "builtins",
  setup(build) {
    build.onResolve({ filter: new RegExp(`^(${builtinModules.join("|")})$`) }, ({ path }) => ({
      path,
      namespace: "builtin",
    }));
    build.onLoad({ filter: /.*/, namespace: "builtin" }, ({ path }) => ({
      contents: `export * from "node:${path}"; export { default } from "node:${path}";`,
    }));
  },
};

/** A Worker's modules, bundled as for a deployment. The wasm stays a module of its own. */
export async function modulesOf(source, { minify = false } = {}) {
  const { outputFiles } = await build({
    entryPoints: [join(FRAME, source)],
    bundle: true,
    minify,
    write: false,
    format: "esm",
    target: "es2024",
    conditions: ["workerd", "worker", "browser"],
    external: ["cloudflare:*", "node:*", "*.wasm"],
    plugins: [builtins],
    logLevel: "error",
  });
  const text = outputFiles[0].text;
  return {
    "main.mjs": { type: "esm", contents: text },
    ...(text.includes("index_bg.wasm") && {
      "index_bg.wasm": { type: "wasm", contents: new Uint8Array(await readFile(join(ROOT, "build/index_bg.wasm"))) },
    }),
  };
}

export async function compatibilityDate() {
  return (await readFile(join(ROOT, "wrangler.toml"), "utf8")).match(/^compatibility_date = "(.+)"/m)[1];
}
