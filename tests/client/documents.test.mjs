// The programs of docs/adapters.md, docs/migrating.md and docs/operations-guide.md are run as
// printed and type-checked. The adapters and the client are type-checked too.

import "./resolve_packages.mjs";
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, readdir, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, test } from "node:test";
import { promisify } from "node:util";
import Anthropic from "@anthropic-ai/sdk";
import { BaseLlm, LogLevel, setLogLevel } from "@google/adk";
import { setTracingDisabled } from "@openai/agents-core";
import { assistantMessage, ScriptedModel } from "@openai/agents-core/testing";
import { ChatClient, fetchServerSentEvents } from "@tanstack/ai-client";
import { transform } from "esbuild";
import { CLIENT, ROOT, TSC } from "../../scripts/paths.mjs";
import { NODE } from "../../scripts/wrangler.mjs";
import { clientProgram, documents } from "../workerd/documents.mjs";
import { startServer } from "../workerd/harness.mjs";
import { compilerErrors } from "./compile_typescript.mjs";

const GUIDES = ["docs/adapters.md", "docs/migrating.md", "docs/operations-guide.md"];

const guides = GUIDES.map((path) => documents.find((document) => document.path === path));
const server = await startServer();
after(() => server.stop());

// Inside the tree, so that packages are found by their names.
const folder = await mkdtemp(join(import.meta.dirname, ".programs-"));
after(() => rm(folder, { recursive: true, force: true }));

/** The variables that the programs are given, and their types. */
const GIVEN = "const { env, gpt, text, gemini, anthropic, oldObject, exported, console } = globalThis.guided;";
const TYPES = [
  "declare const env: { MEMORY: Fetcher; BACKUPS: R2Bucket; AGENTS: DurableObjectNamespace; SESSION_AGENT_TOKEN: string };",
  'declare const gpt: import("@openai/agents-core").Model;',
  'declare const gemini: import("@google/adk").BaseLlm;',
  'declare const text: import("@tanstack/ai").AnyTextAdapter;',
  'declare const anthropic: import("@anthropic-ai/sdk").default;',
  "declare const oldObject: { sql: SqlStorage };",
  "declare const exported: string;",
].join(" ");

/** The storage of an object of the Agents SDK, as far as its tables are read. */
function oldStorage() {
  const db = new DatabaseSync(":memory:");
  db.exec(
    "CREATE TABLE cf_agents_session_messages (session_id TEXT, id TEXT, seq INTEGER, parent_id TEXT, type TEXT, role TEXT, content TEXT, created_at INTEGER)",
  );
  const message = { id: "old", role: "user", parts: [{ type: "text", text: "From before." }] };
  db.prepare("INSERT INTO cf_agents_session_messages VALUES ('trip', 'old', 1, NULL, 'message', 'user', ?, 1)").run(
    JSON.stringify(message),
  );
  return { exec: (sql) => db.prepare(sql).all() };
}

const exportedChat = {
  id: "from-chatgpt",
  title: "Oslo",
  current_node: "n",
  mapping: {
    n: {
      parent: null,
      children: [],
      message: { author: { role: "user" }, content: { content_type: "text", parts: ["Rain?"] } },
    },
  },
};

const NOTED = {
  id: "m",
  type: "message",
  role: "assistant",
  model: "m",
  content: [{ type: "text", text: "Noted." }],
  stop_reason: "end_turn",
  usage: {},
};

/** A text adapter of TanStack AI that answers with one text. */
function scriptedText(delta) {
  return {
    kind: "text",
    name: "scripted",
    model: "scripted",
    async *chatStream({ runId, threadId }) {
      yield { type: "RUN_STARTED", runId, threadId };
      yield { type: "TEXT_MESSAGE_START", messageId: "1", role: "assistant" };
      yield { type: "TEXT_MESSAGE_CONTENT", messageId: "1", delta };
      yield { type: "TEXT_MESSAGE_END", messageId: "1" };
      yield { type: "RUN_FINISHED", runId, threadId, finishReason: "stop" };
    },
  };
}

