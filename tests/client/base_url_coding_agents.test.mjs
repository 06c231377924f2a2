// The base URL with unmodified coding agents, run without a terminal: Claude Code, and pi over
// OpenAI's two APIs. Each runs against a provider directly and through an agent, in its own home
// and folder, and must print the same answers and change the same files.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, test } from "node:test";
import { documents } from "../workerd/documents.mjs";
import { normalized, startComparison } from "./compare_with_provider.mjs";

const { provider, run, compare, tokenOf, urlsOf, baseOf } = await startComparison();

const PACKAGES = join(import.meta.dirname, "coding_agents/node_modules");
const CLAUDE_CODE = join(PACKAGES, "@anthropic-ai/claude-code/cli-wrapper.cjs");
const PI = join(PACKAGES, "@mariozechner/pi-coding-agent/dist/cli.js");
const LONGEST_RUN_MS = 60_000;

const folders = [];
after(() => Promise.all(folders.map((folder) => rm(folder, { recursive: true, force: true, maxRetries: 5 }))));

/** A home folder for the coding agent, and a working folder with a note. */
async function makeFolders() {
  const folder = await mkdtemp(join(tmpdir(), "session-agent-coding-"));
  folders.push(folder);
  const [home, work, bin] = ["home", "work", "bin"].map((name) => join(folder, name));
  await Promise.all([home, work, bin].map((path) => mkdir(path)));
  await writeFile(join(work, "note.txt"), "The lake is blue.\n");
  await writeFile(join(bin, "claude"), `#!/bin/sh\nexec "${process.execPath}" "${CLAUDE_CODE}" "$@"\n`, {
    mode: 0o755,
  });
  return { home, work, bin };
}

