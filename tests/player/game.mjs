// One game: moves on three agents, compared with a model of the contract.
//
// Each move takes its numbers from its own seed and its choices from the model's state at that
// time, so a game remains valid when moves are removed, and a failing game can be shrunk.

import { setTimeout as pause } from "node:timers/promises";
import { differ, observe, show } from "./compare.mjs";
import { Dice } from "./dice.mjs";
import { AgentModel } from "./model.mjs";
import { SHAPES, unpaired } from "./pairs.mjs";

export const AGENTS = 3;

/** How many of the last requests a failure prints. */
const TRACED_REQUESTS = 400;

const PATIENCE_MS = 60_000;

/** The agents' answer violates the contract. */
export class Broken extends Error {}

export class Game {
  agents = Array.from({ length: AGENTS }, () => new AgentModel());
  followers = new Map();
  requests = 0;
  faults = 0;
  settled = { whole: 0, absent: 0 };
  trace = [];
  #named = 0;
  #badInput = null;

  constructor(driver) {
    this.driver = driver;
    driver.reply = (request) => (driver.can.kill ? this.#replyAfterAction(request) : this.#reply(request));
  }

  fail(message) {
    throw new Broken(message);
  }

  hold(condition, message) {
    if (!condition) this.fail(typeof message === "function" ? message() : message);
  }

  /** A word that nothing else in this game contains. */
  word() {
    this.#named += 1;
    return `w${this.#named.toString(36)}q`;
  }

  #recordRequest(agent, operation, body, answer) {
    this.requests += 1;
    this.trace.push({
      agent: this.driver.agentName(agent),
      operation,
      body,
      status: answer.status,
      answer: answer.body,
    });
    if (this.trace.length > 2 * TRACED_REQUESTS) this.trace.splice(0, TRACED_REQUESTS);
    const wrong = this.#badInput;
    this.#badInput = null;
    if (wrong !== null) this.fail(wrong);
  }

