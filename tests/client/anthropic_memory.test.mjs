// `session-agent/anthropic-memory` with the SDK's own tool runner, compared with the SDK's file
// system tool. The object is evicted after every write.

import "./resolve_packages.mjs";
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import Anthropic from "@anthropic-ai/sdk";
import { betaMemoryTool } from "@anthropic-ai/sdk/helpers/beta/memory";
import { BetaLocalFilesystemMemoryTool } from "@anthropic-ai/sdk/tools/memory/node";
import { startEvictingServer } from "./evicting_server.mjs";

const { memoryHandlers } = await import("session-agent/anthropic-memory");

const evicting = await startEvictingServer();
after(() => evicting.stop());

const { open } = evicting;

/** An Anthropic client whose API returns these contents, one after the other. */
function scripted(...contents) {
  const requests = [];
  const fetch = async (_, init) => {
    requests.push(JSON.parse(init.body));
    const content = contents[requests.length - 1];
    const message = {
      id: "msg",
      type: "message",
      role: "assistant",
      model: "m",
      content,
      stop_reason: content.some(({ type }) => type === "tool_use") ? "tool_use" : "end_turn",
      usage: { input_tokens: 1, output_tokens: 1 },
    };
    return Response.json(message);
  };
  return { client: new Anthropic({ apiKey: "none", fetch }), requests };
}

const use = (input, id = input.command) => ({ type: "tool_use", id, name: "memory", input });

