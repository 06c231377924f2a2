// answers.mjs refuses wrong answers.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Answers, answers } from "./answers.mjs";

/** A document with one operation `ask`, whose answer has this schema. */
function documented(schema, schemas = {}) {
  const responses = { 200: { content: { "application/json": { schema } } } };
  return new Answers({
    paths: { "/agents/session-agent/{agent}/rpc/ask": { post: { operationId: "ask", responses } } },
    components: { schemas: { Error: { type: "object", required: ["error"], properties: { error: { type: "string" } } }, ...schemas } },
  });
}

function fits(schema, ...values) {
  for (const value of values) documented(schema).hold(schema, value);
}

function refused(schema, value, message) {
  assert.throws(() => documented(schema).hold(schema, value), { message }, JSON.stringify(value));
}

test("a_wrong_type_is_refused", () => {
  fits({ type: "null" }, null);
  fits({ type: "boolean" }, true, false);
  fits({ type: "integer" }, -5, 5);
  fits({ type: "number" }, 5, 5.5);
  fits({ type: "string" }, "");
  fits({ type: "array" }, [1, null]);
  fits({ type: "object" }, {});
  fits({ type: ["string", "null"] }, null, "a");
  for (const [type, value] of [["null", 0], ["boolean", 0], ["integer", 5.5], ["integer", "5"], ["number", "5"], ["string", null], ["array", {}], ["object", []], ["object", null]]) {
    refused({ type }, value, `the answer: expected ${type}, found ${JSON.stringify(value)}`);
  }
});

test("a_field_must_be_named_there_and_right", () => {
  const schema = { type: "object", properties: { a: { type: "integer" }, b: true }, required: ["a"] };
  fits(schema, { a: 1 }, { a: 1, b: { c: 1 } });
  refused(schema, { b: 1 }, ".a: is required and missing");
  refused(schema, { a: 1, c: 1 }, ".c: the schema names no such field");
  refused(schema, { a: "1" }, '.a: expected integer, found "1"');
});

test("more_fields_stand_only_where_the_schema_says_so", () => {
  fits({ additionalProperties: true }, { x: 1 });
  fits({ additionalProperties: { type: "integer" } }, { x: 1 });
  refused({ additionalProperties: { type: "integer" } }, { x: null }, ".x: expected integer, found null");
  refused({ additionalProperties: false }, { x: 1 }, ".x: the schema names no such field");
  refused({ type: "object" }, { x: 1 }, ".x: the schema names no such field");
});

test("lists_values_and_bounds_are_held", () => {
  const ids = { type: "array", items: { type: "string", minLength: 1, maxLength: 2 }, minItems: 1, maxItems: 2 };
  fits(ids, ["a", "😀😀"]);
  refused(ids, [], "the answer: expected items from 1 to 2, found 0");
  refused(ids, ["a", "b", "c"], "the answer: expected items from 1 to 2, found 3");
  refused(ids, ["a", ""], "[1]: expected characters from 1 to 2, found 0");
  refused(ids, ["a", "abc"], "[1]: expected characters from 1 to 2, found 3");
  refused({ minimum: 0 }, -1, "the answer: expected a number from 0 to Infinity, found -1");
  refused({ maximum: 9 }, 10, "the answer: expected a number from -Infinity to 9, found 10");
  refused({ const: "a" }, "b", 'the answer: expected "a", found "b"');
  refused({ enum: ["a", null] }, 1, 'the answer: expected one of "a", null, found 1');
});

test("a_choice_needs_one_that_fits_and_tells_of_the_nearest", () => {
  const any = { anyOf: [{ type: "null" }, { type: "object", properties: { n: { type: "integer" } } }] };
  fits(any, null, { n: 1 });
  refused(any, { n: "1" }, '.n: expected integer, found "1"');
  refused(any, { m: 1 }, ".m: the schema names no such field");
  refused({ oneOf: [{ type: "integer" }, { type: "number" }] }, 1, "the answer: 2 of `oneOf` fit, and only one may");
});

test("a_choice_may_say_more_of_the_fields_beside_it", () => {
  const schema = {
    type: "object",
    properties: { code: { type: "string" }, details: { type: "object", additionalProperties: true } },
    oneOf: [
      { properties: { code: { const: "a" }, details: { properties: { n: { type: "integer" } }, required: ["n"] } } },
      { properties: { code: { enum: ["b", "c"] } } },
    ],
  };
  fits(schema, { code: "a", details: { n: 1 } }, { code: "b", details: { x: 1 } });
  refused(schema, { code: "a", details: {} }, ".details.n: is required and missing");
  refused(schema, { code: "d", details: {} }, '.code: expected one of "b", "c", found "d"');
  refused(schema, { code: "b", more: 1 }, ".more: the schema names no such field");
});

