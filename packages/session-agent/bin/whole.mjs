// `npx session-agent export` and `import`: a whole agent to a file and back. An interrupted export
// leaves `FILE.part`, and resumes there.

import { createReadStream, createWriteStream, existsSync } from "node:fs";
import { rename, stat, truncate } from "node:fs/promises";
import { Readable, Writable } from "node:stream";
import { parseArgs } from "node:util";

export const USAGE = `Usage: session-agent export AGENT FILE [--url URL] [--resume]
       session-agent import AGENT FILE [--url URL] [--allow-sources]

FILE: a path, or - for the standard output or input.
--url: the Worker's URL. Default: SESSION_AGENT_URL, else http://localhost:8787.
SESSION_AGENT_TOKEN: the Worker's secret, if it has one.
--resume: continues FILE.part from an interrupted export.
--allow-sources: accepts block sources, MCP servers and frozen prompts from the file.`;

/** How often an export resumes automatically after the connection broke without a new cursor. */
const MAX_BREAKS = 5;
const PAUSE_MS = 1000;
const SHOWN_EVERY_MS = 1000;
const NEWLINE = 10;
const CURSOR = '{"type":"cursor","after":';
/** A cursor contains three numbers and a session's id. Longer lines are not cursors. */
const MAX_CURSOR_BYTES = 4096;

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Runs a command. Returns the message of a failure. */
export async function runWhole(
  command,
  args,
  { env = process.env, stdout = process.stdout, stderr = process.stderr, stdin = process.stdin, signal } = {},
) {
  const options = { url: { type: "string" }, resume: { type: "boolean" }, "allow-sources": { type: "boolean" } };
  let parsed;
  try {
    parsed = parseArgs({ args, options, allowPositionals: true });
  } catch (error) {
    return `${error.message}\n${USAGE}`;
  }
  const { values, positionals } = parsed;
  const [name, file, ...more] = positionals;
  const hasWrongOption = command === "export" ? values["allow-sources"] : values.resume;
  if (!name || !file || more.length > 0 || hasWrongOption) return USAGE;
  const { sessionAgent } = await import("../dist/index.js");
  const url = values.url ?? env.SESSION_AGENT_URL ?? "http://localhost:8787";
  const progress = showing(stderr);
  try {
    const agent = sessionAgent(url, name, { token: env.SESSION_AGENT_TOKEN });
    if (command === "export")
      return await exportTo(agent, file, { progress, stdout, stderr, signal, isResumed: values.resume });
    const source = file === "-" ? stdin : createReadStream(file);
    const imported = await agent.importAgent(Readable.toWeb(source), {
      allowSources: values["allow-sources"],
      onProgress: progress.show,
      signal,
    });
    progress.end();
    stdout.write(`${JSON.stringify(imported)}\n`);
  } catch (error) {
    progress.end();
    if (signal?.aborted) return "Stopped. Complete sessions were imported. To continue, run the same command again.";
    return error.message;
  }
}

async function exportTo(agent, file, { progress, stdout, stderr, signal, isResumed }) {
  if (file === "-") {
    if (isResumed) return "An export to the standard output can't be resumed: use a file.";
    const stream = await agent.exportAgent({ onProgress: progress.show, signal });
    await stream.pipeTo(Writable.toWeb(stdout), { preventClose: true });
    return progress.end();
  }
  if (existsSync(file)) return `${file} already exists. Use another file, or move this one.`;
  const part = `${file}.part`;
  if (existsSync(part) && !isResumed)
    return `${part} is from an interrupted export. Continue with --resume, or delete it.`;
  let [breaks, newest] = [0];
  for (;;) {
    const { bytes, after } = await lastCursor(part);
    if (after !== newest) [breaks, newest] = [0, after];
    if (existsSync(part)) await truncate(part, bytes);
    try {
      const stream = await agent.exportAgent({
        after,
        onProgress: (step) => progress.show({ bytes: bytes + step.bytes }),
        signal,
      });
      await stream.pipeTo(Writable.toWeb(createWriteStream(part, { flags: "a" })), { signal });
      await rename(part, file);
      return progress.end();
    } catch (error) {
      progress.end();
      if (signal?.aborted)
        return `Stopped. ${part} contains the data so far. To continue, run the same command with --resume.`;
      // A refusal by the agent or the disk is final. Any other failure is a lost connection.
      const isRefused = (error.status >= 400 && error.status < 500) || error.syscall !== undefined;
      breaks += 1;
      if (isRefused || breaks > MAX_BREAKS) {
        const kept = (await bytesOf(part)) > 0 ? ` ${part} contains the data so far. To continue, use --resume.` : "";
        return `${error.message}${kept}`;
      }
      stderr.write(`${error.message} Retrying.\n`);
      await pause(PAUSE_MS * breaks);
    }
  }
}

const bytesOf = (path) =>
  stat(path).then(
    ({ size }) => size,
    () => 0,
  );

/** The end of the last complete `cursor` line of a file, and its cursor. */
export async function lastCursor(path) {
  let [at, bytes, after] = [0, 0, undefined];
  if (!existsSync(path)) return { bytes, after };
  // Stores only as much of a line as a cursor may have.
  let line = Buffer.alloc(0);
  for await (const piece of createReadStream(path)) {
    let from = 0;
    for (let end = piece.indexOf(NEWLINE); end >= 0; end = piece.indexOf(NEWLINE, from)) {
      const capacity = MAX_CURSOR_BYTES - line.length;
      const whole = Buffer.concat([line, piece.subarray(from, Math.min(end, from + Math.max(capacity, 0)))]).toString();
      if (whole.startsWith(CURSOR) && whole.length < MAX_CURSOR_BYTES) {
        after = JSON.parse(whole).after;
        bytes = at + end + 1;
      }
      line = Buffer.alloc(0);
      from = end + 1;
    }
    const capacity = MAX_CURSOR_BYTES - line.length;
    if (capacity > 0) line = Buffer.concat([line, piece.subarray(from, from + capacity)]);
    at += piece.length;
  }
  return { bytes, after };
}

/** Reports progress: continuously on a terminal, and periodically in a log. */
function showing(stderr) {
  let [shownAt, isShown] = [Date.now(), false];
  return {
    show({ bytes }) {
      if (Date.now() - shownAt < SHOWN_EVERY_MS) return;
      [shownAt, isShown] = [Date.now(), true];
      const text = `${(bytes / 2 ** 20).toFixed(1)} MiB`;
      stderr.write(stderr.isTTY ? `\r${text}` : `${text}\n`);
    },
    end() {
      if (isShown && stderr.isTTY) stderr.write("\n");
    },
  };
}
