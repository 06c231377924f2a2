// The hooks' page in a browser, over the built Worker behind a proxy that a test can disconnect.

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, request as ask } from "node:http";
import { connect } from "node:net";
import { join } from "node:path";
import { build } from "esbuild";
import { CLIENT, ROOT } from "../../../scripts/paths.mjs";
import { startServer } from "../../workerd/harness.mjs";
import { startModel } from "../../workerd/model_server.mjs";
import { launch } from "../../console/browser.mjs";

const SECRET = "the secret of this test, long enough";
const PATIENCE_MS = 30_000;

/** The page's rights for the whole agent. */
export const OPERATIONS = [
  ...["chat", "cancelTurn", "getHistory", "getBranches", "setLeaf", "loadEvents", "getTurns"],
  ...["listSessions", "createSession", "updateSession", "deleteSession"],
  ...["getBlocks", "setBlock", "listEntries", "setEntry", "deleteEntry"],
  ...["getProposals", "decideProposal", "revertProposal"],
];

/**
 * A URL that stays the same while the server behind it restarts. It serves the page itself: a
 * browser does not let a page of an opaque origin open a socket on this machine.
 */
class ClosableProxy {
  #sockets = new Set();
  #server = createServer((request, response) => {
    if (request.url.startsWith("/test/")) return void this.own(request, response);
    const { method, headers } = request;
    const upstream = ask(new URL(request.url, this.target()), { method, headers }, (answer) => {
      response.writeHead(answer.statusCode, answer.headers);
      answer.pipe(response);
    });
    upstream.on("error", () => response.destroy());
    request.pipe(upstream);
  });
  #isOpen = true;
  target;
  own;

  async start() {
    this.#server.on("connection", (socket) => {
      if (!this.#isOpen) return socket.destroy();
      this.#sockets.add(socket);
      socket.on("close", () => this.#sockets.delete(socket));
    });
    this.#server.on("upgrade", (request, downstream, head) => {
      const upstream = connect(Number(new URL(this.target()).port), "127.0.0.1");
      const headers = Object.entries(request.headers).map(([name, value]) => `${name}: ${value}\r\n`);
      upstream.write(`GET ${request.url} HTTP/1.1\r\n${headers.join("")}\r\n`);
      upstream.write(head);
      downstream.pipe(upstream).pipe(downstream);
      for (const [one, other] of [
        [downstream, upstream],
        [upstream, downstream],
      ])
        one.on("error", () => other.destroy()).on("close", () => other.destroy());
    });
    this.#server.listen(0, "127.0.0.1");
    await once(this.#server, "listening");
    this.url = `http://127.0.0.1:${this.#server.address().port}`;
  }

  close() {
    this.#isOpen = false;
    for (const socket of this.#sockets) socket.destroy();
  }

  open() {
    this.#isOpen = true;
  }

  stop() {
    this.close();
    this.#server.close();
  }
}

export async function startPages() {
  const [model, browser, script] = [await startModel(), await launch(), await bundled()];
  const server = await startServer({
    vars: { MODEL: "openai:test", OPENAI_BASE_URL: model.url },
    secrets: { OPENAI_API_KEY: "a key", SESSION_AGENT_TOKEN: SECRET },
    workers: { tables: "export default { fetch: () => Response.json({ booked: true }) };" },
  });
  const proxy = new ClosableProxy();
  proxy.target = () => server.url;
  await proxy.start();
  const logins = new Map();
  proxy.own = async (request, response) => {
    const { pathname, searchParams } = new URL(request.url, proxy.url);
    if (pathname === "/test/login") return response.end(JSON.stringify(await logins.get(searchParams.get("agent"))()));
    response.writeHead(200, { "content-type": "text/html; charset=utf-8" });
    response.end(`<!doctype html><title>Hooks</title><div id="root"></div><script type="module">${script}</script>`);
  };
  const call = async (agent, operation, input = {}) => {
    const { status, body } = await server.call(agent, operation, input, {
      headers: { authorization: `Bearer ${SECRET}` },
    });
    assert.equal(status, 200, JSON.stringify(body));
    return body;
  };
  const stop = async () => {
    await browser.close();
    proxy.stop();
    await server.stop();
    await model.stop();
  };
  return { model, server, proxy, call, browser, logins, stop };
}

/** A separate browser whose tabs show the page of this agent. */
export async function visit(t, pages, agent, rights = { operations: OPERATIONS, allow: { agentMemory: true } }) {
  const { browser, proxy, call } = pages;
  const context = await browser.newContext();
  context.setDefaultTimeout(PATIENCE_MS);
  const wrong = [];
  t.after(async () => {
    await context.close();
    assert.deepEqual(wrong, []);
  });
  const logins = { count: 0, next: {} };
  pages.logins.set(agent, async () => {
    logins.count += 1;
    const { token } = await call(agent, "mintToken", { ...rights, expiresIn: 3600 });
    const answer = { agent, token, expiresIn: 3600, ...logins.next };
    logins.next = {};
    return answer;
  });
  const open = async (session = "chat") => {
    const page = await context.newPage();
    page.on("pageerror", (error) => wrong.push(error.stack));
    await page.goto(`${proxy.url}/test/page?agent=${agent}&session=${session}`);
    return new Tab(page);
  };
  return { context, open, logins };
}

export class Tab {
  constructor(page) {
    this.page = page;
  }

  /** The hooks' state, without their functions. */
  async view() {
    return await this.page.evaluate(() => JSON.parse(JSON.stringify(window.view)));
  }

  /** Calls a hook's function. */
  async act(hook, name, ...given) {
    return await this.page.evaluate(([hook, name, given]) => window.act[hook][name](...given), [hook, name, given]);
  }

  /** Waits until `fits` accepts the view, and returns it. */
  async shows(what, fits) {
    const end = Date.now() + PATIENCE_MS;
    for (;;) {
      const view = await this.view();
      if (fits(view)) return view;
      assert.ok(Date.now() < end, `${what}: still ${JSON.stringify(view)}`);
      await new Promise((resolve) => setTimeout(resolve, 25));
    }
  }

  /** Waits until these are the messages' texts. */
  async showsTexts(...texts) {
    return await this.shows(
      `says ${texts.join(", ")}`,
      ({ chat }) => JSON.stringify(textsOf(chat)) === JSON.stringify(texts),
    );
  }

  async ready() {
    return await this.shows("is ready", ({ chat }) => chat.status === "ready" && chat.connection === "online");
  }
}

export const textsOf = ({ messages }) =>
  messages.map(({ parts }) => parts.map(({ type, text }) => (type === "text" ? text : "")).join(""));

async function bundled() {
  const { outputFiles } = await build({
    entryPoints: [join(import.meta.dirname, "page.tsx")],
    bundle: true,
    write: false,
    format: "esm",
    jsx: "automatic",
    define: { "process.env.NODE_ENV": '"development"' },
    alias: {
      "session-agent/react": join(CLIENT, "dist/react.js"),
      react: join(ROOT, "tests/node_modules/react"),
      "react-dom": join(ROOT, "tests/node_modules/react-dom"),
    },
  });
  return outputFiles[0].text.replaceAll("</script", "<\\/script");
}