/** A model of ADK that answers with one text. */
class ScriptedLlm extends BaseLlm {
  #text;
  constructor(text) {
    super({ model: "scripted" });
    this.#text = text;
  }
  async *generateContentAsync() {
    yield { content: { role: "model", parts: [{ text: this.#text }] } };
  }
}

/** One page of TanStack AI sends a message through a guide's route, and another page loads the conversation. */
async function chatThrough(route) {
  const fetchClient = (address, init) => route.fetch(new Request(address, init));
  const connection = fetchServerSentEvents("https://app.example.com/chat", { fetchClient });
  const page = new ChatClient({ connection, threadId: "trip" });
  await page.sendMessage("Where to?");
  const { messages } = await connection.hydrate("trip");
  assert.deepEqual(
    messages.map(({ parts }) => parts[0].content),
    ["Where to?", "Rome."],
  );
}

test("the_documented_programs_run", async () => {
  setTracingDisabled(true);
  setLogLevel(LogLevel.ERROR);
  const pathOf = ({ pathname, search }) => `${pathname}${search}`;
  const memory = { fetch: (url, init) => server.fetch(pathOf(new URL(url)), init, { via: "service" }) };
  globalThis.guided = {
    env: { MEMORY: memory, SESSION_AGENT_TOKEN: "" },
    gpt: new ScriptedModel([[assistantMessage("I see.")], [assistantMessage("Tea.")]]),
    text: scriptedText("Rome."),
    gemini: new ScriptedLlm("Noted."),
    oldObject: { sql: oldStorage() },
    exported: JSON.stringify([exportedChat]),
    console: { log: () => {} },
    anthropic: new Anthropic({ apiKey: "none", fetch: async () => Response.json(NOTED) }),
  };
  await server.call("kept", "createSession", { id: "trip" });
  await server.call("kept", "appendEvents", {
    sessionId: "trip",
    events: [{ id: "e", action: "user_message", content: "Rain?" }],
  });
  await server.call("kept", "defineBlock", { label: "facts", kind: "searchable" });
  await server.call("kept", "setEntry", { label: "facts", key: "k", content: "Likes tea." });
  for (const [n, guide] of guides.entries()) {
    const { code } = await transform(clientProgram(guide, GIVEN), { loader: "ts" });
    await writeFile(join(folder, `${n}.mjs`), code);
    const { default: route } = await import(join(folder, `${n}.mjs`));
    if (route !== undefined) await chatThrough(route);
  }
  const history = async (agent, session) =>
    (await server.call(agent, "getHistory", { sessionId: session })).body.messages;
  assert.deepEqual(
    (await history("alice", "openai")).filter(({ role }) => role !== "system").map(({ parts }) => parts[0].text),
    ["I like tea.", "I see.", "What do I like?", "Tea."],
  );
  assert.deepEqual(
    (await history("moved", "chat")).map(({ id }) => id),
    ["q1", "a1"],
  );
  assert.deepEqual(
    (await history("moved", "trip")).map(({ id }) => id),
    ["old"],
  );
  assert.equal((await history("moved", "responses")).length, 2);
  assert.equal((await history("moved", "from-chatgpt")).length, 1);
  assert.equal((await history("moved", "chain")).length, 2);
  assert.deepEqual(
    (await history("restored", "trip")).map(({ id }) => id),
    ["e"],
  );
  const { body: restored } = await server.call("restored", "listEntries", { label: "facts" });
  assert.deepEqual(
    restored.entries.map(({ content }) => content),
    ["Likes tea."],
  );
  assert.deepEqual(
    (await history("moved", "thread")).map(({ id }) => id),
    ["t1"],
  );
  const { entries } = (await server.call("moved", "listEntries", { label: "facts" })).body;
  assert.deepEqual(entries.map(({ key }) => key).toSorted(), ["m1", "z1"]);
  assert.deepEqual(
    (await history("bob", "trip")).map(({ parts }) => parts[0].text),
    ["Where to?", "Rome."],
  );
  const [trip] = (await server.call("trips", "listSessions", {})).body.sessions;
  assert.deepEqual(
    (await history("trips", trip.id)).map(({ parts }) => parts[0].text),
    ["I like tea.", "Noted."],
  );
  assert.equal((await server.call("threads", "listSessions", {})).body.sessions.length, 2);
});

test("the_programs_and_adapters_type_check", async () => {
  const types = (await readdir(join(CLIENT, "dist"))).filter((name) => name.endsWith(".d.ts"));
  // Beside the packages, as in a caller's project.
  for (const file of types) await cp(join(CLIENT, "dist", file), join(folder, "session-agent", file));
  const files = guides.map(({ path }) => `${path.replaceAll("/", "-")}.ts`);
  for (const [n, guide] of guides.entries()) await writeFile(join(folder, files[n]), clientProgram(guide, TYPES));
  await cp(join(import.meta.dirname, "adapter_types.ts"), join(folder, "adapter_types.ts"));
  const problems = await compilerErrors(folder, [...files, "adapter_types.ts"], {
    // Errors in the packages' own types are ignored.
    skipLibCheck: true,
    paths: { "session-agent": ["./session-agent/index.d.ts"], "session-agent/*": ["./session-agent/*.d.ts"] },
  });
  assert.equal(problems, "");
});

test("the_client_type_checks", async () => {
  const project = join(folder, "client");
  // The frameworks are in two folders of packages. Each is compiled with its own sources.
  for (const packages of ["tests/client/node_modules", "tests/node_modules"])
    await linkPackages(join(ROOT, packages), join(project, "node_modules"));
  await symlink(join(CLIENT, "src"), join(project, "src"), "dir");
  for (const file of ["tsconfig.json", "package.json"]) await cp(join(CLIENT, file), join(project, file));
  const args = [TSC, "--project", project, "--noEmit", "--preserveSymlinks", "--pretty", "false"];
  const problems = await promisify(execFile)(NODE, args, { cwd: project }).then(
    () => "",
    ({ stdout, message }) => stdout || message,
  );
  assert.equal(problems, "");
});

/** Links each package of a folder, unless there is one of its name. */
async function linkPackages(from, to) {
  await mkdir(to, { recursive: true });
  for (const name of (await readdir(from)).filter((one) => !one.startsWith("."))) {
    if (name.startsWith("@")) await linkPackages(join(from, name), join(to, name));
    else await symlink(join(from, name), join(to, name), "dir").catch(unlessThere);
  }
}

function unlessThere(error) {
  if (error.code !== "EEXIST") throw error;
}
