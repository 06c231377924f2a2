// `session-agent/adk` with ADK's own runner and a scripted model, compared with ADK's in-memory
// session service. The object is evicted after every write.

import "./resolve_packages.mjs";
import assert from "node:assert/strict";
import { after, test } from "node:test";
import {
  BaseLlm,
  createEvent,
  createEventActions,
  FunctionTool,
  InMemorySessionService,
  LlmAgent,
  LogLevel,
  Runner,
  setLogLevel,
  State,
} from "@google/adk";
import { z } from "zod";
import { games } from "../game_counts.mjs";
import { startEvictingServer } from "./evicting_server.mjs";

const { SessionAgentSessionService } = await import("session-agent/adk");

setLogLevel(LogLevel.ERROR);
const evicting = await startEvictingServer();
after(() => evicting.stop());
const { open } = evicting;

const serviceOf = (name) => new SessionAgentSessionService(open(name));
/** The JSON form of a value. ADK's events have fields that are `undefined`. */
const plain = (value) => (value === undefined ? undefined : JSON.parse(JSON.stringify(value)));

class Scripted extends BaseLlm {
  sent = [];
  #script;
  constructor(...script) {
    super({ model: "scripted" });
    this.#script = script;
  }
  async *generateContentAsync({ contents }) {
    this.sent.push(plain(contents));
    for (const response of this.#script[this.sent.length - 1]) yield response;
  }
}

const model = (...parts) => ({ content: { role: "model", parts } });
const reply = (text) => [model({ text })];
const calls = (...given) => [model(...given.map(([id, name, args]) => ({ functionCall: { id, name, args } })))];
const user = (text) => ({ role: "user", parts: [{ text }] });

const weather = new FunctionTool({
  name: "weather",
  description: "Tells the weather",
  parameters: z.object({ city: z.string() }),
  execute: ({ city }, context) => {
    context.state.set("asked", [...(context.state.get("asked") ?? []), city]);
    context.state.set("app:count", (context.state.get("app:count") ?? 0) + 1);
    context.state.set("user:home", city);
    context.state.set("temp:secret", "never stored");
    return { says: `Rain in ${city}` };
  },
});
const book = new FunctionTool({
  name: "book",
  description: "Books a hotel",
  parameters: z.object({ city: z.string() }),
  requireConfirmation: true,
  execute: ({ city }) => ({ booked: city }),
});

const runnerOf = (sessionService, llm) =>
  new Runner({
    appName: "trips",
    agent: new LlmAgent({ name: "guide", model: llm, instruction: "Home: {user:home?}", tools: [weather, book] }),
    sessionService,
  });

async function run(runner, newMessage, more = {}) {
  const events = [];
  const given = { userId: "ann", sessionId: "1", newMessage, ...more };
  for await (const event of runner.runAsync(given)) events.push(event);
  return events;
}

/** Without the ids and times that each run generates. */
function withoutIds(value) {
  const labels = new Map();
  const text = JSON.stringify(value, (key, inner) => {
    if (key === "timestamp" || key === "lastUpdateTime") return undefined;
    if ((key !== "id" && key !== "invocationId") || typeof inner !== "string") return inner;
    if (!labels.has(inner)) labels.set(inner, `${key} ${labels.size}`);
    return labels.get(inner);
  });
  for (const [id, name] of labels) if (text.includes(id)) return JSON.parse(text.replaceAll(id, name));
  return JSON.parse(text);
}

const key = { appName: "trips", userId: "ann", sessionId: "1" };

test("a_run_stores_the_same_as_adks_own_service", async () => {
  const outcomes = [];
  const memory = new InMemorySessionService();
  for (const service of [() => serviceOf("runner"), () => memory]) {
    await service().createSession({ ...key, state: { topic: "weather", "temp:x": 1 } });
    const llm = new Scripted(
      calls(["c1", "weather", { city: "Oslo" }], ["c2", "weather", { city: "Rome" }]),
      reply("It rains in both."),
      reply("Take a coat."),
    );
    await run(runnerOf(service(), llm), user("Oslo and Rome?"), { stateDelta: { mood: "good", "temp:y": 1 } });
    await run(runnerOf(service(), llm), user("And what should I wear?"));
    const other = await service().createSession({ appName: "trips", userId: "ann", sessionId: "2" });
    const stranger = await service().createSession({ appName: "trips", userId: "bob", sessionId: "1" });
    outcomes.push(withoutIds({ session: await service().getSession(key), sent: llm.sent, other, stranger }));
  }
  assert.deepEqual(outcomes[0], outcomes[1]);
  const [{ session, other, stranger }] = outcomes;
  assert.equal(session.events.length, 6);
  assert.deepEqual([session.state.topic, session.state.mood], ["weather", "good"]);
  assert.ok(session.state["app:count"] > 0);
  // The app's state is shared by all users; a user's state belongs to one user.
  const { "user:home": home, "app:count": count } = session.state;
  assert.deepEqual(other.state, { "user:home": home, "app:count": count });
  assert.deepEqual(stranger.state, { "app:count": count });
  assert.ok(!JSON.stringify(outcomes[0]).includes("temp:"));
  assert.ok(evicting.evictions >= 8);
  // Search finds a tool's output.
  const { results } = await open("runner").search({ query: "rain" });
  assert.ok(results.some(({ action }) => action === "tool_result"));
});

test("a_streamed_run_stores_complete_answers", async () => {
  const outcomes = [];
  for (const service of [serviceOf("streamed"), new InMemorySessionService()]) {
    await service.createSession(key);
    const llm = new Scripted([
      { ...model({ text: "It " }), partial: true },
      { ...model({ text: "rains." }), partial: true },
      model({ text: "It rains." }),
    ]);
    const events = await run(runnerOf(service, llm), user("Oslo?"), { runConfig: { streamingMode: "sse" } });
    outcomes.push(withoutIds([await service.getSession(key), events]));
  }
  assert.deepEqual(outcomes[0], outcomes[1]);
  assert.deepEqual(
    outcomes[0][0].events.map(({ content }) => content.parts[0].text),
    ["Oslo?", "It rains."],
  );
});

test("a_call_awaiting_confirmation_continues_in_another_process", async () => {
  const outcomes = [];
  const memory = new InMemorySessionService();
  for (const service of [() => serviceOf("confirmed"), () => memory]) {
    await service().createSession(key);
    const llm = new Scripted(calls(["c1", "book", { city: "Oslo" }]), reply("Please confirm."), reply("Booked."));
    const waiting = await run(runnerOf(service(), llm), user("Book a hotel"));
    const confirmation = waiting
      .flatMap(({ content }) => content?.parts ?? [])
      .find(({ functionCall }) => functionCall?.name === "adk_request_confirmation").functionCall;
    const response = { id: confirmation.id, name: confirmation.name, response: { confirmed: true } };
    await run(runnerOf(service(), llm), { role: "user", parts: [{ functionResponse: response }] });
    const session = await service().getSession(key);
    assert.match(JSON.stringify(session.events), /"booked":"Oslo"/);
    outcomes.push(withoutIds(session).events.map(({ content, author }) => [author, content?.parts?.map(Object.keys)]));
  }
  assert.deepEqual(outcomes[0], outcomes[1]);
});

/** The same sequence of random numbers for a seed. */
function random(seed) {
  let state = seed;
  return (below) => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return Math.floor((state / 2_147_483_648) * below);
  };
}

