// Tools behind an address: a process of their own, so they know how often they
// were called whatever becomes of the Worker.
//
//   const tools = await startTools();
//   after(() => tools.stop());
//   startServer({ vars: { TOOL_ORIGINS: tools.origin } });
//   tools.run = async ({ name, arguments: input }) => ({ paid: input.amount });
//   …
//   tools.calls
//
// What `run` gives is the answer's JSON; a `Response` is sent as it is. A `run`
// that never ends is a tool that never answers, until whoever called goes away.

import { EventEmitter, once } from "node:events";
import { createServer } from "node:http";

export async function startTools() {
  const tools = new ToolServer();
  await tools.start();
  return tools;
}

class ToolServer {
  #server = createServer((request, response) => this.#answer(request, response).catch((error) => response.destroy(error)));
  #heard = new EventEmitter().setMaxListeners(0);
  /** The bodies of the calls so far, in their order. */
  calls = [];
  /** Their headers. */
  headers = [];
  /** The bodies of those whose caller went away before the answer's end. */
  abandoned = [];
  run = async () => ({ ok: true });
  origin;

  async start() {
    this.#server.listen(0, "127.0.0.1");
    await once(this.#server, "listening");
    this.origin = `http://127.0.0.1:${this.#server.address().port}`;
  }

  async stop() {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  /** Until it was called so often in all. */
  async called(times) {
    while (this.calls.length < times) await once(this.#heard, "called");
  }

  /** Until so many callers in all have gone away. */
  async left(times) {
    while (this.abandoned.length < times) await once(this.#heard, "left");
  }

  async #answer(request, response) {
    let body = "";
    for await (const chunk of request) body += chunk;
    const call = JSON.parse(body);
    response.on("close", () => {
      if (response.writableFinished) return;
      this.abandoned.push(call);
      this.#heard.emit("left");
    });
    this.calls.push(call);
    this.headers.push(request.headers);
    this.#heard.emit("called");
    const output = await this.run(call);
    if (response.closed) return;
    if (output instanceof Response) {
      response.writeHead(output.status, Object.fromEntries(output.headers));
      const closed = once(response, "close");
      for await (const chunk of output.body ?? []) {
        if (!response.write(chunk)) await Promise.race([once(response, "drain"), closed]);
        if (response.closed) return;
      }
      response.end();
      return;
    }
    response.writeHead(200, { "content-type": "application/json" });
    response.end(JSON.stringify(output));
  }
}
