// How long one request delays the other requests of the same agent: searches of prefixes in 40,000
// messages, purges, and the sizes of an agent with 10,000 sessions.
//
//   npm run bench -- waits                      all of it
//   PARTS=search,purge,sessions npm run …       some of it

import assert from "node:assert/strict";
import { setTimeout as wait } from "node:timers/promises";
import { startServer } from "../tests/workerd/harness.mjs";

const PARTS = (process.env.PARTS ?? "search,purge,sessions").split(",");
const MESSAGES = Number(process.env.MESSAGES ?? 40_000);
const SESSIONS = Number(process.env.SESSIONS ?? 10_000);
const SECRET = "a secret for measurements, long enough";
const owner = { headers: { authorization: `Bearer ${SECRET}` } };

const server = await startServer({ vars: { SESSION_AGENT_TOKEN: SECRET } });
const print = (line) => console.log(line);

async function ok(agent, operation, input, as = owner) {
  const began = performance.now();
  const { status, body, ...costs } = await server.call(agent, operation, input, as);
  assert.equal(status, 200, `${operation}: ${JSON.stringify(body).slice(0, 300)}`);
  return { ...costs, body, ms: performance.now() - began };
}

const round = (ms) => `${Math.round(ms)} ms`;
const median = (numbers) => numbers.toSorted((one, other) => one - other)[numbers.length >> 1];

/** The longest time that another caller waits while something runs. */
async function longestWait(agent, run) {
  let longest = 0;
  let isOver = false;
  const asking = (async () => {
    while (!isOver) longest = Math.max(longest, (await ok(agent, "getSession", { sessionId: "other" })).ms);
  })();
  const began = performance.now();
  await run();
  isOver = true;
  await asking;
  return [longest, performance.now() - began];
}

