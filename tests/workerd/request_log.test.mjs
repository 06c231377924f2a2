// The log line of each request, and its data point in the data set `METRICS`.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { startServer } from "./harness.mjs";

const SECRET = "a secret of these tests, long enough";
const AUTHORIZED = { authorization: `Bearer ${SECRET}` };
const NEEDLE = "the-words-of-a-user";

let server;
before(
  async () => (server = await startServer({ secrets: { SESSION_AGENT_TOKEN: SECRET }, vars: { REQUEST_LOG: "all" } })),
);
after(() => server?.stop());

/** The log lines of `work`, once there are `count`. */
async function linesOf(on, count, work) {
  const before = on.logs.length;
  await work();
  const lines = () =>
    on.logs
      .slice(before)
      .map(({ message }) => message)
      .filter((message) => message.startsWith("{"))
      .map((message) => JSON.parse(message));
  for (const until = Date.now() + 5_000; lines().length < count && Date.now() < until; )
    await new Promise((resolve) => setTimeout(resolve, 20));
  return lines();
}

test("each_request_logs_one_line_of_names_and_numbers_without_content", async () => {
  const call = (operation, input, headers = AUTHORIZED) => server.call("log:a", operation, input, { headers });
  const event = { action: "user_message", content: NEEDLE, metadata: { note: NEEDLE } };
  const lines = await linesOf(server, 6, async () => {
    await call("createSession", { id: "s" });
    await call("appendEvents", { sessionId: "s", events: [event] });
    await call("appendEvents", { sessionId: "s", events: [event], expectedLeafId: NEEDLE });
    await call(NEEDLE, {});
    // Refused before the object.
    await call("getSession", { sessionId: "s" }, { authorization: `Bearer ${NEEDLE}` });
    await server.rpc("log:a", "getSession", [JSON.stringify({ sessionId: "s" }), { token: SECRET }]);
  });
  const shown = lines.map(({ operation, agent, status, code }) => [operation, agent, status, code]);
  assert.deepEqual(shown, [
    ["createSession", "log:a", 200, undefined],
    ["appendEvents", "log:a", 200, undefined],
    ["appendEvents", "log:a", 409, "leaf_moved"],
    ["unknown", "log:a", 404, "unknown_operation"],
    ["getSession", "log:a", 401, "unauthorized"],
    ["getSession", "log:a", 200, undefined],
  ]);
  const append = lines[1];
  assert.equal(append.rowsWritten, 1);
  assert.ok(append.rowsRead > 0 && Number.isInteger(append.durationMs) && append.durationMs >= 0, append);
  const logged = JSON.stringify(server.logs);
  assert.ok(!logged.includes(NEEDLE) && !logged.includes(SECRET));
});

test("requests_refused_by_the_front_worker_are_logged_with_their_trace", async () => {
  const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
  const traceparent = `00-${TRACE}-00f067aa0ba902b7-01`;
  const wrong = { authorization: `Bearer ${NEEDLE}`, traceparent };
  const answers = [];
  const lines = await linesOf(server, 8, async () => {
    const ask = async (path, init) => {
      const response = await server.fetch(path, init);
      answers.push([response.status, response.headers.get("traceparent")?.split("-")[1]]);
      await response.text();
    };
    const post = (headers) => ({
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: "{}",
    });
    await ask("/agents/session-agent/log:f/rpc/listSessions", post(wrong));
    await ask("/agents/session-agent/log:f/chat", post(wrong));
    await ask("/agents/session-agent/log:f/rpc/listSessions", post({ traceparent: NEEDLE }));
    await ask("/nowhere", { headers: { traceparent } });
    await ask("/agents/session-agent", { headers: { traceparent } });
    await ask("/health", {});
    // Over a binding: a request that the Worker refuses, and one that the object refuses.
    const given = [JSON.stringify({}), { token: NEEDLE, traceparent }];
    for (const via of ["service", "object"]) await assert.rejects(server.rpc("log:f", "listSessions", given, { via }));
  });
  assert.deepEqual(answers, [
    [401, TRACE],
    [401, TRACE],
    [401, undefined],
    [404, TRACE],
    [401, TRACE],
    [200, undefined],
  ]);
  assert.deepEqual(
    lines.map(({ operation, agent, status, code, traceId }) => [operation, agent, status, code, traceId]),
    [
      ["listSessions", "log:f", 401, "unauthorized", TRACE],
      ["chat", "log:f", 401, "unauthorized", TRACE],
      ["listSessions", "log:f", 401, "unauthorized", undefined],
      ["unknown", undefined, 404, "unknown_operation", TRACE],
      ["listAgents", undefined, 401, "unauthorized", TRACE],
      ["health", undefined, 200, undefined, undefined],
      ["listSessions", "log:f", 401, "unauthorized", TRACE],
      ["listSessions", "log:f", 401, "unauthorized", TRACE],
    ],
  );
  assert.ok(!JSON.stringify(server.logs).includes(NEEDLE));
});

