// A Worker that imports the client and makes the calls that a test requests: `{ via, agent,
// options, session, method, given, take }`. `via` names how the client connects to Session Agent.
// An async iterator is read to its end, or up to `take` items. A stream is read as text.
//
// client.test.mjs bundles this file.

import { WorkerEntrypoint } from "cloudflare:workers";
import { sessionAgent } from "../../../packages/session-agent/dist/index.js";

/** A Worker without the method `call`, in front of Session Agent. */
export class FetchOnly extends WorkerEntrypoint {
  fetch(request) {
    return this.env.SERVICE.fetch(request);
  }
}

async function encode(value, take = Infinity) {
  if (value instanceof ReadableStream) return await new Response(value).text();
  if (value?.[Symbol.asyncIterator] === undefined) return value ?? null;
  const items = [];
  for await (const item of value) if (items.push(item) >= take) break;
  return items;
}

export async function perform(targets, { via, agent, options = {}, session, method, given = [], take }) {
  try {
    const client = sessionAgent(targets[via], agent, options);
    const on = session === undefined ? client : client.session(session);
    return { answer: await encode(await on[method](...given), take) };
  } catch (error) {
    const { name, code, status, details, message, operation } = error;
    return { error: { name, code, status, details, message, operation, isError: error instanceof Error } };
  }
}

export default {
  async fetch(request, env, ctx) {
    const call = await request.json();
    const targets = {
      service: env.SERVICE,
      namespace: env.OBJECT,
      stub: env.OBJECT.getByName(call.agent),
      older: { idFromName: (name) => env.OBJECT.idFromName(name), get: (id) => env.OBJECT.get(id) },
      fetchOnly: ctx.exports.FetchOnly,
    };
    return Response.json(await perform(targets, call));
  },
};
