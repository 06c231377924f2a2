// What the runtime sees of the Worker: two classes in front of the compiled module.
//
// A crash in Rust (a panic, an overflow of the stack) leaves memory behind that
// nobody may use again. The next call gets a fresh instance of the module, and
// each object makes its Rust half anew in that instance. Storage is not touched:
// a write that was not finished was rolled back, as after any failure.
//
// A Worker that binds these classes may call every method of theirs. So they have
// `call` and the handlers of the platform, and no other method. What Rust exports
// stays in private fields.
//
// esbuild bundles this file with what bindgen wrote: see worker.mjs.

import { DurableObject, WorkerEntrypoint } from "cloudflare:workers";
import * as rust from "../../build/stage/index.js";

/** The `worker` crate keeps `instanceId` here: each instance of the module counts it up. */
const module = rust.__worker_init_state();

/** The `instanceId` of the last instance that crashed. */
let crashed = null;

function noteCrash(error) {
  crashed = module.instanceId;
  console.error("Critical", error);
}

// A crash in the middle of a request happens in a callback of the runtime, and
// nobody but the runtime is there to catch it.
addEventListener("error", ({ error }) => {
  if (error instanceof WebAssembly.RuntimeError) noteCrash(error);
});

/**
 * Enters Rust. Every exported function is async and gives its errors as a rejected
 * promise, so whatever is thrown is a crash.
 */
function enter(work) {
  try {
    if (crashed === module.instanceId) rust.__wbg_reset_state();
    return work();
  } catch (error) {
    noteCrash(error);
    throw error;
  }
}

/** The longest body that is read before Rust is entered. No budget counts such a body. */
const SHORT_BYTES = 16 << 10;

/**
 * A short body, if its length is announced; else `undefined`, and Rust reads it. What is
 * beyond the announced length is ignored.
 */
function readShort({ headers, body }) {
  const length = body ? Number(headers.get("content-length")) : 0;
  if (!(length > 0 && length <= SHORT_BYTES)) return undefined;
  const whole = ({ value }) => (value?.length === length ? value : undefined);
  const reading = body.getReader({ mode: "byob" }).readAtLeast(length, new Uint8Array(length));
  // Of a body that broke off, Rust finds the stream taken, and says so.
  return reading.then(whole, () => undefined);
}

export default class Entrypoint extends WorkerEntrypoint {
  fetch(request) {
    return enter(() => rust.fetch(request, this.env, this.ctx));
  }

  call(agent, operation, json, options) {
    return enter(() => rust.call(agent, operation, json, options, this.env));
  }
}

export class SessionAgent extends DurableObject {
  #object;
  #instanceId;

  constructor(ctx, env) {
    super(ctx, env);
    enter(() => this.#current());
  }

  /** The Rust half of this object, in the instance that runs now. */
  #current() {
    // bindgen looks before each call whether the instance has crashed, and starts
    // another. It has to look before an object's address is read, not after.
    rust.__worker_init_state();
    if (this.#instanceId !== module.instanceId) {
      this.#object = new rust.SessionAgent(this.ctx, this.env);
      this.#instanceId = module.instanceId;
    }
    return this.#object;
  }

  fetch(request) {
    const reading = readShort(request);
    if (reading === undefined) return enter(() => this.#current().fetch(request));
    return reading.then((body) => enter(() => this.#current().fetch(request, body)));
  }

  call(operation, json, options) {
    return enter(() => this.#current().call(operation, json, options));
  }

  alarm() {
    return enter(() => this.#current().alarm());
  }

  webSocketMessage(socket, message) {
    return enter(() => this.#current().webSocketMessage(socket, message));
  }

  webSocketClose(socket) {
    return enter(() => this.#current().webSocketClose(socket));
  }

  webSocketError(socket) {
    return enter(() => this.#current().webSocketError(socket));
  }
}
