// Another Worker, as a user of Session Agent would write it. It calls the Worker through a service
// binding and the object through `script_name`.
//
// `x-via: service` passes a request to the Worker, `x-via: object` to the object of the
// agent in `x-agent`. The path and the body stay the same. `x-announced` announces a
// length that the body need not have.
//
// `/__call` calls a method over Workers RPC: `{ via, agent, method, given }`, where
// `given` are the arguments and `{ "$made": NAME }` stands for what JSON does not have.
// With `given: null` the property is read and not called. `atOnce` makes a call for each of
// its lists, all before the first is answered. Each list contains the arguments before `given`.

const SPECIAL_VALUES = {
  undefined: undefined,
  function: () => "{}",
  date: new Date(0),
  bytes: new Uint8Array([123, 125]),
  boxed: new String("{}"),
  map: new Map([["token", "x"]]),
  infinity: Infinity,
  bigint: 1n,
};

const toValue = (value) =>
  value !== null && typeof value === "object" && "$made" in value ? SPECIAL_VALUES[value.$made] : value;

async function call({ via, agent, method, given }, env) {
  const target = via === "service" ? env.SERVICE : env.OBJECT.getByName(agent);
  try {
    const answer = given === null ? await target[method] : await target[method](...given.map(toValue));
    return { answer, type: typeof answer };
  } catch (error) {
    const { name, message, code, details, status } = error;
    return { error: { isError: error instanceof Error, name, message, code, details, status, stack: error.stack } };
  }
}

const callAll = ({ atOnce, given, ...what }, env) =>
  Promise.all(atOnce.map((first) => call({ ...what, given: [...first, ...given] }, env)));

export default {
  async fetch(request, env) {
    if (new URL(request.url).pathname === "/__call") {
      const what = await request.json();
      return Response.json(await (what.atOnce === undefined ? call : callAll)(what, env));
    }
    const headers = new Headers(request.headers);
    const [via, agent] = [headers.get("x-via"), headers.get("x-agent")];
    headers.delete("x-via");
    headers.delete("x-agent");
    const announced = headers.get("x-announced");
    headers.delete("x-announced");
    if (announced !== null) headers.set("content-length", announced);
    const forwarded = new Request(request, { headers });
    if (via === "service") return env.SERVICE.fetch(forwarded);
    if (via === "object") return env.OBJECT.getByName(decodeURIComponent(agent)).fetch(forwarded);
    return new Response("x-via is `service` or `object`", { status: 400 });
  },
};
