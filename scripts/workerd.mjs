// Starts Workers in one process of workerd, through miniflare. The tests and the
// benchmarks use it.

import { AsyncLocalStorage } from "node:async_hooks";
import diagnostics from "node:diagnostics_channel";
import { createRequire } from "node:module";

// `require` instead of `import`: Node would read the 3 MB three times to find out the module's
// format and exports.
const { Log, LogLevel, Miniflare } = createRequire(import.meta.url)("miniflare");

export const HOST = "127.0.0.1";

// miniflare does not report which process its workerd is. Node reports it on this channel,
// before the process has a name, in the async context that starts the process.
const starting = new AsyncLocalStorage();
diagnostics.subscribe("child_process", ({ process: child }) => starting.getStore()?.push(child));

/**
 * `{ miniflare, workerd }`: the Workers, ready, with their state in the folder `storage`,
 * and the process that runs them. `more` are additional options of miniflare.
 */
export async function startWorkerd(workers, storage, more = {}) {
  const children = [];
  const options = {
    workers,
    resourcePersistencePath: storage,
    host: HOST,
    cf: false,
    telemetry: { enabled: false },
    log: new Log(LogLevel.ERROR),
    ...more,
  };
  const miniflare = starting.run(children, () => new Miniflare(options));
  await miniflare.ready;
  return { miniflare, workerd: children.find((child) => child.spawnfile.endsWith("workerd")) };
}
