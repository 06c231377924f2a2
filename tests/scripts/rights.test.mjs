// Rights returned by a class's `authorize` and passed to `mintToken`
// (packages/session-agent/src/rights.ts): JSON drops some values, and a dropped restriction would
// grant more.

import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { build } from "esbuild";
import { CLIENT } from "../../scripts/paths.mjs";

async function bundled(entry) {
  const { outputFiles } = await build({
    entryPoints: [join(CLIENT, entry)],
    bundle: true,
    write: false,
    format: "esm",
    external: ["cloudflare:workers"],
  });
  return await import(`data:text/javascript,${encodeURIComponent(outputFiles[0].text)}`);
}

const { HookedObject } = await bundled("src/worker/hooks.ts");
const { sessionAgent } = await bundled("src/index.ts");

const REQUEST = new Request("https://agent.example/agents/session-agent/ann/chat", { method: "POST" });

/** The core's input for a grant, with the log's lines. */
async function granted(grant) {
  const lines = [];
  const { error } = console;
  console.error = (...values) => lines.push(values.map(String).join(" "));
  try {
    const hooked = new HookedObject(() => ({ authorize: () => grant }), {}, undefined);
    return { grantedJson: await hooked.granted(REQUEST), lines };
  } finally {
    console.error = error;
  }
}

const whole = {
  preset: "chat",
  sessionId: "chat",
  operations: ["search"],
  allow: { agentMemory: true, models: ["demo"] },
  limits: { turnsPerMinute: 5 },
  holder: "ann",
};

test("a_grant_is_serialized_as_given", async () => {
  assert.deepEqual(JSON.parse((await granted(whole)).grantedJson), { expiresIn: 3600, ...whole });
  assert.deepEqual(JSON.parse((await granted({ ...whole, expiresIn: 5 })).grantedJson).expiresIn, 5);
  const bare = Object.assign(Object.create(null), { preset: "read" });
  assert.deepEqual(JSON.parse((await granted(bare)).grantedJson), { expiresIn: 3600, preset: "read" });
  assert.deepEqual(await granted(null), { grantedJson: "null", lines: [] });
  assert.deepEqual(await granted(undefined), { grantedJson: undefined, lines: [] });
  // A getter is called once.
  let reads = 0;
  const once = {
    ...whole,
    get sessionId() {
      return (reads += 1) === 1 ? "chat" : undefined;
    },
  };
  assert.equal(JSON.parse((await granted(once)).grantedJson).sessionId, "chat");
});

/** Values that JSON drops, turns into `null`, or reads as something else. */
const unserializable = () => [
  undefined,
  null,
  NaN,
  Infinity,
  1n,
  Symbol("chat"),
  () => "chat",
  { toJSON: () => undefined },
  new (class Id {
    get id() {
      return "chat";
    }
  })(),
  new String("chat"),
  new Map([["a", 1]]),
  new Date(),
  Promise.resolve("chat"),
  [undefined],
  new Array(1),
  [null],
];

const paths = [
  ["sessionId"],
  ["preset"],
  ["operations"],
  ["operations", 0],
  ["allow"],
  ["allow", "agentMemory"],
  ["allow", "models"],
  ["limits"],
  ["limits", "turnsPerMinute"],
  ["holder"],
  ["expiresIn"],
];

function withValue(path, value) {
  const grant = { ...structuredClone(whole), expiresIn: 60 };
  let place = grant;
  for (const name of path.slice(0, -1)) place = place[name];
  place[path.at(-1)] = value;
  return grant;
}

test("rights_that_json_would_drop_are_refused_by_name", async () => {
  // The client refuses it too, before it sends anything.
  const sent = [];
  const client = sessionAgent("https://agent.example", "ann", {
    fetch: async (...request) => (sent.push(request), Response.json({ token: "t", expiresAt: 1 })),
  });
  let tried = 0;
  for (const path of paths) {
    for (const value of unserializable()) {
      const grant = withValue(path, value);
      const { grantedJson, lines } = await granted(grant);
      const what = `${path.join(".")}: ${typeof value} ${lines}`;
      assert.equal(grantedJson, "null", what);
      assert.match(lines[0], /^session-agent: `authorize` failed, and the request is refused Error: `/, what);
      assert.ok(lines[0].includes(`\`${path[0]}`), what);
      await assert.rejects(
        client.mintToken(grant),
        { name: "InvalidRequestError", code: "invalid_request", status: 400 },
        what,
      );
      tried += 2;
    }
  }
  assert.deepEqual(sent, []);
  await client.mintToken({ preset: "read", expiresIn: 60 });
  assert.equal(sent.length, 1);
  console.log(`${tried} rights`);
});

test("rights_that_are_not_plain_objects_are_refused", async () => {
  class Grant {
    expiresIn = 60;
    get sessionId() {
      return "chat";
    }
  }
  const hidden = Object.defineProperty({ preset: "chat" }, "sessionId", { value: "chat" });
  const cyclic = { preset: "read", allow: {} };
  cyclic.allow.allow = cyclic;
  const throwing = {
    get sessionId() {
      throw new Error("no session");
    },
  };
  for (const grant of [
    true,
    1,
    "chat",
    [],
    [whole],
    () => whole,
    new Grant(),
    Object.create(whole),
    new Map(Object.entries(whole)),
    hidden,
    { ...whole, [Symbol("sessionId")]: "chat" },
    JSON.parse('{"__proto__": {"sessionId": "chat"}}'),
    { ...whole, toJSON: "x" },
    cyclic,
    throwing,
  ]) {
    const { grantedJson, lines } = await granted(grant);
    assert.equal(grantedJson, "null", String(lines));
    assert.match(lines[0], /`authorize` failed, and the request is refused/);
  }
});

test("limits_of_a_grant_without_a_holder_are_refused", async () => {
  const { holder: _, ...withoutHolder } = whole;
  const { grantedJson, lines } = await granted(withoutHolder);
  assert.equal(grantedJson, "null");
  assert.match(lines[0], /`limits` without a `holder`/);
});
