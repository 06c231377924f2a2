// The table of limits in docs/costs.md: a request at the limit is served, and one over the limit is
// refused with the code in the table.

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { startServer } from "./harness.mjs";
import { tableUnder } from "./documents.mjs";

const SECRET = "the secret of this test, long enough";
const server = await startServer({ vars: {}, secrets: { SESSION_AGENT_TOKEN: SECRET } });
after(() => server.stop());

const text = (n) => "x".repeat(n);
const list = (n, item) => Array.from({ length: n }, (_, k) => item(k));
const user = (content) => ({ action: "user_message", content });

/** For each limit: the operation, and an input with `n` items. */
const REQUESTS = {
  "an id": (n) => ["getSession", { sessionId: text(n) }],
  "a session's name": (n) => ["createSession", { name: text(n) }],
  "events of one append": (n) => ["appendEvents", { sessionId: "s", events: list(n, () => user("x")) }],
  "ids of one delete": (n) => ["deleteEvents", { sessionId: "s", eventIds: list(n, String) }],
  "a page of events": (n) => ["loadEvents", { sessionId: "s", limit: n }],
  "a page of messages": (n) => ["getHistory", { sessionId: "s", limit: n }],
  "a page of changes": (n) => ["getChanges", { sessionId: "s", limit: n }],
  "a page of sessions": (n) => ["listSessions", { limit: n }],
  "results of a search": (n) => ["search", { query: "x", limit: n }],
  "a block's label": (n) => ["getBlock", { label: text(n) }],
  "a block's description": (n) => ["defineBlock", { label: "b", kind: "writable", description: text(n) }],
  "a block's budget": (n) => ["defineBlock", { label: "b", kind: "writable", maxTokens: n }],
  "a block's text": (n) => ["defineBlock", { label: "b", kind: "writable", defaultContent: text(n) }],
  "an entry": (n) => ["setEntry", { label: "entries", key: "k", content: text(n) }],
  "a document": (n) => ["putSkill", { label: "documents", key: "k", content: text(n) }],
  "a key": (n) => ["setEntry", { label: "entries", key: text(n), content: "x" }],
  "a page of entries": (n) => ["listEntries", { label: "entries", limit: n }],
  "a page of documents": (n) => ["listSkills", { label: "documents", limit: n }],
  // The body is the first level, and `metadata` is the second.
  "JSON within JSON": (n) => ["createSession", `{"metadata": {"x": ${"[".repeat(n - 2)}${"]".repeat(n - 2)}}}`],
  "a minted token's lifetime": (n) => ["mintToken", { expiresIn: n }],
  "a request's body": (n) => ["getSession", '{"sessionId": "s"}'.padEnd(n)],
  "a body that writes events": (n) => [
    "appendEvents",
    JSON.stringify({ sessionId: "s", events: [user("x")] }).padEnd(n),
  ],
  "parts of a message": (n) => [
    "appendMessage",
    { sessionId: "s", message: { role: "user", parts: list(n, () => ({ type: "text", text: "a" })) } },
  ],
  "an event or a message": (n) => ["appendEvents", { sessionId: "s", events: [user(text(n))] }],
};

for (const [what, most, code] of tableUnder("docs/costs.md", "Limits")) {
  test(`the_limit_of_${what}_is_${most}`.replaceAll(" ", "_"), async () => {
    const limit = numberIn(most);
    assert.equal(await outcome(what, limit), "ok");
    assert.equal(`\`${await outcome(what, limit + 1)}\``, code);
  });
}

/** `ok`, or the code of the error. */
async function outcome(what, n) {
  if (what === "an agent's name") return codeOf(await call(text(n), "listSessions"));
  const agent = `${what} ${n}`;
  await call(agent, "createSession", { id: "s" });
  if (what === "all text of a page of events") {
    const piece = 4 * 2 ** 20;
    for (let left = n; left > 0; left -= piece)
      await call(agent, "appendEvents", { sessionId: "s", events: [user(text(Math.min(left, piece)))] });
    return codeOf(await call(agent, "loadEvents", { sessionId: "s" }));
  }
  await call(agent, "defineBlock", { label: "entries", kind: "searchable" });
  await call(agent, "defineBlock", { label: "documents", kind: "loadable" });
  assert.ok(what in REQUESTS, `a request for \`${what}\``);
  return codeOf(await call(agent, ...REQUESTS[what](n)));
}

function call(agent, operation, input) {
  return server.call(agent, operation, input, { headers: { authorization: `Bearer ${SECRET}` } });
}

function codeOf({ status, body }) {
  return status === 200 ? "ok" : body.error.code;
}

/** The number in `200 characters`, `33 MiB`, `64 KiB` or `1,000`. */
function numberIn(most) {
  const [, digits, unit] = most.match(/^([\d,]+)(?: (\w+))?/);
  return Number(digits.replaceAll(",", "")) * ({ MiB: 2 ** 20, KiB: 2 ** 10 }[unit] ?? 1);
}
