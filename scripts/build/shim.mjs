// What the runtime sees of the Worker: two classes in front of the compiled module.
//
// A crash in Rust (a panic, an overflow of the stack) leaves memory behind that
// nobody may use again. The next call gets a fresh instance of the module, and
// each object makes its Rust half anew in that instance. Storage is not touched:
// a write that was not finished was rolled back, as after any failure.
//
// esbuild bundles this file with what bindgen wrote: see worker.mjs.

import { WorkerEntrypoint } from "cloudflare:workers";
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
 * A call into Rust. Every exported function is async and gives its errors as a
 * rejected promise, so whatever is thrown is a crash.
 */
function call(work) {
  try {
    if (crashed === module.instanceId) rust.__wbg_reset_state();
    return work();
  } catch (error) {
    noteCrash(error);
    throw error;
  }
}

export default class Entrypoint extends WorkerEntrypoint {
  fetch(request) {
    return call(() => rust.fetch(request, this.env, this.ctx));
  }

  /** Rust's own start, which each instance has behind it. */
  start() {
    return call(rust.start);
  }
}

export class SessionAgent {
  #given;
  #object;
  #instanceId;

  constructor(...given) {
    this.#given = given;
    call(() => this.#current());
  }

  /** The Rust half of this object, in the instance that runs now. */
  #current() {
    // bindgen looks before each call whether the instance has crashed, and starts
    // another. It has to look before an object's address is read, not after.
    rust.__worker_init_state();
    if (this.#instanceId !== module.instanceId) {
      this.#object = new rust.SessionAgent(...this.#given);
      this.#instanceId = module.instanceId;
    }
    return this.#object;
  }

  static {
    // Whatever Rust handles (requests, alarms, sockets), without a list to keep.
    for (const name of Object.getOwnPropertyNames(rust.SessionAgent.prototype)) {
      if (name === "constructor" || name === "free" || name.startsWith("__")) continue;
      this.prototype[name] = function (...args) {
        return call(() => this.#current()[name](...args));
      };
    }
  }
}
