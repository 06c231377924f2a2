// The Worker as the runtime sees it: three classes in front of the compiled module.
//
// A crash in Rust (a panic, a stack overflow) corrupts the memory of the module's instance. The
// next call gets a new instance, in which each object creates its Rust part again. Storage is not
// affected: an unfinished write was rolled back, as after any failure.
//
// A Worker that binds these classes can call all of their methods. So they only have `call`, `request`
// and the platform's handlers; the object also has a method for each operation, and those that npm
// `agents` calls first. The exports of Rust are in private fields.
//
// esbuild bundles this file with the output of bindgen: see worker.mjs.

import { DurableObject, WorkerEntrypoint } from "cloudflare:workers";
import * as rust from "../../build/stage/index.js";
import { OPERATIONS } from "../../build/stage/operations.js";
import { isCounting } from "../../packages/session-agent/src/worker/counter.ts";
import { rightsText } from "../../packages/session-agent/src/rights.ts";
import { challenge, concernsIssuer, describe, rightsOfToken } from "../../packages/session-agent/src/worker/oauth.ts";
import { opensStream, streamOf } from "../../packages/session-agent/src/worker/mcp_stream.ts";
import { problemOfDate } from "../../packages/session-agent/src/worker/fitting.ts";
import { isPlain, readGiven, usageMessage } from "../../packages/session-agent/src/worker/positional.ts";

/** Why this Worker can't serve requests: its compatibility date is too old. `null`: it can. */
const PROBLEM = problemOfDate();
if (PROBLEM !== null) console.error(`session-agent: ${PROBLEM}`);

const DETAILS = { binding: "compatibility_date", field: "compatibility_date" };

/** The response of a Worker that can't serve requests. */
function refused() {
  const error = { code: "not_configured", message: PROBLEM, details: DETAILS };
  return Response.json({ error }, { status: 501 });
}

/**
 * The `worker` crate stores `instanceId` here and increments it for each instance of the module.
 */
const module = rust.__worker_init_state();

/** The `instanceId` of the last instance that crashed. */
let crashed = null;

function noteCrash(error) {
  crashed = module.instanceId;
  console.error("Critical", error);
}

// A crash in the middle of a request happens in a callback of the runtime, and only the runtime can
// catch it.
addEventListener("error", ({ error }) => {
  if (error instanceof WebAssembly.RuntimeError) noteCrash(error);
});

/**
 * Enters Rust. Every exported function is async and returns its errors as a rejected promise, so
 * any exception is a crash.
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

/**
 * Enters Rust for a request. Rust calls a class's token counter synchronously, and the counter may
 * send a request to its own object. Such a request enters after the counter returns.
 */
function enterFree(work) {
  return isCounting() ? Promise.resolve().then(() => enter(work)) : enter(work);
}

/**
 * The result of a call, as data: `{ ok: true, value }`, or `{ ok: false, error, status }`. A Worker
 * in between may forward an exception's message but lose its code.
 */
async function asData(calling) {
  try {
    return { ok: true, value: await calling };
  } catch (error) {
    const { code, message, details, status } = error;
    // A crash does not count as a refusal: its effects are unknown.
    if (typeof code !== "string") throw error;
    return { ok: false, error: { code, message, details }, status };
  }
}

/** The JSON of the input that an operation's method received. */
function textOf(operation, input) {
  if (input === undefined) return "{}";
  // A restriction that JSON drops would grant more.
  if (operation === "mintToken") return rightsText(input, "input");
  try {
    if (isPlain(input)) return JSON.stringify(input);
  } catch {
    // The input has no JSON form.
  }
  const fields = { code: "invalid_request", details: { field: "input" }, status: 400 };
  throw Object.assign(new Error(usageMessage(operation, OPERATIONS[operation] ?? [])), fields);
}

/** The longest body that is read before Rust is entered. No budget counts such a body. */
const SHORT_BYTES = 16 << 10;

/** The least cost of a body in addition to its bytes. */
const BODY_OVERHEAD_BYTES = 1 << 10;

