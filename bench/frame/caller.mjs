// The caller: a Worker that binds all others and calls one of them repeatedly, in the same process.
// So a measurement includes no network, and no client in another process.
//
// `POST /run` takes `{ target, entryPoint, agent, path, body, lanes }` and either `ms` or
// `times`: how long or how often. The answer is `{ done, ms }`. `POST /ask` asks once and
// passes the answer on. `$ID` in a body becomes a fresh id in each request, as the
// caller's own id.

const ID = '"$ID"';

/**
 * How to reach a target, by the name of the entry point. `service` goes through the target's
 * Worker, `object` directly to its object. `call` and `object-call` are the same two by Workers
 * RPC: a text in, a text out, without HTTP.
 */
const ENTRY_POINTS = {
  service: (env, { target, path }) => {
    const worker = env[target];
    return (body) => overHttp(worker, path, body);
  },
  object: (env, { target, agent, path }) => {
    const stub = env[`${target}_OBJECT`].getByName(agent);
    return (body) => overHttp(stub, path, body);
  },
  call: (env, { target, agent, path }) => {
    const worker = env[target];
    return (body) => worker.call(agent, operationOf(path), body);
  },
  "object-call": (env, { target, agent, path }) => {
    const stub = env[`${target}_OBJECT`].getByName(agent);
    return (body) => stub.call(operationOf(path), body);
  },
};

async function overHttp(fetcher, path, body) {
  const response = await fetcher.fetch(`http://bench${path}`, body === undefined ? {} : { method: "POST", body });
  const bytes = await response.arrayBuffer();
  if (!response.ok) throw new Error(`${path}: ${response.status} ${new TextDecoder().decode(bytes).slice(0, 300)}`);
  return bytes;
}

const operationOf = (path) => path.slice(path.lastIndexOf("/") + 1);

export default {
  async fetch(request, env) {
    const order = await request.json();
    const ask = ENTRY_POINTS[order.entryPoint](env, order);
    const fill = (body) => (body?.includes(ID) ? body.replace(ID, `"${crypto.randomUUID()}"`) : body);
    try {
      if (new URL(request.url).pathname === "/ask") return new Response(await ask(fill(order.body)));
      const start = Date.now();
      let [started, done] = [0, 0];
      const lane = async () => {
        while (order.times === undefined ? Date.now() < start + order.ms : started < order.times) {
          started += 1;
          await ask(fill(order.body));
          done += 1;
        }
      };
      await Promise.all(Array.from({ length: order.lanes }, lane));
      return Response.json({ done, ms: Date.now() - start });
    } catch (error) {
      return new Response(String(error.stack ?? error), { status: 500 });
    }
  },
};
