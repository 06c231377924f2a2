// A server whose objects are evicted after every write, so that an adapter can't rely on anything
// in memory.
//
// `SUITE_WAY` in the environment says how the clients connect: by URL, by a service binding
// (`service`) or by a Durable Object namespace (`namespace`) of a Worker in a second runtime. In
// the latter cases the server has the shipped configuration with its static files: see
// second_worker.test.mjs.

import { createServer } from "node:http";
import { once } from "node:events";
import { startServer } from "../workerd/harness.mjs";
import { bundle, startWithSecond } from "../workerd/second_worker.mjs";
import { targetBy } from "./evicting_target.mjs";

/** Evicts an object, unless another request has just done so. */
async function evict(server, agent) {
  await server.evict(agent).catch((error) => {
    if (!/is not currently running/.test(error.message)) throw error;
  });
}

/**
 * The built Worker. `open(agent)` is a client whose writes evict the agent's object, and
 * `openPlain(agent)` one whose writes don't. `evictions`: how often that was so far.
 */
export async function startEvictingServer() {
  const { sessionAgent } = await import("session-agent");
  const way = process.env.SUITE_WAY ?? "url";
  const { server, worker, stop } =
    way === "url" ? await startAlone() : await startWithSecond({}, await bundle("forward.mjs"));
  const target = { way, url: server.url, second: worker };
  const evicting = { server, target, evictions: 0, stop };
  const opener = (found) => (name, options) =>
    sessionAgent(found.target, name, { ...(found.fetch && { fetch: found.fetch }), ...options });
  evicting.openPlain = opener(targetBy(target));
  evicting.open = opener(
    targetBy(target, async (agent) => {
      evicting.evictions += 1;
      await evict(server, agent);
    }),
  );
  return evicting;
}

async function startAlone() {
  const server = await startServer();
  return { server, stop: () => server.stop() };
}

/** The same for another process: a URL that evicts the object named in its path. */
export async function listenForEvictions(evicting) {
  const control = createServer(async (request, response) => {
    evicting.evictions += 1;
    await evict(evicting.server, decodeURIComponent(request.url.slice(1)));
    response.end();
  }).listen(0, "127.0.0.1");
  await once(control, "listening");
  return { url: `http://127.0.0.1:${control.address().port}`, stop: () => control.close() };
}
