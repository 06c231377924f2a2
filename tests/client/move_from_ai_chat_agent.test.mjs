// The guide "Move from `AIChatAgent`": one project with a class that keeps its name and its
// storage, first in its old form and then as docs/agents-sdk.md shows.

import assert from "node:assert/strict";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { ROOT } from "../../scripts/paths.mjs";
import { until } from "../console/browser.mjs";
import { dev, project } from "./packed_project.mjs";

const CONFIG = `name = "moving"
main = "src/index.ts"
compatibility_date = "2026-11-17"

[[durable_objects.bindings]]
name = "ChatAgent"
class_name = "ChatAgent"

[[migrations]]
tag = "v1"
new_sqlite_classes = ["ChatAgent"]
`;
const BOUND = `
[[durable_objects.bindings]]
name = "SESSION_AGENT"
class_name = "ChatAgent"
`;

/** The tables as `AIChatAgent` creates and fills them. */
const BEFORE = `import { DurableObject } from "cloudflare:workers";
export class ChatAgent extends DurableObject {
  fetch() {
    const { sql } = this.ctx.storage;
    sql.exec("CREATE TABLE cf_ai_chat_agent_messages (id TEXT PRIMARY KEY, message TEXT NOT NULL, created_at DATETIME DEFAULT CURRENT_TIMESTAMP)");
    sql.exec("CREATE TABLE cf_agents_state (id TEXT PRIMARY KEY NOT NULL, state TEXT)");
    sql.exec("INSERT INTO cf_agents_state VALUES ('cf_state_row_id', '{}')");
    const messages = [["q1", "user", "Do you know me?"], ["a1", "assistant", "From before."]];
    for (const [n, [id, role, text]] of messages.entries())
      sql.exec("INSERT INTO cf_ai_chat_agent_messages VALUES (?, ?, ?)", id, JSON.stringify({ id, role, parts: [{ type: "text", text }] }), "2026-01-02 03:04:0" + n);
    return new Response("done");
  }
}
export default { fetch: (request, env) => new URL(request.url).pathname === "/fill" ? env.ChatAgent.getByName("ann").fetch(request) : new Response("ready") };
`;

const sources = await mkdtemp(join(tmpdir(), "session-agent-moving-"));
await mkdir(join(sources, "src"));
await writeFile(join(sources, "wrangler.toml"), CONFIG);
await writeFile(join(sources, "src/index.ts"), BEFORE);
const app = await project(sources);
after(async () => {
  await app.remove();
  await rm(sources, { recursive: true });
});

test("an_ai_chat_agent_class_moves_with_its_conversation", async () => {
  const before = await dev(app.folder);
  assert.equal(await (await fetch(`${before.url}/fill`)).text(), "done");
  await before.stop();

  const guide = await readFile(join(ROOT, "docs/agents-sdk.md"), "utf8");
  const [, program] = guide.split("## Move from `AIChatAgent`")[1].match(/^```ts own\n(.*?)^```$/ms);
  await writeFile(
    join(app.folder, "src/index.ts"),
    `${program}\nimport { routeSessionAgent } from "session-agent/worker";\nexport default { fetch: async (request, env) => (await routeSessionAgent(request, env)) ?? new Response("none") };\n`,
  );
  await writeFile(join(app.folder, "wrangler.toml"), `${CONFIG}${BOUND}`);
  const texts = (messages) => messages.map(({ parts }) => parts.at(-1).text);
  for (const visit of [1, 2]) {
    const server = await dev(app.folder, "--var", "AUTH:local");
    try {
      const ask = async (operation, input) =>
        await (
          await fetch(`${server.url}/agents/session-agent/ann/rpc/${operation}`, {
            method: "POST",
            body: JSON.stringify(input),
          })
        ).json();
      const { messages } = await ask("getHistory", { sessionId: "default" });
      assert.deepEqual(texts(messages).slice(0, 2), ["Do you know me?", "From before."], JSON.stringify(messages));
      assert.equal(messages.length, 2 * visit);
      const notImported = /Not imported: cf_agents_state/;
      if (visit === 1) await until(server.output, (output) => notImported.test(output));
      const message = { id: `q${visit + 1}`, role: "user", parts: [{ type: "text", text: "Hello again" }] };
      assert.equal((await ask("runTurn", { sessionId: "default", message })).finishReason, "stop");
      await until(server.output, (output) => /"operation":"runTurn"/.test(output));
      assert.equal(notImported.test(server.output()), visit === 1);
    } finally {
      await server.stop();
    }
  }
});