const PARTS_BY_NAME = {
  async search() {
    const agent = "prefixes";
    for (const id of ["mine", "other"]) await ok(agent, "createSession", { id });
    const letter = () => String.fromCharCode(97 + Math.floor(Math.random() * 26));
    const words = () =>
      Array.from(
        { length: 13 },
        (_, n) => `${String.fromCharCode(97 + n)}${letter()}${Math.floor(Math.random() * 100)}`,
      );
    for (const sessionId of ["mine", "other"]) {
      for (let n = 0; n < MESSAGES; n += 1_000) {
        const events = Array.from({ length: 1_000 }, () => ({
          action: "user_message",
          content: `${words().join(" ")} always ${sessionId === "other" ? "hidden" : "shown"}`,
        }));
        await ok(agent, "appendEvents", { sessionId, events });
      }
    }
    const { token } = (await ok(agent, "mintToken", { preset: "chat", sessionId: "mine", expiresIn: 3_600 })).body;
    const chat = { headers: { authorization: `Bearer ${token}` } };
    // The first search starts building the index, and the alarm continues.
    while ((await ok(agent, "search", { query: "always" })).body.pending) await wait(200);
    const queries = {
      "26 one-letter prefixes": "abcdefghijklmnopqrstuvwxyz".replaceAll(/./g, "$&* "),
      "1.3 KB of prefixes": "abcdefghijklm".replaceAll(/./g, (first) =>
        "abcdefghijklmnopqrstuvwxyz".replaceAll(/./g, `${first}$&* `),
      ),
      "a phrase of common words": '"always shown"',
      "eight queries of common words": Array.from({ length: 8 }, () => "always shown"),
    };
    for (const [name, query] of Object.entries(queries)) {
      for (const [who, as] of [
        ["narrowed", chat],
        ["whole agent", owner],
      ]) {
        const input = { ...(Array.isArray(query) ? { queries: query } : { query }), limit: 50 };
        let found;
        const before = await server.processorMs();
        await server.call(agent, "search", input, as);
        const cpu = (await server.processorMs()) - before;
        const [waited, took] = await longestWait(agent, async () => {
          found = await server.call(agent, "search", input, as);
        });
        print(
          `| ${name}, ${who} | ${found.status}${found.body.truncated ? ", truncated" : ""} | ${round(cpu)} | ${round(took)} | ${round(waited)} |`,
        );
      }
    }
    const timeOf = async (query) => {
      const times = [];
      for (let n = 0; n < 21; n += 1) times.push((await ok(agent, "search", { query }, chat)).ms);
      return median(times).toFixed(1);
    };
    print(
      `A narrowed caller's search: a word that only another session holds ${await timeOf("hidden")} ms, one that nobody holds ${await timeOf("nobody")} ms.`,
    );
  },

  async purge() {
    const agent = "purges";
    for (const id of ["s", "other"]) await ok(agent, "createSession", { id });
    for (let n = 0; n < 20_000; n += 500) {
      await ok(agent, "appendEvents", {
        sessionId: n % 1_000 === 0 ? "s" : "other",
        events: Array.from({ length: 500 }, (_, k) => ({
          id: `e${n + k}`,
          action: "user_message",
          content: `event ${n + k} ${"and so on ".repeat(30)}`,
        })),
      });
    }
    const bytes = (await ok(agent, "getStats", {})).body.databaseBytes;
    const purge = (n) => ok(agent, "deleteEvents", { sessionId: "s", eventIds: [`e${n}`], purge: true });
    for (const n of [1, 2, 3]) {
      const before = await server.writtenBytes();
      let one;
      const [waited, took] = await longestWait(agent, async () => {
        one = await purge(n);
      });
      print(
        `| purge ${n} of an event, in a file of ${(bytes / 2 ** 20).toFixed(1)} MiB | ${one.rowsWritten} rows | ${round(took)} | ${round(waited)} | ${(((await server.writtenBytes()) - before) / 2 ** 20).toFixed(1)} MiB |`,
      );
    }
    const before = await server.writtenBytes();
    let rows = 0;
    const [waited, took] = await longestWait(agent, async () => {
      const all = await Promise.all(Array.from({ length: 20 }, (_, n) => purge(100 + n)));
      rows = all.reduce((sum, one) => sum + one.rowsWritten, 0);
    });
    print(
      `| 20 purges at once | ${rows} rows | ${round(took)} | ${round(waited)} | ${(((await server.writtenBytes()) - before) / 2 ** 20).toFixed(1)} MiB |`,
    );
  },

  async sessions() {
    const agent = "many";
    for (let n = 0; n < SESSIONS; n += 50) {
      await Promise.all(
        Array.from({ length: 50 }, async (_, k) => {
          await ok(agent, "createSession", { id: `s${n + k}` });
          await ok(agent, "appendEvents", {
            sessionId: `s${n + k}`,
            events: [
              { action: "user_message", content: `of ${n + k}` },
              { action: "agent_message", content: "yes" },
            ],
          });
        }),
      );
    }
    const list = await ok(agent, "listSessions", { limit: 50 });
    print(`| listSessions, first page | ${list.rowsRead} rows | ${round(list.ms)} |`);
    const turns = await ok(agent, "getTurns", { limit: 50 });
    print(`| getTurns, first page | ${turns.rowsRead} rows | ${round(turns.ms)} |`);
    const path = `/agents/session-agent/${agent}/export`;
    let began = performance.now();
    const response = await server.fetch(path, owner);
    assert.equal(response.status, 200);
    const file = Buffer.from(await response.arrayBuffer());
    const exported = performance.now() - began;
    print(
      `| export | ${(file.length / 2 ** 20).toFixed(1)} MiB | ${round(exported)}, ${(exported / SESSIONS).toFixed(2)} ms a session |`,
    );
    began = performance.now();
    let requests = 0;
    const importPath = "/agents/session-agent/copy/import";
    const answer = await server.fetch(importPath, { method: "POST", headers: owner.headers, body: file });
    requests += 1;
    const text = await answer.text();
    const imported = performance.now() - began;
    print(
      `| import, ${requests} request | ${answer.status} | ${round(imported)}, ${(imported / SESSIONS).toFixed(2)} ms a session |`,
    );
    console.log(text.slice(0, 300));
  },
};

for (const part of PARTS) {
  await PARTS_BY_NAME[part]();
}
await server.stop();