const KEYS = ["a", "b", "app:a", "app:b", "user:a", "user:b", "temp:a", "__proto__", "app:__proto__", "app:", "c d"];
const VALUES = [1, "text", null, [1, { deep: true }], { a: { b: [] } }, "", false, { __proto__: null, x: 1 }];
const PARTS = [
  [{ text: "Hello" }],
  [{ text: "thinking", thought: true }, { text: "one" }, { text: "two" }],
  [{ text: "Let me look." }, { functionCall: { id: "c1", name: "weather", args: { city: "Oslo" } } }],
  [{ functionCall: { name: "no id", args: {} } }],
  [
    { functionResponse: { id: "c1", name: "weather", response: { result: "Rain" } } },
    { functionResponse: { id: "c2", name: "weather", response: { error: "no network" } } },
  ],
  [{ inlineData: { mimeType: "image/png", data: "AA==" } }, { fileData: { fileUri: "gs://x/y", mimeType: "a/b" } }],
  [{ executableCode: { code: "1 + 1", language: "PYTHON" } }, { codeExecutionResult: { output: "2" } }],
  [],
  undefined,
];

/** One step of a program, as a function of a service. The times and ids are the same for each service. */
function stepOf(roll, n) {
  const ids = { appName: `app ${roll(2)}`, userId: `user ${roll(2)}`, sessionId: `session ${roll(3)}` };
  const delta = () => Object.fromEntries(Array.from({ length: roll(4) }, () => [KEYS[roll(11)], VALUES[roll(8)]]));
  const [state, parts, time] = [delta(), PARTS[roll(9)], 1_790_000_000_000 + n * 1000 - roll(3) * 1500];
  const kind = roll(10);
  if (kind < 1) return [`delete ${JSON.stringify(ids)}`, (service) => service.deleteSession(ids)];
  if (kind < 2) {
    const { userId, ...app } = ids;
    const filter = [{}, { limit: 2 }, { limit: 1, page: 2 }, { limit: 2, offset: 1 }, { offset: 1 }, { limit: 0 }][
      roll(6)
    ];
    const owner = roll(2) ? { userId } : {};
    return [
      `list ${JSON.stringify([app, owner, filter])}`,
      async (service) => {
        const { sessions, ...pages } = await service.listSessions({ appName: app.appName, ...owner, ...filter });
        const isUnfiltered = filter.limit === undefined && filter.offset === undefined;
        const names = sessions.map(({ appName, userId: of, id, events }) => [appName, of, id, events]);
        return [pages, isUnfiltered ? names.toSorted() : names.length];
      },
    ];
  }
  if (kind < 3) {
    const config = [
      { numRecentEvents: 2 },
      { afterTimestamp: time - 5000 },
      { numRecentEvents: 4, afterTimestamp: time },
    ];
    const query = { ...ids, config: config[roll(3)] };
    return [`get ${JSON.stringify(query)}`, async (service) => plain((await service.getSession(query))?.events)];
  }
  const isRepeated = roll(5) === 0;
  return [
    `append ${JSON.stringify([ids, state, parts])}`,
    async (service) => {
      const session = await service.getOrCreateSession({ ...ids, state: roll.initialState });
      const event = createEvent({
        id: isRepeated && session.events.length > 0 ? session.events.at(-1).id : `event ${n}`,
        invocationId: `run ${n}`,
        author: parts === undefined || n % 2 ? "guide" : "user",
        content: parts && { role: n % 2 ? "model" : "user", parts: structuredClone(parts) },
        actions: createEventActions({ stateDelta: structuredClone(state), ...(n % 7 === 0 && { escalate: true }) }),
        timestamp: time,
        ...(n % 5 === 0 && { branch: "guide.other", longRunningToolIds: ["c1"], customMetadata: { n } }),
      });
      const given = await service.appendEvent({ session, event });
      return plain([given, session.events, session.state, session.lastUpdateTime]);
    },
  ];
}

