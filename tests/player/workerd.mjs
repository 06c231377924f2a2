// The agents on the real runtime, which is killed during writes.

import { setTimeout as pause } from "node:timers/promises";
import { createServer } from "node:http";
import { once } from "node:events";
import { startServer } from "../workerd/harness.mjs";

let games = 0;

export async function startRuntime() {
  const model = await startReplies();
  const server = await startServer({
    vars: { AUTH: "open", MODEL: "openai:test", OPENAI_BASE_URL: model.url },
    secrets: { OPENAI_API_KEY: "a test's key" },
  });
  return new Runtime(server, model);
}

class Runtime {
  name = "workerd";
  can = { fault: false, clock: false, kill: true, rows: true };
  kills = 0;
  #server;
  #model;
  #killing = Promise.resolve();

  constructor(server, model) {
    this.#server = server;
    this.#model = model;
  }

  set reply(reply) {
    this.#model.reply = reply;
  }

  agentName(agent) {
    return `game ${games} agent ${agent}`;
  }

  /** Three unused agents. */
  async reset() {
    await this.#killing;
    games += 1;
  }

  /** Status 0: the runtime was killed before it answered. */
  async request(agent, operation, body) {
    return await this.#untilKilled(async () => {
      const kills = this.kills;
      const {
        status,
        body: answer,
        rowsRead,
        rowsWritten,
      } = await this.#server.call(this.agentName(agent), operation, body);
      // The kill may cut the answer off.
      if (typeof answer === "string" && this.kills !== kills) throw new Error("cut off");
      return { status, body: answer, rowsRead, rowsWritten };
    });
  }

  #address(agent, sessionId, what) {
    return `/agents/session-agent/${encodeURIComponent(this.agentName(agent))}/sessions/${encodeURIComponent(sessionId)}/${what}`;
  }

  async exportSession(agent, sessionId) {
    return await this.#untilKilled(async () => {
      const response = await this.#server.fetch(this.#address(agent, sessionId, "export"));
      const text = await response.text();
      return { status: response.status, body: response.ok ? text : JSON.parse(text) };
    });
  }

  async importSession(agent, sessionId, file) {
    return await this.#untilKilled(async () => {
      const response = await this.#server.fetch(this.#address(agent, sessionId, "import?allowSources=true"), {
        method: "POST",
        body: file,
      });
      return { status: response.status, body: await response.json() };
    });
  }

  async #untilKilled(act) {
    await this.#killing;
    const kills = this.kills;
    try {
      return await act();
    } catch (error) {
      if (this.kills === kills) throw error;
      await this.#killing;
      return { status: 0 };
    }
  }

  async evict(agent) {
    // A busy object is not evicted.
    await this.#server.evict(this.agentName(agent)).catch(() => {});
  }

  /** Kills the runtime after this many milliseconds, and restarts it. */
  async killAfter(ms) {
    await pause(ms);
    this.kills += 1;
    this.#killing = this.#server.kill9();
    await this.#killing;
  }

  async stop() {
    await this.#killing;
    await this.#server.stop();
    await this.#model.stop();
  }
}

/** A model whose answers are a function of the request. */
async function startReplies() {
  const replies = {
    reply: () => ({ silent: true }),
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += chunk;
    const answer = await replies.reply(JSON.parse(body));
    if (answer.silent) return request.socket.destroy();
    response.writeHead(200, { "content-type": answer.stream === undefined ? "application/json" : "text/event-stream" });
    response.end(answer.stream ?? JSON.stringify(answer.json));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  replies.url = `http://127.0.0.1:${server.address().port}/v1`;
  return replies;
}
