// Another Worker, as a user of Session Agent would write it. It reaches the Worker
// through a service binding, and the object through `script_name`.
//
// `x-via: service` passes a request to the Worker, `x-via: object` to the object of the
// agent in `x-agent`. The path and the body stay the same.

export default {
  async fetch(request, env) {
    const headers = new Headers(request.headers);
    const [via, agent] = [headers.get("x-via"), headers.get("x-agent")];
    headers.delete("x-via");
    headers.delete("x-agent");
    const passedOn = new Request(request, { headers });
    if (via === "service") return env.SERVICE.fetch(passedOn);
    if (via === "object") return env.OBJECT.getByName(decodeURIComponent(agent)).fetch(passedOn);
    return new Response("x-via is `service` or `object`", { status: 400 });
  },
};