test("a_call_with_a_wrong_agent_or_a_wrong_argument_is_logged_with_its_operation", async () => {
  const given = { token: SECRET };
  const lines = await linesOf(server, 5, async () => {
    const refused = (agent, args, via) => assert.rejects(server.rpc(agent, "listSessions", args, { via }));
    await refused(42, ["{}", given], "service");
    await refused("log:g", [{}, given], "service");
    await refused("log:g", ["{}", { secret: SECRET }], "service");
    await refused("log:g", [{}, given], "object");
    await refused("log:g", ["{}", { ...given, agent: "log:other" }], "object");
  });
  assert.deepEqual(
    lines.map(({ operation, agent, code }) => [operation, agent, code]),
    [undefined, "log:g", "log:g", "log:g", "log:g"].map((agent) => ["listSessions", agent, "invalid_request"]),
  );
});

test("the_rows_of_a_log_line_match_the_response", async () => {
  let answer;
  const [line] = await linesOf(server, 1, async () => {
    answer = await server.call("log:a", "loadEvents", { sessionId: "s" }, { headers: AUTHORIZED });
  });
  assert.deepEqual([line.rowsRead, line.rowsWritten], [answer.rowsRead, answer.rowsWritten]);
});

test("a_polling_stream_logs_no_further_line_unless_it_fails", async () => {
  const poll = async (params) => {
    const answer = await server.fetch("/agents/session-agent/log:p/mcp", {
      method: "POST",
      headers: { ...AUTHORIZED, "content-type": "application/json", accept: "application/json" },
      body: JSON.stringify({ jsonrpc: "2.0", id: 0, method: "session-agent/poll", params }),
    });
    return await answer.json();
  };
  const lines = await linesOf(server, 2, async () => {
    const { result } = await poll({ stream: "one" });
    for (let again = 0; again < 3; again += 1)
      assert.ok((await poll({ stream: "one", resources: result.resources })).result);
    assert.ok((await poll({ resources: {} })).error);
  });
  assert.deepEqual(
    lines.map(({ operation, agent }) => [operation, agent]),
    [
      ["mcp", "log:p"],
      ["mcp", "log:p"],
    ],
  );
});

/** Replaces a data set, because the platform's own can't be read here. */
const METRICS = `
  import { WorkerEntrypoint } from "cloudflare:workers";
  const points = [];
  export default class extends WorkerEntrypoint {
    writeDataPoint(point) { points.push(point); }
    fetch() { return Response.json(points); }
  }`;

test("each_request_is_a_data_point_and_a_failing_data_set_affects_no_request", async () => {
  const options = { secrets: { SESSION_AGENT_TOKEN: SECRET } };
  const counted = await startServer({ ...options, workers: { metrics: METRICS } });
  try {
    const ask = (operation, input) => counted.call("log:c", operation, input, { headers: AUTHORIZED });
    await ask("createSession", { id: "s" });
    await ask("createSession", { id: "s" });
    const read = async () => await (await fetch(await counted.urlOf("metrics"))).json();
    for (const until = Date.now() + 5_000; (await read()).length < 2 && Date.now() < until; );
    const points = await read();
    assert.deepEqual(
      points.map(({ indexes, blobs, doubles }) => [indexes, blobs, doubles.length, doubles[3]]),
      [
        [["log:c"], ["createSession", "ok", "log:c"], 4, 200],
        [["log:c"], ["createSession", "already_exists", "log:c"], 4, 409],
      ],
    );
  } finally {
    await counted.stop();
  }
  // A binding without the method.
  const wrong = await startServer({ ...options, vars: { METRICS: "no data set" } });
  try {
    const { status } = await wrong.call("log:c", "createSession", { id: "s" }, { headers: AUTHORIZED });
    assert.equal(status, 200);
  } finally {
    await wrong.stop();
  }
});

test("the_setting_disables_log_lines", async () => {
  const quiet = await startServer({ secrets: { SESSION_AGENT_TOKEN: SECRET }, vars: { REQUEST_LOG: "failures" } });
  try {
    const lines = await linesOf(quiet, 0, async () => {
      for (let n = 0; n < 5; n++) await quiet.call("log:b", "listSessions", {}, { headers: AUTHORIZED });
    });
    assert.deepEqual(lines, []);
  } finally {
    await quiet.stop();
  }
});
