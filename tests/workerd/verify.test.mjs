// `verify` on the real runtime, and `npx session-agent verify`: data written by operations is
// consistent, and a corrupt row is reported.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { CLIENT } from "../../scripts/paths.mjs";
import { startServer } from "./harness.mjs";

const SECRET = "a secret of these tests, long enough";
const AUTHORIZED = { authorization: `Bearer ${SECRET}` };
const CLI = join(CLIENT, "bin/session-agent.mjs");

let server;
before(async () => (server = await startServer({ secrets: { SESSION_AGENT_TOKEN: SECRET } })));
after(() => server?.stop());

async function ok(operation, input) {
  const { status, body } = await server.call("sound", operation, input, { headers: AUTHORIZED });
  assert.equal(status, 200, JSON.stringify(body));
  return body;
}

/** The command's output and exit status. */
async function command(agent) {
  const env = { ...process.env, SESSION_AGENT_TOKEN: SECRET };
  const ended = await promisify(execFile)(process.execPath, [CLI, "verify", agent, "--url", server.url], { env }).catch(
    (error) => error,
  );
  const lines = ended.stdout.split("\n").filter((line) => line !== "");
  return { lines: lines.map((line) => JSON.parse(line)), stderr: ended.stderr.trim(), code: ended.code ?? 0 };
}

test("a_consistent_agent_has_no_finding_and_a_corrupt_row_is_named", async () => {
  await ok("createSession", { id: "s" });
  const userMessage = (id) => ({ id, role: "user", parts: [{ type: "text", text: `says ${id}` }] });
  await ok("appendMessages", { sessionId: "s", messages: ["a", "b", "c"].map(userMessage) });
  await ok("appendMessage", { sessionId: "s", parentId: "a", message: userMessage("d") });
  await ok("addCompaction", { sessionId: "s", summary: "S", fromId: "a", toId: "b" });
  await ok("deleteMessages", { sessionId: "s", messageIds: ["b"] });
  const picture = { type: "file", mediaType: "image/png", url: `data:image/png;base64,${"iVBOR".repeat(2000)}` };
  await ok("appendMessage", { sessionId: "s", message: { id: "pic", role: "user", parts: [picture] } });
  await ok("defineBlock", { label: "facts", kind: "searchable" });
  await ok("setEntry", { label: "facts", key: "k", content: "one" });
  await ok("setEntry", { label: "facts", key: "k", content: "two" });
  await ok("search", { query: "says" });
  const { findings, checked, cursor } = await ok("verify", {});
  assert.deepEqual([findings, cursor], [[], null]);
  const consistent = await command("sound");
  assert.deepEqual([consistent.lines, consistent.code], [[], 0]);
  assert.equal(consistent.stderr, `sound: ${checked} rows are consistent.`);

  await server.sql("sound", "UPDATE cf_agents_events SET parent_id = 'x' WHERE id = 'c'");
  await server.sql("sound", "DELETE FROM cf_agents_media_uses");
  const damaged = await command("sound");
  assert.deepEqual(
    damaged.lines.map(({ code, table, sessionId, id }) => [code, table, sessionId, id?.length > 20 ? "hash" : id]),
    [
      ["parent_id_wrong", "cf_agents_events", "s", "c"],
      ["media_use_missing", "cf_agents_events", "s", "pic"],
      ["media_unused", "cf_agents_media", "s", "hash"],
    ],
  );
  assert.deepEqual([damaged.code, damaged.stderr], [1, `sound: 3 findings in ${checked - 1} rows.`]);
});
