// Workers RPC: operations as method calls over a service binding and on the object. Input and
// output are JSON text. The callable methods, the permissions and the errors are the same as over
// HTTP.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, test } from "node:test";
import { OPENAPI } from "../../scripts/paths.mjs";
import { startServer } from "./harness.mjs";

const SECRET = "the secret of this test, long enough";
const VIAS = ["service", "object"];
const api = JSON.parse(await readFile(OPENAPI, "utf8"));

const server = await startServer({ vars: { AUTH: "open", MODEL: "demo", TOOL_ORIGINS: "https://tools.example" } });
const guarded = await startServer({ vars: {}, secrets: { SESSION_AGENT_TOKEN: SECRET } });
/** The build as it is deployed, without the harness's access to the object. */
const untouched = await startServer({ inspect: false });
after(() => Promise.all([server.stop(), guarded.stop(), untouched.stop()]));

const special = (name) => ({ $made: name });

async function refusal(given, { via, agent = "refusals", operation = "listSessions", on = server } = {}) {
  const error = await on.rpc(agent, operation, given, { via }).then(
    (answer) => assert.fail(`answered ${answer.slice(0, 200)}`),
    (error) => error,
  );
  assert.equal(error.isError, true);
  assert.match(error.message, /^[\w`].*[.…?]$/su);
  // A caller sees no stack frames of Rust.
  assert.doesNotMatch(error.stack ?? "", /wasm/);
  return error;
}

const summaryOf = ({ code, status, details }) => [status, code, details.field];

test("every_operation_answers_a_call_like_a_request", async () => {
  const operations = Object.entries(api.paths)
    .filter(([path]) => path.includes("/rpc/"))
    .map(([, { post }]) => post)
    // First the calls that delete nothing that later calls need.
    .sort((a, b) => ENDINGS.indexOf(a.operationId) - ENDINGS.indexOf(b.operationId));
  assert.ok(operations.length >= 60);
  // Times, ids and sizes differ; everything else is the same.
  const shape = (body, agent) =>
    JSON.parse(
      JSON.stringify(body).replaceAll(agent, "the agent").replaceAll(encodeURIComponent(agent), "the agent"),
      (_key, value) =>
        typeof value === "number"
          ? "a number"
          : typeof value === "string"
            ? value
                .replaceAll(/(?<![0-9a-z])[a-z]\d*-[0-9a-z]{16}/g, "an id")
                .replaceAll(/\b[0-9a-f]{64}\b/g, "a digest")
                .replaceAll(/\d{15}/g, "a time")
            : value,
    );
  let answered = 0;
  for (const via of VIAS) {
    const [requested, called] = [`requested ${via}`, `called ${via}`];
    for (const agent of [requested, called]) await createData(agent);
    for (const { operationId, requestBody } of operations) {
      const { example } = requestBody.content["application/json"];
      const inputOf = (agent) => (operationId === "destroy" ? { confirm: agent } : example);
      const expected = await server.call(requested, operationId, inputOf(requested));
      const [status, body] = await server.rpc(called, operationId, [JSON.stringify(inputOf(called))], { via }).then(
        (answer) => [200, JSON.parse(answer)],
        ({ status, code, message, details }) => [status, { error: { code, message, details } }],
      );
      assert.deepEqual([status, shape(body, called)], [expected.status, shape(expected.body, requested)], operationId);
      if (status === 200) answered += 1;
    }
  }
  // Some are refused: this Worker has no secret for `mintToken`, no directory of agents and no
  // point-in-time recovery, and the agent does not learn, has no proposal and no such backup.
  assert.equal(answered, 2 * (operations.length - REFUSED.length), `${operations.length}`);
});

const REFUSED = [
  ...["mintToken", "listAgents", "searchAgents", "eraseAgents"],
  ...["getBookmark", "restoreBookmark", "restoreBackup"],
  ...["learn", "consolidate", "decideProposal", "revertProposal"],
];

const ENDINGS = [
  "unloadSkill",
  "deleteEntry",
  "deleteSkill",
  "removeBlock",
  "removeTool",
  "deleteCompaction",
  "deleteEvents",
  "deleteMessages",
  "clearMessages",
  "erase",
  "deleteSession",
  "destroy",
];

/** The data that the examples of openapi.json refer to. */
async function createData(agent) {
  const call = async (operation, input) => {
    const { status, body } = await server.call(agent, operation, input);
    assert.equal(status, 200, `${operation}: ${JSON.stringify(body)}`);
  };
  await call("createSession", { id: "s" });
  await call("createSession", { id: "t" });
  const userEvent = (id) => ({ id, action: "user_message", content: `What ${id} said.` });
  await call("appendEvents", { sessionId: "s", events: ["e1", "e2-rzhf7yn028k2zcy1", "b0", "b1"].map(userEvent) });
  for (const [label, kind] of [
    ["memory", "writable"],
    ["kb", "searchable"],
    ["skills", "loadable"],
  ]) {
    await call("defineBlock", { sessionId: "s", label, kind });
  }
  await call("defineBlock", { label: "skills", kind: "loadable" });
  await call("setBlock", { sessionId: "s", label: "memory", content: "Likes tea." });
  await call("setEntry", { sessionId: "s", label: "kb", key: "k", content: "Open from 9 to 17." });
  for (const sessionId of ["s", undefined])
    await call("putSkill", { sessionId, label: "skills", key: "k", content: "Ask for its number." });
}

test("an_answer_is_text_and_an_omitted_input_an_empty_object", async () => {
  for (const via of VIAS) {
    const given = via === "service" ? ["texts", "listSessions"] : ["listSessions"];
    const call = (...more) => server.callMethod({ via, agent: "texts", method: "call", given: [...given, ...more] });
    for (const empty of [
      [],
      [""],
      [" "],
      ["{}"],
      [special("undefined")],
      ["{}", special("undefined")],
      ["{}", {}],
      ["{}", { token: "any" }],
    ]) {
      const { answer, type } = await call(...empty);
      assert.deepEqual([type, JSON.parse(answer)], ["string", { sessions: [], cursor: null }]);
    }
  }
});

test("text_in_any_script_arrives_unchanged", async () => {
  await server.rpc("scripts", "createSession", ['{"id":"s"}']);
  const texts = [
    "naïve",
    "日本語 🎉",
    "\u0000 \u2028",
    "é".repeat(20_000),
    "x".repeat(70_000),
    `${"x".repeat(65_535)}🎉 and on`,
    "🎉".repeat(100_000),
  ];
  for (const via of VIAS) {
    for (const text of texts) {
      const message = { role: "user", parts: [{ type: "text", text }] };
      const answer = await server.rpc("scripts", "appendMessage", [JSON.stringify({ sessionId: "s", message })], {
        via,
      });
      assert.equal(JSON.parse(answer).message.parts[0].text, text);
    }
    const history = JSON.parse(await server.rpc("scripts", "getHistory", ['{"sessionId":"s"}'], { via }));
    assert.deepEqual(
      history.messages.slice(-texts.length).map(({ parts }) => parts[0].text),
      texts,
    );
  }
});

test("a_page_is_the_same_over_every_entry_point_in_any_script", async () => {
  const texts = [
    "plain",
    "naïve",
    "\ufeffmarked",
    "日本語 🎉",
    "\u0000 \u2028 \ufffd",
    "half \\ud83c",
    "🎉".repeat(60_000),
    "x".repeat(400_000),
    "é".repeat(30_000),
  ];
  // Short pages are sent in one piece, and long ones in several.
  for (const [agent, given] of Object.entries({ "a short page": texts.slice(0, 6), "a long page": texts })) {
    await server.call(agent, "createSession", { id: "s" });
    await server.call(agent, "appendEvents", {
      sessionId: "s",
      events: given.map((content, n) => ({ id: `e${n}`, action: "user_message", content })),
    });
    for (const [operation, input, textsOf] of [
      ["loadEvents", { tail: true }, (events) => events.map(({ content }) => content)],
      ["loadEvents", {}, (events) => events.map(({ content }) => content)],
      ["getHistory", {}, ({ messages }) => messages.map(({ parts }) => parts[0].text)],
      [
        "getHistory",
        { limit: 3 },
        ({ messages }) => [...given.slice(0, -3), ...messages.map(({ parts }) => parts[0].text)],
      ],
      ["buildWorkingContext", {}, ({ messages }) => messages.map(({ content }) => content)],
    ]) {
      const json = JSON.stringify({ sessionId: "s", ...input });
      const { status, body } = await server.call(agent, operation, JSON.parse(json));
      assert.equal(status, 200);
      assert.deepEqual(textsOf(body), given, `${agent} ${operation} ${json}`);
      for (const via of VIAS)
        assert.deepEqual(
          JSON.parse(await server.rpc(agent, operation, [json], { via })),
          body,
          `${agent} ${operation} ${via}`,
        );
    }
  }
});

test("an_error_has_its_code_details_and_status", async () => {
  for (const via of VIAS) {
    const unknown = await refusal(['{"sessionId":"nowhere"}'], { via, operation: "loadEvents" });
    assert.deepEqual(
      [unknown.code, unknown.status, unknown.details],
      ["session_not_found", 404, { sessionId: "nowhere" }],
    );
    assert.match(unknown.message, /^This agent has no such session\./);
    const field = await refusal(['{"sesionId":"s"}'], { via, operation: "loadEvents" });
    assert.deepEqual(summaryOf(field), [400, "invalid_request", "sesionId"]);
    assert.match(field.message, /Did you mean `sessionId`\?$/);
    assert.deepEqual(summaryOf(await refusal(["{"], { via })), [400, "invalid_request", "body"]);
    assert.deepEqual(summaryOf(await refusal(["[]"], { via })), [400, "invalid_request", "body"]);
  }
});

test("arguments_of_a_wrong_type_are_refused_by_name", async () => {
  const others = [
    null,
    1,
    true,
    {},
    [],
    special("function"),
    special("date"),
    special("bytes"),
    special("boxed"),
    special("map"),
    special("infinity"),
    special("bigint"),
  ];
  for (const via of VIAS) {
    for (const other of others) {
      assert.deepEqual(
        summaryOf(await refusal([other], { via })),
        [400, "invalid_request", "json"],
        JSON.stringify(other),
      );
      assert.deepEqual(
        summaryOf(await refusal([], { via, operation: other })),
        [400, "invalid_request", "operation"],
        JSON.stringify(other),
      );
    }
    for (const options of [
      null,
      1,
      "x",
      true,
      [],
      ["token"],
      special("function"),
      { tokn: "x" },
      { token: "x", rows: true },
    ]) {
      assert.deepEqual(
        summaryOf(await refusal(["{}", options], { via })),
        [400, "invalid_request", "options"],
        JSON.stringify(options),
      );
    }
    for (const token of [null, 1, {}, ["x"]]) {
      assert.deepEqual(
        summaryOf(await refusal(["{}", { token }], { via })),
        [400, "invalid_request", "token"],
        JSON.stringify(token),
      );
    }
    assert.deepEqual(summaryOf(await refusal(['{"name":"\ud800"}'], { via, operation: "createSession" })), [
      400,
      "invalid_request",
      "json",
    ]);
    assert.deepEqual(summaryOf(await refusal(["{}"], { via, operation: "createSesion" })), [
      404,
      "unknown_operation",
      undefined,
    ]);
    assert.deepEqual(summaryOf(await refusal(["{}"], { via, operation: "x".repeat(1 << 20) })), [
      404,
      "unknown_operation",
      undefined,
    ]);
    for (const operation of ["", "chat", "fetch", "constructor", "__proto__", "export"]) {
      assert.deepEqual(
        summaryOf(await refusal(["{}"], { via, operation })),
        [404, "unknown_operation", undefined],
        operation,
      );
    }
  }
  for (const agent of [
    ...others,
    special("undefined"),
    "",
    "x".repeat(201),
    "x".repeat(1 << 20),
    "a\u0000",
    "half \ud800",
  ]) {
    assert.deepEqual(
      summaryOf(await refusal(["{}"], { agent })),
      [400, "invalid_request", "agent"],
      JSON.stringify(agent).slice(0, 40),
    );
  }
  await server.rpc("é".repeat(200), "listSessions", ["{}"]);
});

test("the_agent_named_by_a_call_answers", async () => {
  for (const agent of ["user:42/a bé", "%41", "a?b#c"]) {
    await server.rpc(agent, "createSession", ['{"id":"s"}']);
    const { body } = await server.call(agent, "getSession", { sessionId: "s" });
    assert.equal(body.agentId, agent);
    assert.equal(
      JSON.parse(await server.rpc(agent, "getSession", ['{"sessionId":"s"}'], { via: "object" })).agentId,
      agent,
    );
  }
});

test("a_call_needs_the_same_token_as_a_request", async () => {
  const call = (operation, input, token, { via, agent = "guarded" } = {}) =>
    guarded.rpc(agent, operation, [JSON.stringify(input), ...(token === undefined ? [] : [{ token }])], { via });
  const code = async (...given) =>
    await call(...given).then(
      () => "answered",
      ({ code, status }) => `${status} ${code}`,
    );
  for (const id of ["mine", "other"]) await call("createSession", { id }, SECRET);
  const { token } = JSON.parse(await call("mintToken", { sessionId: "mine", expiresIn: 600 }, SECRET));
  const { token: reads } = JSON.parse(await call("mintToken", { preset: "read", expiresIn: 600 }, SECRET));
  for (const via of VIAS) {
    for (const wrong of [
      undefined,
      "",
      "x",
      SECRET.slice(1),
      ` ${SECRET}`,
      `Bearer ${SECRET}`,
      "sa2.e30.AAAA",
      "x".repeat(1 << 20),
      "half \ud800",
    ]) {
      assert.equal(await code("listSessions", {}, wrong, { via }), "401 unauthorized");
    }
    assert.equal(await code("listSessions", {}, SECRET, { via }), "answered");
    assert.equal(await code("loadEvents", { sessionId: "mine" }, token, { via }), "answered");
    assert.equal(await code("loadEvents", { sessionId: "other" }, token, { via }), "403 forbidden");
    assert.equal(await code("mintToken", { expiresIn: 60 }, token, { via }), "403 forbidden");
    assert.equal(await code("createSession", {}, reads, { via }), "403 forbidden");
    // A token belongs to one agent.
    assert.equal(await code("loadEvents", { sessionId: "mine" }, token, { via, agent: "another" }), "401 unauthorized");
    // An unauthorized caller learns nothing about operations.
    assert.equal(await code("nothing", {}, undefined, { via }), "401 unauthorized");
  }
  assert.ok(!JSON.stringify(guarded.logs).includes(SECRET));
});

test("without_a_secret_every_call_is_refused", async () => {
  const shut = await startServer({ vars: {} });
  try {
    for (const via of VIAS) {
      const error = await refusal(["{}"], { via, on: shut });
      assert.deepEqual([error.code, error.status], ["unauthorized", 401]);
      assert.match(error.message, /SESSION_AGENT_TOKEN/);
    }
  } finally {
    await shut.stop();
  }
});

test("a_binding_is_admitted_with_local_auth", async () => {
  const local = await startServer({ vars: { AUTH: "local" } });
  try {
    for (const via of VIAS)
      assert.deepEqual(JSON.parse(await local.rpc("a", "listSessions", ["{}"], { via })).sessions, []);
  } finally {
    await local.stop();
  }
});

test("only_call_request_and_the_objects_operations_can_be_called", async () => {
  const hidden = [
    ..."start ctx env wasm object current real free alarm webSocketMessage webSocketClose webSocketError".split(" "),
    ..."constructor __proto__ __destroy_into_raw __wbg_ptr __wbg_inst prototype toString valueOf hasOwnProperty".split(
      " ",
    ),
    ..."handle answer identify default SessionAgent #object #current dispose".split(" "),
  ];
  const operations = ["listSessions", "destroy"];
  for (const on of [untouched, server]) {
    for (const via of VIAS) {
      const ask = (method, given) => on.callMethod({ via, agent: "hidden", method, given });
      for (const method of via === "service" ? [...hidden, ...operations] : hidden) {
        for (const given of [null, [], ["{}"]]) {
          // These belong to the caller's own stub, or exist on every object of the caller.
          if (given === null && /^(constructor|__proto__|toString|valueOf|hasOwnProperty)$/.test(method)) continue;
          // The harness's access is a getter, which the shipped class does not have.
          if (on === server && method === "real") continue;
          const { answer, error } = await ask(method, given);
          const isOfTheStub = /^(constructor|toString|valueOf|hasOwnProperty)$/.test(method);
          if (isOfTheStub && error === undefined) assert.doesNotMatch(String(answer), /wasm|__wbg/);
          else
            assert.ok(error !== undefined && error.code === undefined, `${via} ${method}: ${JSON.stringify(answer)}`);
        }
      }
      const names = via === "service" ? ["hidden", "listSessions"] : ["listSessions"];
      assert.equal((await ask("call", names)).type, "string");
      assert.deepEqual((await ask("request", names)).answer, { ok: true, value: '{"sessions":[],"cursor":null}' });
    }
  }
});

test("an_operation_called_as_a_method_answers_like_call", async () => {
  const method = async (method, ...given) =>
    await guarded.callMethod({ via: "object", agent: "by method", method, given });
  const own = { token: SECRET };
  assert.equal((await method("createSession", { id: "s" }, own)).answer.agentId, "by method");
  const [{ id, content }] =
    (await method(
      "appendEvents",
      { sessionId: "s", events: [{ id: "e", action: "user_message", content: "日本語 🎉" }] },
      own,
    ),
    (await method("loadEvents", { sessionId: "s" }, own)).answer);
  assert.deepEqual([id, content], ["e", "日本語 🎉"]);
  const { token } = (await method("mintToken", { preset: "read", expiresIn: 600 }, own)).answer;
  assert.deepEqual((await method("getSession", { sessionId: "nothing" }, { token })).answer, null);
  for (const [given, status, code] of [
    [["createSession", {}, { token }], 403, "forbidden"],
    [["createSession", {}], 401, "unauthorized"],
    [["loadEvents", { sessionId: "nowhere" }, own], 404, "session_not_found"],
    [["loadEvents", { sesionId: "s" }, own], 400, "invalid_request"],
    [["listSessions", special("map"), own], 400, "invalid_request"],
    [["listSessions", null, own], 400, "invalid_request"],
    [["listSessions", {}, { tokn: "x" }], 400, "invalid_request"],
    [["destroy", { confirm: "another" }, own], 400, "invalid_request"],
  ]) {
    const { error } = await method(...given);
    assert.deepEqual([error?.status, error?.code], [status, code], JSON.stringify(given));
  }
});

test("a_text_over_the_operations_limit_is_refused_before_it_is_stored", async () => {
  await server.rpc("long", "createSession", ['{"id":"s"}']);
  const limitOf = (operation) => api.paths[`/agents/session-agent/{agent}/rpc/${operation}`].post["x-max-body-bytes"];
  const filled = (bytes, letter = "x") => {
    const [head, tail] = ['{"id":"', '"}'];
    return `${head}${letter.repeat((bytes - head.length - tail.length) / Buffer.byteLength(letter))}${tail}`;
  };
  const limit = limitOf("createSession");
  for (const via of VIAS) {
    for (const letter of ["x", "é"]) {
      const full = filled(limit - (letter === "x" ? 0 : 1), letter);
      assert.deepEqual(summaryOf(await refusal([full], { via, agent: "long", operation: "createSession" })), [
        400,
        "invalid_request",
        "id",
      ]);
      const over = await refusal([filled(limit + 1, letter)], { via, agent: "long", operation: "createSession" });
      assert.deepEqual([over.code, over.status, over.details.limit], ["payload_too_large", 413, limit]);
      assert.ok(over.details.actual > limit);
    }
    const tooLong = await refusal(["x".repeat(20 << 20)], { via, agent: "long", operation: "appendMessage" });
    assert.deepEqual([tooLong.code, tooLong.details.limit], ["payload_too_large", limitOf("appendMessage")]);
  }
});

test("the_longest_message_is_sent_and_read_in_one_call", async () => {
  await server.rpc("longest", "createSession", ['{"id":"s"}']);
  for (const via of VIAS) {
    for (const letter of ["x", "é", "日"]) {
      const text = letter.repeat((3.99 * 2 ** 20) / Buffer.byteLength(letter));
      const message = { id: `${via} ${letter}`, role: "user", parts: [{ type: "text", text }] };
      const answer = await server.rpc("longest", "appendMessage", [JSON.stringify({ sessionId: "s", message })], {
        via,
      });
      assert.ok(JSON.parse(answer).message.parts[0].text === text);
      const read = await server.rpc(
        "longest",
        "getMessage",
        [JSON.stringify({ sessionId: "s", messageId: message.id })],
        { via },
      );
      assert.ok(JSON.parse(read).parts[0].text === text);
    }
  }
});

test("calls_without_free_memory_are_told_to_retry", async () => {
  const message = { role: "user", parts: [{ type: "text", text: "x".repeat(3.9 * 2 ** 20) }] };
  const given = [JSON.stringify({ sessionId: "s", message })];
  const agents = [0, 1, 2, 3].map((n) => `crowd ${n}`);
  for (const agent of agents) await server.rpc(agent, "createSession", ['{"id":"s"}']);
  // All arrive before the object has accepted one, however fast the texts reach the Worker.
  const crowd = Array.from({ length: 16 }, (_, n) => agents[n % 4]);
  const outcomes = (await server.rpcAtOnce(crowd, "appendMessage", given)).map(({ reason }) =>
    reason === undefined ? "answered" : `${reason.status} ${reason.code} ${reason.details?.retryAfter}`,
  );
  assert.deepEqual([...new Set(outcomes)].sort(), ["429 rate_limited 5", "answered"]);
  const lengths = await Promise.all(
    agents.map(async (agent) => JSON.parse(await server.rpc(agent, "getPathLength", ['{"sessionId":"s"}'])).length),
  );
  assert.equal(
    lengths.reduce((sum, length) => sum + length),
    outcomes.filter((outcome) => outcome === "answered").length,
  );
  // No reservation remains afterwards, whichever way the next call arrives.
  for (const via of VIAS) await server.rpc(agents[0], "appendMessage", given, { via });
});

test("the_in_memory_cache_serves_calls_too", async () => {
  await server.rpc("evicted", "createSession", ['{"id":"s"}']);
  for (const via of VIAS) {
    const activation = await server.incarnation("evicted");
    await server.evict("evicted");
    assert.equal(JSON.parse(await server.rpc("evicted", "getSession", ['{"sessionId":"s"}'], { via })).id, "s");
    assert.notEqual(await server.incarnation("evicted"), activation);
  }
});

test("after_a_crash_the_next_call_gets_a_new_instance", async () => {
  await server.rpc("crashes", "createSession", ['{"id":"s"}']);
  for (const via of VIAS) {
    const activation = await server.incarnation("crashes");
    await server.crash("crashes");
    assert.equal(JSON.parse(await server.rpc("crashes", "getSession", ['{"sessionId":"s"}'], { via })).id, "s");
    assert.equal(await server.incarnation("crashes"), activation);
  }
});

test("work_after_a_response_also_runs_after_a_call", async () => {
  const call = async (operation, input) =>
    JSON.parse(
      await server.rpc("follows", operation, [JSON.stringify({ sessionId: "s", ...input })], { via: "object" }),
    );
  await call("createSession", { sessionId: undefined, id: "s" });
  await call("configureCompaction", { compactAfter: 1, tailTokenBudget: 1, protectHead: 1 });
  for (let n = 0; n < 12; n += 1) {
    await call("appendMessage", {
      message: { role: n % 2 ? "assistant" : "user", parts: [{ type: "text", text: `${n} ${"word ".repeat(200)}` }] },
    });
  }
  // The compaction does not delay the append.
  for (let left = 1000; left > 0; left -= 1) {
    const { compactions } = await call("getCompactions");
    if (compactions.length > 0) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  assert.fail("no compaction followed");
});

test("destroy_empties_the_agent_and_it_stays_usable", async () => {
  for (const via of VIAS) {
    await server.rpc("gone", "createSession", ['{"id":"s"}'], { via });
    assert.deepEqual(JSON.parse(await server.rpc("gone", "destroy", ['{"confirm":"gone"}'], { via })), {
      destroyed: true,
    });
    assert.deepEqual(JSON.parse(await server.rpc("gone", "listSessions", ["{}"], { via })).sessions, []);
  }
});