test("random_programs_match_adks_own_service", async () => {
  for (let seed = 1; seed <= games(3, 6); seed += 1) {
    const roll = random(seed);
    roll.initialState = { started: seed, "user:a": "at first", "temp:b": 1 };
    const [ours, theirs] = [serviceOf(`program ${seed}`), new InMemorySessionService()];
    const sessions = new Map();
    for (let n = 1; n <= 40; n += 1) {
      const [name, step] = stepOf(roll, n);
      const [one, other] = [await step(ours), await step(theirs)];
      assert.deepEqual(one, other, `seed ${seed}, step ${n}: ${name}`);
    }
    for (const appName of ["app 0", "app 1"])
      for (const { userId, id: sessionId } of (await theirs.listSessions({ appName })).sessions)
        sessions.set(`${appName} ${userId} ${sessionId}`, { appName, userId, sessionId });
    assert.ok(sessions.size > 2);
    // A service of another process finds the same.
    for (const ids of sessions.values()) {
      const [one, other] = await Promise.all([serviceOf(`program ${seed}`), theirs].map((of) => of.getSession(ids)));
      if (other.events.length === 0) other.lastUpdateTime = one.lastUpdateTime;
      assert.deepEqual(plain(one), plain(other));
      assert.ok(one.events.every((event) => event[Symbol.for("google.adk.event")]));
      assert.equal(Object.getPrototypeOf(one.state), Object.getPrototypeOf(other.state));
    }
  }
});

