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
// What `run` gives is the answer's JSON; a `Response` is sent as it is.

import { once } from "node:events";
import { createServer } from "node:http";

export async function startTools() {
  const tools = new ToolServer();
  await tools.start();
  return tools;
}

class ToolServer {
  #server = createServer((request, response) => this.#answer(request, response).catch((error) => response.destroy(error)));
  /** The bodies of the calls so far, in their order. */
  calls = [];
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

  async #answer(request, response) {
    let body = "";
    for await (const chunk of request) body += chunk;
    const call = JSON.parse(body);
    this.calls.push(call);
    const output = await this.run(call);
    if (output instanceof Response) {
      response.writeHead(output.status, Object.fromEntries(output.headers));
      response.end(Buffer.from(await output.arrayBuffer()));
      return;
    }
    response.writeHead(200, { "content-type": "application/json" });
    response.end(JSON.stringify(output));
  }
}
