// Tests that answers.mjs refuses responses that openapi.json does not describe.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Answers, answers } from "./answers.mjs";

/** A document with one operation `ask`, whose answer has this schema. */
function documented(schema, schemas = {}) {
  const responses = { 200: { content: { "application/json": { schema } } } };
  return new Answers({
    paths: { "/agents/session-agent/{agent}/rpc/ask": { post: { operationId: "ask", responses } } },
    components: {
      schemas: {
        Error: { type: "object", required: ["error"], properties: { error: { type: "string" } } },
        ...schemas,
      },
    },
  });
}

function accepts(schema, ...values) {
  for (const value of values) assert.equal(documented(schema).find(schema, value), undefined);
}

function refused(schema, value, message) {
  assert.match(documented(schema).find(schema, value) ?? "", message, JSON.stringify(value));
}

test("required_fields_are_checked_by_name_and_type", () => {
  const schema = { type: "object", properties: { a: { type: "integer" }, b: true }, required: ["a"] };
  accepts(schema, { a: 1 }, { a: 1, b: { c: 1 } });
  refused(schema, { b: 1 }, /must have required property 'a'/);
  refused(schema, { a: 1, c: 1 }, /"unevaluatedProperty":"c"/);
  refused(schema, { a: "1" }, /\/a must be integer/);
});

test("extra_fields_are_allowed_only_if_the_schema_says_so", () => {
  accepts({ additionalProperties: true }, { x: 1 });
  accepts({ additionalProperties: { type: "integer" } }, { x: 1 });
  refused({ additionalProperties: { type: "integer" } }, { x: null }, /\/x must be integer/);
  refused({ additionalProperties: false }, { x: 1 }, /"additionalProperty":"x"/);
  refused({ type: "object" }, { x: 1 }, /"unevaluatedProperty":"x"/);
  refused({ type: "array", items: { properties: { a: true } } }, [{ a: 1, x: 1 }], /\/0 .*"unevaluatedProperty":"x"/);
});

test("one_of_needs_a_matching_branch", () => {
  const any = { anyOf: [{ type: "null" }, { type: "object", properties: { n: { type: "integer" } } }] };
  accepts(any, null, { n: 1 });
  refused(any, { n: "1" }, /\/n must be integer/);
  refused(any, { m: 1 }, /"unevaluatedProperty":"m"/);
});

test("one_of_may_refine_sibling_fields", () => {
  const schema = {
    type: "object",
    properties: { code: { type: "string" }, details: { type: "object", additionalProperties: true } },
    oneOf: [
      { properties: { code: { const: "a" }, details: { properties: { n: { type: "integer" } }, required: ["n"] } } },
      { properties: { code: { enum: ["b", "c"] } } },
    ],
  };
  accepts(schema, { code: "a", details: { n: 1 } }, { code: "b", details: { x: 1 } });
  refused(schema, { code: "a", details: {} }, /required property 'n'/);
  refused(schema, { code: "d", details: {} }, /\/code must be equal to one of the allowed values/);
  refused(schema, { code: "b", more: 1 }, /"unevaluatedProperty":"more"/);
});

test("a_value_has_only_the_fields_of_its_reference", () => {
  const schema = { $ref: "#/components/schemas/A" };
  const one = documented(schema, { A: { type: "object", properties: { n: true } } });
  assert.equal(one.find(schema, { n: [] }), undefined);
  assert.match(one.find(schema, { m: 1 }), /"unevaluatedProperty":"m"/);
  assert.throws(() => documented(true).find(schema, {}), /can't resolve reference #\/components\/schemas\/A/);
});

test("an_unknown_keyword_is_refused", () => {
  assert.throws(() => documented({ patern: "^a$" }).find({ patern: "^a$" }, 1), /unknown keyword: "patern"/);
});

test("a_response_is_checked_when_it_is_read", async () => {
  const one = documented({ type: "object", properties: { n: { type: "integer" } } });
  const read = (body, status, address = "/agents/session-agent/a%2Fb/rpc/ask?x") =>
    one.checked(Response.json(body, { status }), "POST", address).json();
  assert.deepEqual(await read({ n: 1 }, 200), { n: 1 });
  assert.deepEqual(await read({ error: "no" }, 404), { error: "no" });
  await assert.rejects(
    read({ n: "1" }, 200),
    /^Error: ask returned an answer that openapi.json does not describe\. \/n must be integer/,
  );
  await assert.rejects(read({ n: 1 }, 500), /must have required property 'error'/);
  // Another address has another answer, but the same errors.
  assert.deepEqual(await read({ x: 1 }, 200, "/health"), { x: 1 });
  await assert.rejects(read({ x: 1 }, 500, "/health"), /^Error: \/health returned/);
  const half = (...isCutOff) => {
    const response = new Response('{"n":', { headers: { "content-type": "application/json" } });
    return one.checked(response, "POST", "/agents/session-agent/a/rpc/ask", ...isCutOff).text();
  };
  await assert.rejects(half(), { message: 'ask did not answer JSON: {"n":' });
  assert.equal(await half(() => true), '{"n":');
  // A text that isn't JSON is not compared.
  assert.equal(await one.checked(new Response("data: x"), "POST", "/agents/session-agent/a/rpc/ask").text(), "data: x");
});

test("socket_messages_are_checked_as_they_arrive", () => {
  /** A fake socket: `deliver` delivers a frame to the listener. */
  class Wire {
    addEventListener(_type, listener) {
      this.deliver = (frame) => listener({ data: typeof frame === "string" ? frame : JSON.stringify(frame) });
    }
    send() {}
  }
  const socket = new (answers.checkedSockets(Wire))();
  const call = (id, method) => socket.send(JSON.stringify({ type: "rpc", id, method, args: [] }));
  call("1", "getPathLength");
  call("2", "getPathLength");
  call("3", "getPathLength");
  socket.deliver({ type: "rpc", id: "2", success: true, result: { length: 1 }, done: true });
  socket.deliver({ type: "rpc", id: "3", success: false, error: "No." });
  assert.throws(
    () => socket.deliver({ type: "rpc", id: "1", success: true, result: {}, done: true }),
    /getPathLength returned .* required property 'length'/,
  );
  const message = { id: "m", role: "user", parts: [], createdAt: 5 };
  socket.deliver({ type: "cf_agent_chat_messages", messages: [message] });
  assert.throws(
    () => socket.deliver({ type: "cf_agent_chat_messages", messages: [{ ...message, role: "me" }] }),
    /\/0\/role/,
  );
  socket.deliver({ type: "cf_agent_message_updated", message });
  assert.throws(
    () => socket.deliver({ type: "cf_agent_message_updated", message: { id: "m" } }),
    /\/0 must have required property .role./,
  );
  socket.deliver("no JSON");
});

test("the_checked_in_document_describes_responses", () => {
  answers.holdAnswer("getPathLength", { length: 1 });
  assert.throws(
    () => answers.holdAnswer("getPathLength", { size: 1 }),
    /getPathLength returned .* required property 'length'/,
  );
  assert.throws(() => answers.holdAnswer("nothing", {}), /no answer of `nothing`/);
  answers.holdError("getPathLength", { error: { code: "forbidden", message: "No.", details: {} } });
  assert.throws(
    () => answers.holdError("getPathLength", { error: { code: "forbidden", message: "No." } }),
    /required property .details./,
  );
});