/**
 * The maximum number of bytes that one object reads of short bodies at the same time. Rust reads
 * and counts the bodies beyond it.
 */
const MAX_ARRIVING_BYTES = 8 << 20;

/** The deadline for a body, as `MAX_READING_MS` in edge/http.rs. */
const MAX_READING_MS = 60_000;

/** How often pending bodies are checked. */
const CHECK_MS = 1_000;

/** The short bodies that one object reads. */
class Arrivals {
  /** The functions that abandon each pending body, oldest first, with the body's deadline. */
  #deadlines = new Map();
  #bytes = 0;
  #timer = null;

  /**
   * Reads a short body if its length is announced; otherwise returns `undefined`, and Rust reads
   * it. The runtime reads to the body's end. A client can't send more than it announces. A Worker
   * that binds this one can; it can send as much to `call`, too. Rust checks the received bytes
   * against the operation's limit.
   */
  read(request) {
    const length = Number(request.headers.get("content-length"));
    const reserved = length + BODY_OVERHEAD_BYTES;
    if (!(length > 0 && length <= SHORT_BYTES && this.#bytes + reserved <= MAX_ARRIVING_BYTES)) return undefined;
    this.#bytes += reserved;
    this.#timer ??= setTimeout(() => this.#check(), CHECK_MS);
    return new Promise((resolve) => {
      this.#deadlines.set(resolve, Date.now() + MAX_READING_MS);
      const end = (bytes) => {
        this.#bytes -= reserved;
        this.#deadlines.delete(resolve);
        if (this.#deadlines.size === 0) this.#rest();
        resolve(bytes);
      };
      request.arrayBuffer().then(
        // If the body did not arrive, Rust finds its stream locked and reports the error.
        (whole) => end(whole.byteLength < length ? undefined : new Uint8Array(whole)),
        () => end(undefined),
      );
    });
  }

  /**
   * Abandons the bodies that are late, and checks again while others are pending. One timer serves
   * all bodies. A late body's bytes are counted until the runtime has released them.
   */
  #check() {
    this.#timer = null;
    const now = Date.now();
    for (const [giveUp, deadline] of this.#deadlines) {
      if (deadline > now) break;
      this.#deadlines.delete(giveUp);
      giveUp(undefined);
    }
    if (this.#deadlines.size > 0) this.#timer = setTimeout(() => this.#check(), CHECK_MS);
  }

  /** A timer would keep an idle object awake, and awake time is billed. */
  #rest() {
    clearTimeout(this.#timer);
    this.#timer = null;
  }
}

class Entrypoint extends WorkerEntrypoint {
  fetch(request) {
    if (opensStream(request)) return streamOf(request, async (incoming) => await this.#fetch(incoming));
    return this.#fetch(request);
  }

  #fetch(request) {
    if (concernsIssuer(request, this.env)) return this.#fetchForIssuer(request);
    return enter(() => rust.fetch(request, this.env, this.ctx, false));
  }

  /** The object checks the token again, because it can also be reached without this Worker. */
  async #fetchForIssuer(request) {
    const description = describe(request, this.env);
    if (description !== null) return description;
    const isGranted = (await rightsOfToken(request, this.env)) !== undefined;
    return challenge(request, this.env, await enter(() => rust.fetch(request, this.env, this.ctx, isGranted)));
  }

  call(agent, operation, json, options) {
    return enter(() => rust.call(agent, operation, json, options, this.env, false));
  }

  async request(agent, operation, json, options) {
    const answer = await asData(enter(() => rust.call(agent, operation, json, options, this.env, true)));
    // The object has already answered with data.
    return answer.ok ? answer.value : answer;
  }
}

/** With an older date, the runtime accepts no class here. */
export default PROBLEM === null ? Entrypoint : { fetch: refused };

export class SessionAgent extends DurableObject {
  #object;
  #instanceId;
  #seen;
  /** The number of calls into Rust, the constructor included. */
  #entries = 0;
  #arrivals = new Arrivals();

  /** `seen`: the bindings as Rust sees them, with those that a subclass adds. */
  constructor(ctx, env, seen = env) {
    super(ctx, env);
    this.#seen = seen;
    enter(() => this.#current());
  }

  /**
   * For subclasses: a request with the rights that the class grants, and the class's own calls. A
   * static method is not a method of the object, so no other Worker can call it.
   */
  static inside = {
    fetch: (object, request, granted) => object.#fetch(request, granted),
    call: (object, operation, json) => enterFree(() => object.#current().call(operation, json, undefined, true)),
    // Only for reads. `undefined` during a call of the token counter, or if the read would have to
    // wait.
    callNow: (object, operation, json) =>
      isCounting() ? undefined : enter(() => object.#current().callNow(operation, json)),
    textOf,
    // The class's settings are now complete. A Rust half that has already answered did so without some of them.
    renew: (object) => {
      if (object.#entries <= 1) return;
      object.#ifCurrent((half) => half.stopCaching());
      object.#instanceId = undefined;
    },
    // The class has written, or a transaction of the class has ended. If it was rolled back, so were
    // its operations.
    forgetReads: (object, mayBeRolledBack) => object.#ifCurrent((half) => half.forgetReads(mayBeRolledBack)),
  };

  /** The object's Rust half, in the current instance. */
  #current() {
    // bindgen checks before each call whether the instance has crashed, and starts another one. The
    // check must come before an object's address is read.
    rust.__worker_init_state();
    this.#entries += 1;
    if (this.#instanceId !== module.instanceId) {
      this.#object = new rust.SessionAgent(this.ctx, this.#seen);
      this.#instanceId = module.instanceId;
    }
    return this.#object;
  }

  /** Runs `work` with the Rust half if its instance is still the current one. */
  #ifCurrent(work) {
    if (this.#object !== undefined && this.#instanceId === module.instanceId) work(this.#object);
  }

  fetch(request) {
    return this.#fetch(request);
  }

  #fetch(request, granted) {
    if (PROBLEM !== null) return refused();
    // The class's own rules have already decided.
    if (granted === undefined && concernsIssuer(request, this.env)) return this.#fetchForIssuer(request);
    return this.#fetchAs(request, granted);
  }

  async #fetchForIssuer(request) {
    const granted = await rightsOfToken(request, this.env);
    return challenge(request, this.env, await this.#fetchAs(request, granted));
  }

  #fetchAs(request, granted) {
    const reading = this.#arrivals.read(request);
    if (reading === undefined) return enterFree(() => this.#current().fetch(request, undefined, granted));
    return reading.then((body) => enter(() => this.#current().fetch(request, body, granted)));
  }

  call(operation, json, options) {
    return enterFree(() => this.#current().call(operation, json, options));
  }

  async request(operation, json, options) {
    return await asData(this.call(operation, json, options));
  }

  /** `getAgentByName` of npm `agents` calls this, or `setName`. There is nothing to do. */
  async __unsafe_ensureInitialized() {}

  async setName() {}

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

/** A shard of the directory of agents. Other Workers can only call `fetch`. */
export class AgentDirectory extends DurableObject {
  #part;
  #instanceId;

  /** The Rust half, in the current instance. */
  #current() {
    rust.__worker_init_state();
    if (this.#instanceId !== module.instanceId) {
      this.#part = new rust.AgentDirectory(this.ctx, this.env);
      this.#instanceId = module.instanceId;
    }
    return this.#part;
  }

  fetch(request) {
    return enter(() => this.#current().fetch(request));
  }

  alarm() {
    return enter(() => this.#current().alarm());
  }
}

// Every operation is a method of the object, with plain values as input and output.
for (const operation of Object.keys(OPERATIONS)) {
  Object.defineProperty(SessionAgent.prototype, operation, {
    async value(...given) {
      const { input, options, wantsId } = readGiven(operation, given);
      const answer = JSON.parse(await this.call(operation, textOf(operation, input), options[0]));
      return wantsId ? answer.id : answer;
    },
    configurable: true,
    writable: true,
  });
}