  async #send(agent, operation, body, options) {
    const answer = await this.driver.request(agent, operation, body, options);
    this.#recordRequest(agent, operation, body, answer);
    return answer;
  }

  /** Returns the answer of a read operation, which must succeed. */
  async read(agent, operation, body) {
    let answer = await this.look(agent, operation, body);
    // A page whose texts are too long reports how many of them fit.
    const fits = answer.status === 413 && answer.body.error.details.limitThatFits;
    if (fits && body.limit > fits) answer = await this.look(agent, operation, { ...body, limit: fits });
    this.hold(answer.status === 200, () => `${operation} ${show(body)} answers ${answer.status} ${show(answer.body)}`);
    return answer.body;
  }

  /**
   * Returns the answer of a read operation, which may be any error except a failure of the agent.
   */
  async look(agent, operation, body) {
    for (let tries = 0; ; tries += 1) {
      const answer = await this.#send(agent, operation, body);
      // The runtime was killed.
      if (answer.status === 0 && tries < 10) continue;
      this.hold(
        answer.status > 0 && answer.status < 500,
        () => `${operation} ${show(body)} answers ${answer.status} ${show(answer.body)}`,
      );
      return answer;
    }
  }

  /**
   * A write. `apply(model, answer)` does the same to the model; the answer is `null` if it was
   * lost. `refused`: the codes with which it must be refused instead. Returns the answer, or `null`
   * if the write was interrupted or refused.
   */
  async write(agent, operation, body, apply, { refused, dice, rows } = {}) {
    const fault = this.driver.can.fault && dice?.one(10) ? dice.roll(dice.one(3) ? 40 : 8) : undefined;
    return await this.take(agent, operation, body, apply, await this.#send(agent, operation, body, { fault }), {
      refused,
      rows,
      fault,
    });
  }

  /** Checks a write's answer against the model. */
  async take(agent, operation, body, apply, answer, { refused, rows, fault } = {}) {
    const { status } = answer;
    if (status === 0 || (fault !== undefined && answer.failed && status >= 500)) {
      this.faults += 1;
      await this.settle(agent, `${operation} ${show(body)}`, refused === undefined ? apply : undefined);
      return null;
    }
    if (refused !== undefined) {
      this.hold(
        status >= 400 && status < 500 && refused.includes(answer.body.error?.code),
        () => `${operation} ${show(body)} answers ${status} ${show(answer.body)}, not ${refused.join(" or ")}`,
      );
      return null;
    }
    this.hold(status === 200, () => `${operation} ${show(body)} answers ${status} ${show(answer.body)}`);
    if (rows !== undefined && this.driver.can.rows) {
      this.hold(
        answer.rowsWritten <= rows.written,
        () => `${operation} ${show(body)} writes ${answer.rowsWritten} rows, not ${rows.written}`,
      );
      if (rows.read !== undefined)
        this.hold(
          answer.rowsRead <= rows.read,
          () => `${operation} ${show(body)} reads ${answer.rowsRead} rows, not ${rows.read}`,
        );
    }
    apply(this.agents[agent], answer.body);
    return answer.body;
  }

  /** An interrupted write is either complete or absent. */
  async settle(agent, what, apply) {
    const observed = await observe((operation, body) => this.read(agent, operation, body));
    const unchanged = differ(this.agents[agent].clone(), observed);
    if (unchanged === null) {
      this.settled.absent += 1;
      return "absent";
    }
    this.hold(apply !== undefined, () => `${what} should have changed nothing: ${unchanged}`);
    const after = this.agents[agent].clone();
    apply(after, null);
    const wrong = differ(after, observed);
    this.hold(
      wrong === null,
      () => `${what} was interrupted and is neither absent (${unchanged}) nor whole (${wrong})`,
    );
    this.agents[agent] = after;
    this.settled.whole += 1;
    return "whole";
  }

  /** Compares everything that an agent has stored with its model. */
  async audit(agent) {
    const observed = await observe((operation, body) => this.read(agent, operation, body));
    const wrong = differ(this.agents[agent], observed);
    this.hold(wrong === null, () => `after an audit: ${wrong}`);
    for (let cursor = null; ; ) {
      const page = await this.read(agent, "verify", { ...(cursor && { cursor }) });
      this.hold(page.findings.length === 0, () => `verify finds ${show(page.findings)}`);
      cursor = page.cursor;
      if (cursor === null) break;
    }
    for (const session of observed.sessions) {
      const known = this.agents[agent].find(session.id);
      this.hold(
        session.updatedAt >= known.updatedAt,
        () => `updatedAt of ${session.id} fell from ${known.updatedAt} to ${session.updatedAt}`,
      );
      known.updatedAt = session.updatedAt;
    }
    for (const [at, session] of observed.sessions.entries()) {
      const before = observed.sessions[at - 1];
      this.hold(
        before === undefined || before.updatedAt >= session.updatedAt,
        () => `listSessions shows ${before.id} before ${session.id}, whose activity is newer`,
      );
    }
  }

  async exported(agent, sessionId) {
    for (;;) {
      const answer = await this.driver.exportSession(agent, sessionId);
      this.#recordRequest(agent, "export", sessionId, { ...answer, body: show(answer.body) });
      if (answer.status === 0 || (answer.status === 200 && !answer.body.includes('\n{"type":"end"'))) {
        this.hold(this.driver.can.kill, () => `an export ends early: ${show(answer.body.slice(-200))}`);
        continue;
      }
      return answer;
    }
  }

  async imported(agent, sessionId, file, options) {
    const answer = await this.driver.importSession(agent, sessionId, file, options);
    this.#recordRequest(agent, "import", { sessionId, file: show(file) }, answer);
    return answer;
  }

  /** Runs a turn, and repeats the request until it is answered. */
  async turn(agent, body) {
    const until = Date.now() + PATIENCE_MS;
    for (let times = 1; ; times += 1) {
      const answer = await this.#send(agent, "runTurn", body);
      const isRunning = answer.status === 0 || answer.body?.error?.code === "turn_in_progress";
      if (!isRunning) return { ...answer, times };
      this.hold(Date.now() < until, () => `the turn ${show(body)} never ends: ${show(answer.body)}`);
      if (answer.status !== 0) await pause(20);
    }
  }

  /** Actions during the model call of a turn's step, by the turn's word and the step. */
  actions = new Map();

  async #replyAfterAction(request) {
    const key = stepOf(request);
    const act = this.actions.get(key);
    this.actions.delete(key);
    try {
      await act?.();
    } catch (error) {
      this.#badInput ??= error.message;
    }
    return this.#reply(request);
  }

  /**
   * The scripted model, a function of its input: the newest user text specifies how many steps with
   * how many calls precede the answer.
   */
  #reply(request) {
    const wrong = unpaired(request.messages, SHAPES.openai);
    if (wrong !== null) this.#badInput = `a model was called with ${wrong}: ${show(request.messages)}`;
    const { crashesAt, steps, calls, word, done } = instructionsOf(request);
    const key = `${word} ${done}`;
    if (crashesAt !== undefined && Number(crashesAt) === done && !this.crashed.has(key) && this.driver.can.fault) {
      this.crashed.add(key);
      return { silent: true };
    }
    const usage = { prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 };
    if (request.stream !== true) {
      const message = { role: "assistant", content: "They spoke of words." };
      return {
        json: {
          id: "c",
          object: "chat.completion",
          created: 1,
          model: "test",
          choices: [{ index: 0, message, finish_reason: "stop" }],
          usage,
        },
      };
    }
    const isStep = done < Number(steps);
    const tools = Array.from({ length: Number(calls) }, (_, index) => ({
      index,
      id: `call_${index}`,
      type: "function",
      function: { name: "look_up", arguments: `{"n":${done}}` },
    }));
    const delta = isStep ? { tool_calls: tools } : { content: `Done ${word}.` };
    const chunk = (rest) =>
      `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", created: 1, model: "test", ...rest })}\n\n`;
    return {
      stream: [
        chunk({ choices: [{ index: 0, delta, finish_reason: null }] }),
        chunk({ choices: [{ index: 0, delta: {}, finish_reason: isStep ? "tool_calls" : "stop" }] }),
        chunk({ choices: [], usage }),
        "data: [DONE]\n\n",
      ].join(""),
    };
  }
  crashed = new Set();
}

