// HTTP tools in their own process, so that the counts of calls survive a crash of the Worker.
//
//   const tools = await startTools();
//   after(() => tools.stop());
//   startServer({ vars: { TOOL_ORIGINS: tools.origin } });
//   tools.run = async ({ name, arguments: input }) => ({ paid: input.amount });
//   …
//   tools.calls
//
// The value that `run` returns is sent as JSON; a `Response` is sent as it is. A `run`
// that never ends is a tool that never answers, until its caller goes away.

import { EventEmitter, once } from "node:events";
import { createServer } from "node:http";

export async function startTools() {
  const tools = new ToolServer();
  await tools.start();
  return tools;
}

class ToolServer {
  #server = createServer((request, response) =>
    this.#answer(request, response).catch((error) => response.destroy(error)),
  );
  #changes = new EventEmitter().setMaxListeners(0);
  /** The bodies of the calls so far, in order. */
  calls = [];
  /** The same bodies as they were sent. */
  texts = [];
  /** The headers of the calls. */
  headers = [];
  /** The bodies of the calls whose caller disconnected before the answer's end. */
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

  /** Waits until there were this many calls in total. */
  async untilCalls(times) {
    while (this.calls.length < times) await once(this.#changes, "called");
  }

  /** Waits until this many callers in total have disconnected. */
  async untilDisconnected(times) {
    while (this.abandoned.length < times) await once(this.#changes, "disconnected");
  }

  async #answer(request, response) {
    let body = "";
    for await (const chunk of request) body += chunk;
    const call = JSON.parse(body);
    response.on("close", () => {
      if (response.writableFinished) return;
      this.abandoned.push(call);
      this.#changes.emit("disconnected");
    });
    this.calls.push(call);
    this.texts.push(body);
    this.headers.push(request.headers);
    this.#changes.emit("called");
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
