// The real object with a window in it, for tests: composed, not changed.
//
// It answers paths under /__harness/ itself and hands everything else to the
// class that ships. That class is constructed at the first event it is handed,
// so a test can lay out storage before the object's first line of code runs.

import { DurableObject } from "cloudflare:workers";
import { SessionAgent as Real } from "./index.js";
import { decode, encode } from "./wire.mjs";

export { default } from "./index.js";
export * from "./index.js";

export class SessionAgent extends DurableObject {
  #real;
  #incarnation = crypto.randomUUID();

  get real() {
    return (this.#real ??= new Real(this.ctx, this.env));
  }

  async fetch(request) {
    const { pathname } = new URL(request.url);
    if (!pathname.startsWith("/__harness/")) return this.real.fetch(request);
    try {
      return Response.json(encode(this.#answer(pathname, decode(await request.json()))));
    } catch (error) {
      return Response.json({ error: String(error.message ?? error) }, { status: 500 });
    }
  }

  alarm(info) {
    return this.real.alarm(info);
  }

  webSocketMessage(socket, message) {
    return this.real.webSocketMessage(socket, message);
  }

  webSocketClose(socket, code, reason, wasClean) {
    return this.real.webSocketClose(socket, code, reason, wasClean);
  }

  webSocketError(socket, error) {
    return this.real.webSocketError(socket, error);
  }

  #answer(pathname, input) {
    switch (pathname) {
      case "/__harness/sql":
        return this.ctx.storage.sql.exec(input.query, ...input.params).toArray();
      case "/__harness/sql-cost": {
        const cursor = this.ctx.storage.sql.exec(input.query, ...input.params);
        cursor.toArray();
        return { read: cursor.rowsRead, written: cursor.rowsWritten };
      }
      case "/__harness/incarnation":
        return this.#incarnation;
      case "/__harness/abort":
        return this.ctx.abort("aborted by a test");
      default:
        throw new Error(`the harness has no ${pathname}`);
    }
  }
}
