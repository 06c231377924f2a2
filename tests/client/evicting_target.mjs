// The target that a client is given, which also evicts the object after every write.
//
// The target is a URL or what a Worker in another runtime has: an object that looks like a binding,
// whose calls that Worker makes on its own binding (see tests/workerd/workers/forward.mjs).

import { OPERATIONS } from "../../client/dist/operations.js";

/**
 * `{ target, fetch }` for `sessionAgent`. `way`: "url", "service" or "namespace". `second` is the
 * URL of the Worker in another runtime. `evict(agent)` runs before the answer to a write is
 * returned.
 */
export function targetBy({ way, url, second }, evict) {
  if (way === "url") return { target: url, fetch: evict && evictingFetch(evict) };
  const ask = async (agent, headers, body) => {
    const all = { "x-way": way, "x-agent": encodeURIComponent(agent), ...headers };
    return await fetch(second, { method: "POST", redirect: "manual", ...body, headers: all });
  };
  const request = async (agent, given, operation) => {
    const response = await ask(agent, { "x-method": "request" }, { body: JSON.stringify(given) });
    const text = await response.text();
    if (evict && !OPERATIONS[operation]?.reads) await evict(agent);
    const { answer, thrown } = JSON.parse(text);
    if (thrown !== undefined) throw new Error(thrown);
    return answer;
  };
  const go = evictingFetch(evict ?? (() => {}), (address, { headers, ...init } = {}) =>
    ask(agentIn(address), { ...headers, "x-address": encodeURIComponent(address) }, { method: "GET", ...init }),
  );
  const stubOf = (name) => ({
    fetch: go,
    request: (operation, ...rest) => request(name, [operation, ...rest], operation),
  });
  const service = {
    fetch: go,
    request: (agent, operation, ...rest) => request(agent, [agent, operation, ...rest], operation),
  };
  return { target: way === "service" ? service : { getByName: stubOf } };
}

const agentIn = (address) => decodeURIComponent(new URL(address).pathname.split("/")[3]);

function evictingFetch(evict, go = (address, init) => fetch(address, init)) {
  return async (address, init) => {
    const response = await go(String(address), init);
    if (Number(response.headers.get("x-rows-written")) > 0) await evict(agentIn(address));
    return response;
  };
}