test("the_sdks_tool_runner_stores_the_models_files", async () => {
  const { client, requests } = scripted(
    [use({ command: "view", path: "/memories" })],
    [
      use({ command: "create", path: "/memories/tea.md", file_text: "Likes tea.\n" }),
      use({ command: "delete", path: "/memories/../etc" }, "out"),
    ],
    [{ type: "text", text: "Noted." }],
  );
  const message = await client.beta.messages.toolRunner({
    model: "m",
    max_tokens: 100,
    messages: [{ role: "user", content: "I like tea." }],
    tools: [betaMemoryTool(memoryHandlers(open("runner")))],
  });
  assert.equal(message.content[0].text, "Noted.");
  assert.deepEqual(requests[0].tools, [{ type: "memory_20250818", name: "memory" }]);
  const [created, refused] = requests[2].messages.at(-1).content;
  assert.match(JSON.stringify(created), /File created successfully at: \/memories\/tea\.md/);
  assert.ok(refused.is_error && /would escape \/memories directory/.test(JSON.stringify(refused)));
  const { content } = await open("runner").loadSkill({ label: "memories", key: "tea.md" });
  assert.equal(content, "Likes tea.\n");
  assert.match(
    (await open("runner").renderPrompt()).prompt,
    /MEMORIES \(The model's own files\) \[loadable\]\n═+\n- tea\.md/,
  );
});

const at = (path) => `/memories/${path}`;
const TEN = Array.from({ length: 10 }, (_, n) => `line ${n + 1}`).join("\n");

/** Commands in this order. For `view` of a directory, only the files are compared. */
const COMMANDS = [
  { command: "view", path: at("a.md") },
  { command: "create", path: at("a.md"), file_text: TEN },
  { command: "create", path: at("a.md"), file_text: "again" },
  { command: "create", path: at("b/c/d.md"), file_text: "deep" },
  { command: "create", path: at("empty.md"), file_text: "" },
  { command: "view", path: at("a.md") },
  { command: "view", path: at("a.md"), view_range: [2, 4] },
  { command: "view", path: at("a.md"), view_range: [9, -1] },
  { command: "view", path: at("a.md"), view_range: [0, 99] },
  { command: "view", path: at("empty.md") },
  { command: "view", path: "/memories" },
  { command: "view", path: at("b") },
  { command: "view", path: at("nothing") },
  { command: "str_replace", path: at("a.md"), old_str: "line 5", new_str: "a $& line\nand another" },
  { command: "str_replace", path: at("a.md"), old_str: "line 99", new_str: "x" },
  { command: "str_replace", path: at("a.md"), old_str: "line", new_str: "x" },
  { command: "str_replace", path: at("b"), old_str: "line", new_str: "x" },
  { command: "str_replace", path: at("nothing"), old_str: "line", new_str: "x" },
  { command: "view", path: at("a.md") },
  { command: "insert", path: at("a.md"), insert_line: 0, insert_text: "first\n" },
  { command: "insert", path: at("a.md"), insert_line: 3, insert_text: "middle\nof two" },
  { command: "insert", path: at("a.md"), insert_line: 99, insert_text: "x" },
  { command: "insert", path: at("a.md"), insert_line: -1, insert_text: "x" },
  { command: "insert", path: at("nothing"), insert_line: 0, insert_text: "x" },
  { command: "insert", path: at("b"), insert_line: 0, insert_text: "x" },
  { command: "view", path: at("a.md") },
  { command: "rename", old_path: at("a.md"), new_path: at("empty.md") },
  { command: "rename", old_path: at("nothing"), new_path: at("x.md") },
  { command: "rename", old_path: at("a.md"), new_path: at("new/a.md") },
  { command: "rename", old_path: at("b"), new_path: at("moved") },
  { command: "rename", old_path: "/memories", new_path: at("x") },
  { command: "view", path: at("moved/c/d.md") },
  { command: "view", path: at("b/c/d.md") },
  { command: "delete", path: at("nothing") },
  { command: "delete", path: at("moved") },
  { command: "delete", path: at("empty.md") },
  { command: "delete", path: "/memories" },
  { command: "view", path: at("moved/c/d.md") },
  { command: "view", path: at("new/a.md") },
  { command: "view", path: "/etc/passwd" },
  { command: "view", path: at("../secret") },
  { command: "create", path: at("a/../../b"), file_text: "x" },
  { command: "rename", old_path: at("new/a.md"), new_path: "/memories/../../x" },
  { command: "delete", path: "" },
];

test("each_command_matches_the_sdks_own_tool", async () => {
  const folder = await mkdtemp(join(tmpdir(), "session-agent-memory-"));
  try {
    const theirs = await BetaLocalFilesystemMemoryTool.init(folder);
    const ours = memoryHandlers(open("commands"));
    for (const command of COMMANDS) {
      const [one, other] = await Promise.all([ours, theirs].map((handlers) => outputOf(handlers, command)));
      assert.equal(one, other, JSON.stringify(command));
    }
  } finally {
    await rm(folder, { recursive: true });
  }
});

async function outputOf(handlers, command) {
  const text = await Promise.resolve()
    .then(() => handlers[command.command](command))
    .catch((error) => `refused: ${error.message}`);
  if (!text.startsWith("Here're")) return text;
  // The size of a directory depends on the file system.
  return text
    .split("\n")
    .filter((line, n) => n === 0 || !/\/$|\t\/memories(\/b)?$/.test(line))
    .join("\n");
}

test("no_path_escapes_the_memory_directory", async () => {
  const handlers = memoryHandlers(open("ways out"));
  await handlers.create({ path: at("in.md"), file_text: "x" });
  for (const path of [
    "/memories/..",
    "/memories/./a",
    "/memories/a/..",
    "/memories/%2e%2e/a",
    "/memories/..%2fa",
    "/memories/%2E./a",
    "/memories\\..\\a",
    "/memories/..\\a",
    "/memoriesx",
    "memories/a",
    "/",
    null,
    undefined,
    7,
    {},
  ]) {
    for (const command of ["view", "create", "str_replace", "insert", "delete"]) {
      await assert.rejects(
        async () =>
          handlers[command]({ path, file_text: "x", old_str: "x", new_str: "y", insert_line: 0, insert_text: "z" }),
        /Path /,
        `${command} ${path}`,
      );
    }
    await assert.rejects(
      async () => handlers.rename({ old_path: at("in.md"), new_path: path }),
      /Path /,
      `rename to ${path}`,
    );
    await assert.rejects(
      async () => handlers.rename({ old_path: path, new_path: at("in.md") }),
      /Path /,
      `rename ${path}`,
    );
  }
  assert.deepEqual(
    (await open("ways out").listSkills({ label: "memories" })).skills.map(({ key }) => key),
    ["in.md"],
  );
});

test("a_directory_cannot_be_moved_into_itself_and_a_listing_shows_two_levels", async () => {
  const handlers = memoryHandlers(open("levels"), { label: "notes" });
  for (const path of ["a/b/c/d.md", "a/.hidden", "node_modules/x", "z.md"])
    await handlers.create({ path: at(path), file_text: "12345678" });
  await assert.rejects(handlers.rename({ old_path: at("a"), new_path: at("a/x") }), /cannot be moved into itself/);
  assert.equal(
    await handlers.view({ path: "/memories/" }),
    "Here're the files and directories up to 2 levels deep in /memories/, excluding hidden items and node_modules:\n32B\t/memories/\n8B\t/memories/a/\n8B\t/memories/a/b/\n8B\t/memories/z.md",
  );
  await assert.rejects(
    handlers.str_replace({ path: at("z.md"), old_str: "", new_str: "x" }),
    /did not appear verbatim/,
  );
});