test("a_value_has_only_the_fields_that_its_reference_names", () => {
  const schema = { $ref: "#/components/schemas/A" };
  const one = documented(schema, { A: { type: "object", properties: { n: true } } });
  one.hold(schema, { n: [] });
  assert.throws(() => one.hold(schema, { m: 1 }), /\.m: the schema names no such field/);
  assert.throws(() => documented(true).hold(schema, {}), /the document has nothing at #\/components\/schemas\/A/);
});

test("a_keyword_that_is_not_listed_is_refused", () => {
  assert.throws(() => documented({ pattern: "^a$" }), /the keyword `pattern`/);
  assert.throws(() => documented({ properties: { a: { items: { allOf: [] } } } }), /the keyword `allOf`/);
  assert.throws(() => documented({ type: "set" }), /no type `set`/);
});

test("a_response_is_held_when_it_is_read", async () => {
  const one = documented({ type: "object", properties: { n: { type: "integer" } } });
  const read = (body, status, address = "/agents/session-agent/a%2Fb/rpc/ask?x") =>
    one.held(Response.json(body, { status }), "POST", address).json();
  assert.deepEqual(await read({ n: 1 }, 200), { n: 1 });
  assert.deepEqual(await read({ error: "no" }, 404), { error: "no" });
  await assert.rejects(read({ n: "1" }, 200), { message: 'ask answered what openapi.json does not say. .n: expected integer, found "1"' });
  await assert.rejects(read({ n: 1 }, 500), { message: "ask answered what openapi.json does not say. .error: is required and missing" });
  // Another address has another answer, but the same errors.
  assert.deepEqual(await read({ x: 1 }, 200, "/health"), { x: 1 });
  await assert.rejects(read({ x: 1 }, 500, "/health"), /^Error: \/health answered/);
  const half = (...isCutOff) => {
    const response = new Response('{"n":', { headers: { "content-type": "application/json" } });
    return one.held(response, "POST", "/agents/session-agent/a/rpc/ask", ...isCutOff).text();
  };
  await assert.rejects(half(), { message: 'ask did not answer JSON: {"n":' });
  assert.equal(await half(() => true), '{"n":');
  // A text that isn't JSON is not compared.
  assert.equal(await one.held(new Response("data: x"), "POST", "/agents/session-agent/a/rpc/ask").text(), "data: x");
});

test("a_sockets_answers_and_messages_are_held_as_they_come", () => {
  /** A socket that a test speaks through: `say` delivers a frame to the listener. */
  class Wire {
    addEventListener(_type, listener) {
      this.say = (frame) => listener({ data: typeof frame === "string" ? frame : JSON.stringify(frame) });
    }
    send() {}
  }
  const socket = new (answers.heldSockets(Wire))();
  const call = (id, method) => socket.send(JSON.stringify({ type: "rpc", id, method, args: [] }));
  call("1", "getPathLength");
  call("2", "getPathLength");
  call("3", "getPathLength");
  socket.say({ type: "rpc", id: "2", success: true, result: { length: 1 }, done: true });
  socket.say({ type: "rpc", id: "3", success: false, error: "No." });
  assert.throws(() => socket.say({ type: "rpc", id: "1", success: true, result: {}, done: true }), /getPathLength answered .* \.length: is required/);
  const message = { id: "m", role: "user", parts: [], createdAt: 5 };
  socket.say({ type: "cf_agent_chat_messages", messages: [message] });
  assert.throws(() => socket.say({ type: "cf_agent_chat_messages", messages: [{ ...message, role: "me" }] }), /\[0\]\.role/);
  socket.say({ type: "cf_agent_message_updated", message });
  assert.throws(() => socket.say({ type: "cf_agent_message_updated", message: { id: "m" } }), /\[0\]\.role: is required/);
  socket.say("no JSON");
});

test("the_document_in_the_tree_describes_answers", () => {
  answers.holdAnswer("getPathLength", { length: 1 });
  assert.throws(() => answers.holdAnswer("getPathLength", { size: 1 }), /getPathLength answered .* \.length: is required/);
  assert.throws(() => answers.holdAnswer("nothing", {}), /no answer of `nothing`/);
  answers.holdError("getPathLength", { error: { code: "forbidden", message: "No.", details: {} } });
  assert.throws(() => answers.holdError("getPathLength", { error: { code: "forbidden", message: "No." } }), /\.error\.details: is required/);
});