/** Runs a program that can reach only this machine, and returns its output. */
async function runIn({ home, work, bin }, command, args, env) {
  const child = spawn(command, args, {
    cwd: work,
    env: {
      PATH: `${bin}:${dirname(process.execPath)}:/usr/bin:/bin`,
      HOME: home,
      TMPDIR: home,
      HTTPS_PROXY: "http://127.0.0.1:9",
      NO_PROXY: "127.0.0.1",
      ...env,
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const output = { stdout: "", stderr: "" };
  for (const name of ["stdout", "stderr"]) child[name].on("data", (more) => (output[name] += more));
  const timer = setTimeout(() => child.kill("SIGKILL"), LONGEST_RUN_MS);
  const code = await new Promise((resolve) => child.once("close", resolve));
  clearTimeout(timer);
  assert.equal(code, 0, `${output.stdout}\n${output.stderr}`);
  return output.stdout;
}

const eventsIn = (text) =>
  text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line));

const CLAUDE = {
  CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
  DISABLE_AUTOUPDATER: "1",
};

/** Claude Code in a folder: sends a prompt, and returns the events to compare. */
const claude = (model) => async (urls, apiKey) => {
  const folders = await makeFolders();
  const env = { ...CLAUDE, ANTHROPIC_BASE_URL: urls.anthropic, ANTHROPIC_API_KEY: apiKey };
  const ask = async (prompt, ...more) => {
    const args = ["-p", prompt, "--model", model, "--output-format", "stream-json", "--verbose"];
    const printed = await runIn(folders, "claude", [...args, "--allowedTools", "Read,Write", ...more], env);
    const events = eventsIn(printed).map(({ type, message, result, is_error, num_turns, stop_reason, usage }) =>
      type === "system" ? [] : { type, message, result, is_error, num_turns, stop_reason, usage },
    );
    return normalized(events.flat());
  };
  return { folders, ask };
};

/** Models of Claude Code: an older one, and its default one, to which it sends instructions between messages. */
const CLAUDES = ["claude-haiku-4-5", "claude-opus-5-5"];

/** The rights of a coding agent's token. */
const allow = { models: CLAUDES.map((name) => `anthropic:${name}`), systemInstructions: true, clientTools: true };

for (const model of CLAUDES) {
  test(`claude_code_with_${model}_answers_and_edits_files`, async () => {
    const results = await compare(
      claude(model),
      async ({ folders, ask }) => {
        const hi = await ask("hi");
        const read = await ask('use Read {"file_path":"note.txt"}');
        const written = await ask('use Write {"file_path":"new.txt","content":"It rains."}');
        return [hi, read, written, await readFile(join(folders.work, "new.txt"), "utf8")];
      },
      { allow },
    );
    assert.equal(results[0].at(-1).result, "Hello, dear friend.");
    assert.match(results[1].at(-1).result, /The lake is blue/);
    assert.equal(results[3], "It rains.");
  });
}

test("claude_code_keeps_a_conversation_in_one_session_and_gets_the_memory", async () => {
  const agent = "claude-code";
  await run(agent, "defineBlock", { label: "memory", kind: "writable", description: "Facts" });
  const { ask } = await claude("claude-haiku-4-5")(urlsOf(agent), await tokenOf(agent, { allow }));
  await ask('use Read {"file_path":"note.txt"}');
  await ask("hi", "--continue");
  const { sessions } = await run(agent, "listSessions", {});
  assert.equal(sessions.length, 1);
  const { messages } = await run(agent, "getHistory", { sessionId: sessions[0].id });
  assert.deepEqual(
    messages.map(({ role }) => role),
    ["user", "assistant", "user", "assistant"],
  );
  assert.deepEqual(
    messages[1].parts.map(({ type, state }) => state ?? type),
    ["output-available", "text"],
  );
  assert.match(JSON.stringify(provider.requests.at(-1).body.system), /MEMORY \(Facts\)/);
  assert.ok(provider.requests.at(-1).body.tools.some(({ name }) => name === "set_context"));
});

test("the_documented_command_runs", async () => {
  const blocks = documents.flatMap(({ blocks }) => blocks).filter(({ language }) => language === "sh agent");
  assert.equal(blocks.length, 2);
  for (const { path, text } of blocks) {
    const agent = `printed-${path.replaceAll(/\W/g, "-")}`;
    const env = { ...CLAUDE, BASE: baseOf(agent), TOKEN: await tokenOf(agent, { allow }) };
    const command = text.replace(/\bclaude$/m, "claude -p hi");
    assert.notEqual(command, text);
    assert.equal(await runIn(await makeFolders(), "/bin/sh", ["-ec", command], env), "Hello, dear friend.\n");
    assert.equal((await run(agent, "listSessions", {})).sessions.length, 1);
  }
});

/** pi in a folder, over one of the APIs. */
const pi = (api) => async (urls, apiKey) => {
  const folders = await makeFolders();
  const settings = join(folders.home, ".pi/agent");
  await mkdir(settings, { recursive: true });
  const ours = { baseUrl: urls.openai, apiKey: "OPENAI_API_KEY", api, models: [{ id: "gpt-test" }] };
  await writeFile(join(settings, "models.json"), JSON.stringify({ providers: { ours } }));
  const ask = async (prompt, ...more) => {
    const args = [PI, "--mode", "json", "-p", "--provider", "ours", "--model", "gpt-test", ...more, prompt];
    const printed = await runIn(folders, process.execPath, args, { OPENAI_API_KEY: apiKey, PI_OFFLINE: "1" });
    // How much of the message an update contains depends on how many updates arrive at once.
    const events = eventsIn(printed).map(({ type, assistantMessageEvent: update, ...event }) =>
      type === "message_update" ? { kind: update.type, delta: update.delta } : { type, ...event },
    );
    return normalized(events.filter(({ type }) => type !== "session"));
  };
  return { folders, ask };
};

for (const api of ["openai-completions", "openai-responses"]) {
  test(`pi_over_${api.replace("-", "_")}_answers_and_edits_files`, async () => {
    const results = await compare(pi(api), async ({ folders, ask }) => {
      const read = await ask('use read {"path":"note.txt"}');
      const hi = await ask("hi", "--continue");
      const written = await ask('use write {"path":"new.txt","content":"It rains."}');
      return [read, hi, written, await readFile(join(folders.work, "new.txt"), "utf8")];
    });
    assert.match(JSON.stringify(results[0].at(-1)), /It is The lake is blue/);
    assert.equal(results[3], "It rains.");
  });
}
