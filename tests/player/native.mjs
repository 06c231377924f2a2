// The agents of `tests/native/player.rs`: operations without a runtime, thousands per second. A
// statement of a write can be made to fail, and an object to crash during a turn.

import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { envOfTests } from "../../scripts/test/native.mjs";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const MARK = "@player@";

/**
 * Builds the native tests of the operations and starts them as a server of the player. No
 * `--package`: with it, crates have other features than in `cargo test`, and are compiled again.
 */
export async function startNative() {
  const { stdout } = await promisify(execFile)(
    "cargo",
    ["test", "--locked", "--test", "api", "--no-run", "--message-format=json"],
    {
      cwd: ROOT,
      env: envOfTests(),
      maxBuffer: 1 << 28,
    },
  );
  const built = stdout
    .split("\n")
    .filter((line) => line.startsWith("{"))
    .map((line) => JSON.parse(line))
    .find(
      ({ reason, executable, profile, target }) =>
        reason === "compiler-artifact" && executable && profile.test && target.name === "api",
    );
  return new Native(built.executable);
}

class Native {
  name = "native";
  /** This driver can fail statements and set the clock, but not kill the process or count rows. */
  can = { fault: true, clock: true, kill: false, rows: false };
  #executable;
  #process;
  #lines;
  #errors = "";
  #line = Promise.resolve();
  /** The answers of the turns' model, set by the player. */
  reply = () => ({ silent: true });

  constructor(executable) {
    this.#executable = executable;
  }

  agentName() {
    return "alice";
  }

  async start() {
    const child = spawn(this.#executable, ["--exact", "player::the_random_player_is_served", "--nocapture"], {
      env: { ...process.env, PLAYER: "1", RUST_BACKTRACE: "0" },
      stdio: ["pipe", "pipe", "pipe"],
    });
    this.#process = child;
    this.#errors = "";
    child.stderr.on("data", (data) => (this.#errors = (this.#errors + data).slice(-4_000)));
    child.stdin.on("error", () => {});
    this.#lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    await this.#receive();
  }

  async #receive() {
    for (;;) {
      const { value, done } = await this.#lines.next();
      if (done) throw new Error(`the native agents ended: ${this.#errors}`);
      const at = value.indexOf(MARK);
      if (at >= 0) return JSON.parse(value.slice(at + MARK.length));
    }
  }

  #send(line) {
    this.#process.stdin.write(`${JSON.stringify(line)}\n`);
  }

  /** Sends one request at a time: the agents answer in the order of the requests. */
  #ask(line) {
    const answer = this.#line.then(() => this.#askNext(line));
    this.#line = answer.catch(() => {});
    return answer;
  }

  async #askNext(line) {
    this.#send(line);
    for (;;) {
      const reply = await this.#receive();
      if (reply.ask === undefined) return reply;
      this.#send(this.#replyTo(reply.ask));
    }
  }

  /** The agents wait for a reply in any case. */
  #replyTo(request) {
    try {
      return this.reply(request);
    } catch (error) {
      console.error(error);
      return { silent: true };
    }
  }

  /** Three empty agents. */
  async reset() {
    if (this.#process === undefined || this.#process.exitCode !== null || this.#process.signalCode !== null)
      await this.start();
    await this.#ask({ reset: true });
  }

  /** Status 0: the object crashed before it answered. */
  async request(agent, operation, body, { fault } = {}) {
    return answerOf(await this.#ask({ agent, operation, body, fault }));
  }

  async exportSession(agent, sessionId) {
    return answerOf(await this.#ask({ agent, export: sessionId }));
  }

  async importSession(agent, sessionId, file, { fault, piece } = {}) {
    return answerOf(await this.#ask({ agent, import: sessionId, file, fault, piece }));
  }

  async evict(agent) {
    await this.#ask({ agent, evict: true });
  }

  async advance(ms) {
    await this.#ask({ advance: ms });
  }

  async stop() {
    if (this.#process === undefined || this.#process.exitCode !== null) return;
    const exited = once(this.#process, "exit");
    this.#process.stdin.end();
    await exited;
  }
}

function answerOf({ status, body, failed }) {
  // A failed statement after the answer does not change the answer.
  return { status, body: status >= 400 ? { error: body } : body, failed };
}
