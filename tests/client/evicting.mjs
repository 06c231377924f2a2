// A server whose objects are evicted after every write, so that nothing which an adapter
// relies on is in memory alone.

import { createServer } from "node:http";
import { once } from "node:events";
import { evictingFetch } from "./evicting_fetch.mjs";
import { startServer } from "../workerd/harness.mjs";

/** Evicts an object, unless another request has just done so. */
async function evict(server, agent) {
  await server.evict(agent).catch((error) => {
    if (!/is not currently running/.test(error.message)) throw error;
  });
}

/** The built Worker, and `evictions`: how often an object was evicted so far. */
export async function startEvicting() {
  const server = await startServer();
  const evicting = { server, url: server.url, evictions: 0, stop: () => server.stop() };
  evicting.fetch = evictingFetch(async (agent) => {
    evicting.evictions += 1;
    await evict(server, agent);
  });
  return evicting;
}

/** The same for another process: an address that evicts the object named in its path. */
export async function listenForEvictions(evicting) {
  const control = createServer(async (request, response) => {
    evicting.evictions += 1;
    await evict(evicting.server, decodeURIComponent(request.url.slice(1)));
    response.end();
  }).listen(0, "127.0.0.1");
  await once(control, "listening");
  return { url: `http://127.0.0.1:${control.address().port}`, stop: () => control.close() };
}
