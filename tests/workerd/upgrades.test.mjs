// Objects stored by older builds replace a real object's file and are opened by the built Worker.
// tests/upgrades contains the files and the expected answer of every read. Native tests check each
// file in more detail.

import assert from "node:assert/strict";
import { cp, mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { call, callsIn, openTurns, textOf } from "./chat_server.mjs";
import { startServer } from "./harness.mjs";
import { say, startModel } from "./model_server.mjs";

const FOLDER = fileURLToPath(new URL("../upgrades", import.meta.url));
const FIXTURES = (await readdir(FOLDER)).filter((name) => name.endsWith(".db")).sort();
const AGENT = "alice";
const CUT_OFF = [
  "cut-before-the-answer",
  "cut-again",
  "cut-with-tools-running",
  "cut-after-a-tool",
  "cut-after-an-approval",
  "cut-after-a-clients-answer",
];
/** A session with a queued message, in the newer objects. */
const WAITING = "waiting";
/** Reads without outgoing calls, so they answer the same on any machine. */
const READS = [
  "loadEvents",
  "getHistory",
  "getCompactions",
  "getBranches",
  "getMessage",
  "getBlockVersions",
  "listEntries",
  "listTools",
];
/** How often the test checks for running turns, a tenth of a second apart. */
const MAX_CHECKS = 150;

const model = await startModel();
after(() => model.stop());
const options = {
  vars: { AUTH: "open", MODEL: "openai:m", OPENAI_BASE_URL: model.url },
  secrets: { OPENAI_API_KEY: "a test's key" },
};

/** The storage of a new object, which each test copies. */
const fresh = await mkdtemp(join(tmpdir(), "session-agent-upgrade-"));
after(() => rm(fresh, { recursive: true, force: true }));
const first = await startServer({ ...options, storage: fresh });
await call(first, AGENT, "getConfig", {});
await first.stop();

for (const fixture of FIXTURES) {
  test(`an_object_of_an_older_build_opens_${fixture.replace(/\W/g, "_")}`, async () => {
    const storage = await mkdtemp(join(tmpdir(), "session-agent-upgrade-"));
    await cp(fresh, storage, { recursive: true });
    await replaceObject(storage, join(FOLDER, fixture));

    model.next(...[...CUT_OFF, WAITING].map(() => say("Here I am again.")));
    const server = await startServer({ ...options, storage });
    try {
      const stored = JSON.parse(await readFile(join(FOLDER, `${fixture.slice(0, 4)}.json`), "utf8"));
      const reads = stored.filter(
        ({ operation, body }) => READS.includes(operation) && ![...CUT_OFF, WAITING].includes(body.sessionId),
      );
      assert.ok(reads.length > 40, `${reads.length} reads`);
      for (const { operation, body, answer } of reads) {
        const now = await call(server, AGENT, operation, body);
        assertAnswered(answer, now, `${operation} ${JSON.stringify(body)}`);
      }
      let found;
      do found = await call(server, AGENT, "search", { query: "zeppelin" });
      while (found.pending === true);
      assert.ok(found.results.length > 0);

      for (let check = 0; ; check += 1) {
        const open = await openTurns(server, AGENT);
        if (open.length === 0) break;
        assert.ok(check < MAX_CHECKS, `${open} are still open`);
        await pause(100);
      }
      for (const sessionId of CUT_OFF) {
        const { messages } = await call(server, AGENT, "getHistory", { sessionId });
        assert.deepEqual(
          messages.map(({ role }) => role),
          ["user", "assistant"],
          sessionId,
        );
        assert.match(textOf(messages[1]), /Here I am again\./, sessionId);
        for (const part of callsIn(messages[1])) assert.match(part.state, /^output-/, sessionId);
      }
      const { events } = await call(server, AGENT, "appendEvents", {
        sessionId: "mixed",
        events: [{ action: "user_message", content: "since the upgrade" }],
      });
      assert.equal(events[0].inserted, true);
    } finally {
      await server.stop();
      await rm(storage, { recursive: true, force: true });
    }
  });
}

/** Replaces the only object's file. */
async function replaceObject(storage, file) {
  const entries = await readdir(storage, { recursive: true });
  const objects = entries.filter((entry) => /[0-9a-f]{64}\.sqlite$/.test(entry));
  assert.equal(objects.length, 1, objects.join());
  const path = join(storage, objects[0]);
  for (const ending of ["-wal", "-shm"]) await rm(path + ending, { force: true });
  await cp(file, path);
}

/**
 * Checks that this build returns everything that the older build returned. New fields are allowed.
 */
function assertAnswered(then, now, at) {
  if (Array.isArray(then)) {
    assert.equal(now.length, then.length, at);
    then.forEach((item, index) => assertAnswered(item, now[index], `${at}[${index}]`));
  } else if (then !== null && typeof then === "object") {
    for (const [name, value] of Object.entries(then)) {
      if (!/^tokens/.test(name)) assertAnswered(value, now?.[name], `${at}.${name}`);
    }
  } else {
    assert.deepEqual(now, then, at);
  }
}
