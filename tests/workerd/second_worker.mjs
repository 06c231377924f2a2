// Starts a user's Worker in a second runtime beside a server of `harness.mjs` that has its static
// files and a `registry`, like two `wrangler dev` on one machine. Between the two are the proxies
// that wrangler adds in front of a Worker with static files and in front of a Worker or an object
// of another runtime. They drop the code of an exception and address an object only by its id.

import { join } from "node:path";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { build } from "esbuild";
import { ROOT } from "../../scripts/paths.mjs";
import { HOST, startWorkerd } from "../../scripts/workerd.mjs";
import { registryAt, startServer } from "./harness.mjs";

/** The newest compatibility date that a user's Worker may have. */
export const NEWEST_DATE = "2026-11-17";

/** `ask(all)` returns an answer or an error for each of `all`: see workers/second.mjs. */
export async function startSecond(server, registry, { compatibilityDate }) {
  const second = await startBeside(server, registry, await bundle("second.mjs"), compatibilityDate);
  const post = async (body) => {
    const response = await fetch(second.url, { method: "POST", body: JSON.stringify(body) });
    const text = await response.text();
    if (response.status !== 200) throw new Error(text);
    return JSON.parse(text);
  };
  return {
    ask: (all) => post({ all }),
    raw: async (one) => (await post({ raw: true, all: [one] }))[0],
    stop: second.stop,
  };
}

/**
 * Session Agent in its shipped configuration, and a Worker beside it: `{ server, worker, stop }`.
 * `worker` is its URL.
 */
export async function startWithSecond(settings, contents) {
  const registry = await mkdtemp(join(tmpdir(), "session-agent-registry-"));
  const server = await startServer({ inspect: false, site: true, registry, ...settings });
  const second = await startBeside(server, registry, contents);
  const stop = async () => {
    await second.stop();
    await server.stop();
    await rm(registry, { recursive: true, force: true });
  };
  return { server, worker: second.url, stop };
}

/** Any Worker in its own runtime: `{ url, stop }`. `modules` and `env` are added to the usual ones. */
export async function startBeside(
  server,
  registry,
  contents,
  compatibilityDate = NEWEST_DATE,
  { modules = {}, env = {} } = {},
) {
  const storage = await mkdtemp(join(tmpdir(), "session-agent-second-"));
  const worker = {
    config: {
      name: "second",
      compatibilityDate,
      compatibilityFlags: ["nodejs_compat"],
      manifest: {
        mainModule: "main.mjs",
        modulesRoot: ROOT,
        modules: { "main.mjs": { type: "esm", contents }, ...modules },
      },
      env: {
        SERVICE: { type: "worker", worker: "session-agent" },
        OBJECT: { type: "durable-object", worker: "session-agent", exportName: "SessionAgent" },
        URL: { type: "text", value: String(server.url) },
        ...env,
      },
    },
    dev: { unsafeDirectSockets: [{ host: HOST, port: 0 }] },
  };
  const { miniflare } = await startWorkerd([worker], storage, registryAt(registry));
  return {
    url: await miniflare.unsafeGetDirectURL("second"),
    stop: async () => {
      await miniflare.dispose();
      await rm(storage, { recursive: true, force: true });
    },
  };
}

/** A Worker of workers/, with the frameworks that the adapters import. */
export async function bundle(name) {
  const bundled = await build({
    entryPoints: [join(ROOT, "tests/workerd/workers", name)],
    bundle: true,
    format: "esm",
    write: false,
    conditions: ["workerd", "worker"],
    external: ["cloudflare:*", "node:*"],
    nodePaths: [join(ROOT, "tests/client/node_modules"), join(ROOT, "tests/node_modules")],
  });
  return bundled.outputFiles[0].text;
}
