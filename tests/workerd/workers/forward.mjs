// A user's Worker that a test controls: it forwards a test client's calls of a binding to its own
// bindings.
//
// `x-way` names the binding, and `x-agent` the agent. With `x-method`, the body has the arguments
// of a method, and the answer is its result or exception. Otherwise the request itself is
// forwarded, to the address in `x-address`.

export default {
  async fetch(request, env) {
    const header = (name) => decodeURIComponent(request.headers.get(name) ?? "");
    const on = header("x-way") === "namespace" ? env.OBJECT.getByName(header("x-agent")) : env.SERVICE;
    const method = header("x-method");
    if (method === "") return await on.fetch(new Request(header("x-address"), request));
    try {
      return Response.json({ answer: await on[method](...(await request.json())) });
    } catch (error) {
      return Response.json({ thrown: error.message });
    }
  },
};