/**
 * The instructions in the newest user text that has some, and how many steps have been completed
 * since.
 */
function instructionsOf({ messages }) {
  const text = ({ role, content }) => (role === "user" ? JSON.stringify(content) : "");
  const at = messages.findLastIndex((message) => INSTRUCTIONS.test(text(message)));
  const [, steps = 0, calls = 1, word = ""] = at < 0 ? [] : text(messages[at]).match(INSTRUCTIONS);
  const [, crashesAt] = at < 0 ? [] : (text(messages[at]).match(/dies at (\d)/) ?? []);
  const done = messages
    .slice(at + 1)
    .filter(({ role, tool_calls }) => role === "assistant" && tool_calls?.length > 0).length;
  return { crashesAt, steps, calls, word, done };
}

const INSTRUCTIONS = /(\d) steps of (\d) calls (\w+)/;

function stepOf(request) {
  const { word, done } = instructionsOf(request);
  return `${word} ${done}`;
}

/**
 * Plays moves by their seeds; `moves` chooses and creates one. Throws at the first failing move.
 */
export async function play(driver, seeds, { moves, until = () => false, onMove = () => {} }) {
  await driver.reset();
  const game = new Game(driver);
  let played = 0;
  try {
    for (const seed of seeds) {
      if (until()) break;
      const dice = new Dice(seed);
      const move = dice.weighted(moves(driver));
      played += 1;
      game.trace.push({ move: move.name, seed });
      onMove(game, move);
      await move.make(game, dice);
    }
    for (let agent = 0; agent < AGENTS; agent += 1) await game.audit(agent);
  } catch (error) {
    throw Object.assign(error, { game, played });
  }
  return { game, played };
}