test("a_late_write_does_not_undo_a_newer_one", async () => {
  const outcomes = [];
  for (const service of [serviceOf("order"), new InMemorySessionService()]) {
    const session = await service.createSession(key);
    const [early, late] = [{}, {}];
    new State(session.state, early).set("n", 1);
    new State(session.state, late).set("n", 2);
    const append = (stateDelta) =>
      service.appendEvent({ session, event: { ...createEvent(), actions: { ...createEventActions(), stateDelta } } });
    await append(late);
    await append(early);
    outcomes.push([session.state.n, (await service.getSession(key)).state.n]);
  }
  assert.deepEqual(outcomes, [
    [2, 2],
    [2, 2],
  ]);
});

test("a_duplicate_session_and_events_of_a_deleted_one_are_refused", async () => {
  const service = serviceOf("refused");
  const session = await service.createSession(key);
  await assert.rejects(service.createSession(key), { code: "already_exists" });
  await service.deleteSession(key);
  await service.deleteSession(key);
  const event = createEvent({ author: "user", content: user("Hello") });
  await assert.rejects(service.appendEvent({ session, event }), { code: "session_not_found" });
  assert.deepEqual([session.events, await service.getSession(key)], [[], undefined]);
  // Ids of any length and kind.
  const strange = { appName: "a".repeat(300), userId: "../b", sessionId: '["1"]' };
  await service.createSession(strange);
  assert.equal((await service.getSession(strange)).id, '["1"]');
  const partial = await service.createSession({ ...key, sessionId: "partial" });
  await service.appendEvent({ session: partial, event: createEvent({ partial: true, content: user("He") }) });
  assert.deepEqual((await service.getSession({ ...key, sessionId: "partial" })).events, []);
});

test("sessions_can_be_listed_by_last_activity", async () => {
  const service = serviceOf("listed");
  const sessions = [];
  for (const sessionId of ["c", "b", "a"]) sessions.push(await service.createSession({ ...key, sessionId }));
  await service.appendEvent({ session: sessions[1], event: createEvent({ author: "user", content: user("Hello") }) });
  for (const [order, ids] of [
    [undefined, "cba"],
    ["asc", "cab"],
    ["desc", "bac"],
  ]) {
    const { appName, userId } = key;
    const { sessions: listed } = await service.listSessions({ appName, userId, order });
    assert.equal(listed.map(({ id }) => id).join(""), ids);
  }
});

test("concurrent_writers_of_different_sessions_and_keys_lose_nothing", async () => {
  const service = new SessionAgentSessionService(evicting.openPlain("busy"));
  await Promise.all(
    [1, 2, 3, 4].map(async (n) => {
      const session = await service.createSession({ appName: "trips", userId: "ann", sessionId: `${n}` });
      for (const of of ["app", "user"]) {
        const stateDelta = { [`${of}:${n}`]: n };
        await service.appendEvent({ session, event: createEvent({ actions: createEventActions({ stateDelta }) }) });
      }
    }),
  );
  const { state } = await serviceOf("busy").getSession({ appName: "trips", userId: "ann", sessionId: "1" });
  const expected = [1, 2, 3, 4].flatMap((n) => [
    [`app:${n}`, n],
    [`user:${n}`, n],
  ]);
  assert.deepEqual({ ...state }, Object.fromEntries(expected));
});

test("a_conversation_continued_by_chat_continues_here", async () => {
  const service = serviceOf("foreign");
  await service.createSession(key);
  const [{ id }] = (await open("foreign").listSessions()).sessions;
  await open("foreign")
    .session(id)
    .appendEvents({
      events: [
        { action: "user_message", content: "Oslo?" },
        {
          action: "tool_call_request",
          content: "Let me look.",
          toolCalls: [{ id: "1", name: "weather", arguments: { city: "Oslo" } }],
        },
        { action: "tool_result", content: "Rain", toolCallId: "1", toolName: "weather" },
        { action: "agent_message", content: "It rains." },
      ],
    });
  const llm = new Scripted(reply("Take a coat."));
  await run(runnerOf(service, llm), user("What should I wear?"));
  assert.deepEqual(
    llm.sent[0].flatMap(({ parts }) => parts.map((part) => part.text ?? Object.keys(part)[0])).at(-1),
    "What should I wear?",
  );
  assert.match(JSON.stringify(llm.sent[0]), /It rains/);
  assert.equal((await service.getSession(key)).events.length, 6);
});
