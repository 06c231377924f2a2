// The real object with extra entry points for tests. The real class is composed, not changed.
//
// This class answers the paths under /__harness/ and passes all other events to the class
// that ships. It constructs that class at the first such event, so a test can write
// storage before the object's first line of code runs.

import { DurableObject } from "cloudflare:workers";
import { SessionAgent as Real } from "./index.js";
import { decode, encode } from "./sql_json.mjs";

export { default } from "./index.js";
export * from "./index.js";

export class SessionAgent extends DurableObject {
  #real;
  #incarnation = crypto.randomUUID();
  #meter = null;

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

  call(...given) {
    return this.real.call(...given);
  }

  request(...given) {
    return this.real.request(...given);
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

  /**
   * Counts everything that the object reads and writes from now on, whether or not a request waits
   * for it.
   */
  #startMeter() {
    const { storage } = this.ctx;
    const { sql } = storage;
    const cursors = [];
    // Setting an alarm is billed as one row.
    let alarms = 0;
    delete sql.exec;
    delete storage.setAlarm;
    const [exec, setAlarm] = [sql.exec.bind(sql), storage.setAlarm.bind(storage)];
    sql.exec = (...statement) => {
      cursors.push(exec(...statement));
      return cursors.at(-1);
    };
    storage.setAlarm = (...when) => {
      alarms += 1;
      return setAlarm(...when);
    };
    const sum = (of) => cursors.reduce((total, cursor) => total + cursor[of], 0);
    this.#meter = () => ({ read: sum("rowsRead"), written: sum("rowsWritten") + alarms, alarms });
    return true;
  }

  /**
   * Sends a request that throws when it is read. The exception passes through Rust's
   * frames, and ends the module's instance as a panic does.
   */
  #crash() {
    const request = {
      get method() {
        throw new Error("crashed by a test");
      },
    };
    try {
      this.real.fetch(request).catch(() => {});
    } catch {
      // The exception occurs at once if Rust reads the request at once.
    }
    return true;
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
      case "/__harness/meter":
        return this.#startMeter();
      case "/__harness/metered":
        return this.#meter();
      case "/__harness/crash":
        return this.#crash();
      case "/__harness/abort":
        return this.ctx.abort("aborted by a test");
      default:
        throw new Error(`the harness has no ${pathname}`);
    }
  }
}

// The methods of the operations.
for (const name of Object.getOwnPropertyNames(Real.prototype)) {
  if (name in SessionAgent.prototype) continue;
  SessionAgent.prototype[name] = function (...given) {
    return this.real[name](...given);
  };
}
