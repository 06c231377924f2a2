// Anthropic's memory tool (`memory_20250818`) over a loadable block: each file is a document, and a
// directory is a common prefix of keys. The answers have the wording of the SDK's file system tool.

import type { MemoryToolHandlers } from "@anthropic-ai/sdk/helpers/beta/memory";
import type { AgentClient } from "./agent.js";
import { BlockNotFoundError, SkillNotFoundError } from "./errors.js";
import { asAgent } from "./writer.js";

export interface MemoryOptions {
  /** The loadable block with the files. The first file defines it. Default: `memories`. */
  label?: string;
}

interface File {
  key: string;
  bytes: number;
}

const ROOT = "/memories";
const LABEL = "memories";
const LINE_DIGITS = 6;
const LISTED_DEPTH = 2;
const SNIPPET_LINES = 2;

/**
 * The handlers of Anthropic's memory tool, for `betaMemoryTool` of `@anthropic-ai/sdk`. The
 * files below `/memories` are documents of a loadable block of the agent, across its sessions.
 */
export function memoryHandlers(agent: AgentClient, { label = LABEL }: MemoryOptions = {}): MemoryToolHandlers {
  const files = new Files(agent, label);
  return {
    view: async ({ path, view_range: range }) => {
      const key = keyOf(path);
      const content = key === "" ? undefined : await files.find(key);
      return content === undefined ? listing(path, key, await files.under(key)) : numbered(path, content, range);
    },

    create: async ({ path, file_text: text }) => {
      const key = keyOf(path);
      if (key === "" || (await files.find(key)) !== undefined) throw new Error(`File ${path} already exists`);
      await files.write(key, text);
      return `File created successfully at: ${path}`;
    },

    str_replace: async ({ path, old_str: old, new_str: text }) => {
      const key = keyOf(path);
      const content = await files.get(key, path);
      const count = old === "" ? 0 : content.split(old).length - 1;
      if (count === 0)
        throw new Error(`No replacement was performed, old_str \`${old}\` did not appear verbatim in ${path}.`);
      const at = linesWith(content, old);
      if (count > 1)
        throw new Error(
          `No replacement was performed. Multiple occurrences of old_str \`${old}\` in lines: ${[...new Set(at)].join(", ")}. Please ensure it is unique`,
        );
      const changed = content.replace(old, () => text);
      await files.write(key, changed);
      const lines = changed.split("\n");
      const line = at[0] ?? 1;
      const first = Math.max(0, line - 1 - SNIPPET_LINES);
      return `The memory file has been edited. Here is the snippet showing the change (with line numbers):\n${number(lines.slice(first, line + SNIPPET_LINES), first)}`;
    },

    insert: async ({ path, insert_line: line, insert_text: text }) => {
      const key = keyOf(path);
      const lines = (await files.get(key, path)).split("\n");
      if (!(line >= 0 && line <= lines.length)) {
        throw new Error(
          `Invalid \`insert_line\` parameter: ${line}. It should be within the range of lines of the file: [0, ${lines.length}]`,
        );
      }
      lines.splice(line, 0, text.replace(/\n$/, ""));
      await files.write(key, lines.join("\n"));
      return `The file ${path} has been edited.`;
    },

    delete: async ({ path }) => {
      const key = keyOf(path);
      if (key === "") throw new Error(`Cannot delete the ${ROOT} directory itself`);
      const keys = await files.keysAt(key);
      if (keys.length === 0) throw new Error(`The path ${path} does not exist`);
      for (const one of keys) await files.remove(one);
      return `Successfully deleted ${path}`;
    },

    rename: async ({ old_path: from, new_path: to }) => {
      const [oldKey, newKey] = [keyOf(from), keyOf(to)];
      if (oldKey === "") throw new Error(`Cannot rename the ${ROOT} directory itself`);
      const keys = await files.keysAt(oldKey);
      if (keys.length === 0) throw new Error(`The path ${from} does not exist`);
      if (newKey === "" || (await files.keysAt(newKey)).length > 0)
        throw new Error(`The destination ${to} already exists`);
      if (newKey.startsWith(`${oldKey}/`)) throw new Error(`${from} cannot be moved into itself`);
      // All files are written to their new paths before the first old one is deleted.
      for (const key of keys) await files.write(`${newKey}${key.slice(oldKey.length)}`, await files.get(key, from));
      for (const key of keys) await files.remove(key);
      return `Successfully renamed ${from} to ${to}`;
    },
  };
}

/** The key of a path below the root; "" is the root itself. Paths outside the root are errors. */
function keyOf(path: string): string {
  if (typeof path !== "string" || !(path === ROOT || path.startsWith(`${ROOT}/`)))
    throw new Error(`Path must start with ${ROOT}, got: ${path}`);
  const steps = decoded(path)
    .slice(ROOT.length)
    .split("/")
    .filter((step) => step !== "");
  if (steps.some((step) => step === "." || step === ".." || step.includes("\\")))
    throw new Error(`Path ${path} would escape ${ROOT} directory`);
  return steps.join("/");
}

/** `%2e%2e` is rejected, too, in case a key is decoded later. */
function decoded(path: string): string {
  try {
    const text = decodeURIComponent(path);
    return /(?:^|[/\\])\.{1,2}(?:[/\\]|$)/.test(text) ? text : path;
  } catch {
    return path;
  }
}

class Files {
  #agent: AgentClient;
  #label: string;

  constructor(agent: AgentClient, label: string) {
    this.#agent = agent;
    this.#label = label;
  }

  async find(key: string): Promise<string | undefined> {
    try {
      // Without a session's id, the document is returned but not loaded into a context.
      return (await this.#agent.loadSkill({ label: this.#label, key })).content;
    } catch (error) {
      if (error instanceof SkillNotFoundError || error instanceof BlockNotFoundError) return undefined;
      throw error;
    }
  }

  async get(key: string, path: string): Promise<string> {
    const content = key === "" ? undefined : await this.find(key);
    if (content !== undefined) return content;
    const isDirectory = (await this.under(key)).length > 0 || key === "";
    throw new Error(
      isDirectory ? `The path ${path} is not a file.` : `The path ${path} does not exist. Please provide a valid path.`,
    );
  }

  /** The files below a directory: `{ key, bytes }`. */
  async under(directory: string): Promise<File[]> {
    const found: File[] = [];
    try {
      for await (const { key, bytes } of this.#agent.skills({ label: this.#label, limit: 1000 })) {
        if (directory === "" || key.startsWith(`${directory}/`)) found.push({ key, bytes: bytes ?? 0 });
      }
    } catch (error) {
      if (!(error instanceof BlockNotFoundError)) throw error;
    }
    return found;
  }

  /** The file of this name, or the files of the directory. */
  async keysAt(key: string): Promise<string[]> {
    if ((await this.find(key)) !== undefined) return [key];
    return (await this.under(key)).map((file) => file.key);
  }

  async write(key: string, content: string): Promise<void> {
    const document = { label: this.#label, key, content };
    const put = () => asAgent((source) => this.#agent.putSkill({ ...document, ...source }));
    try {
      await put();
    } catch (error) {
      if (!(error instanceof BlockNotFoundError)) throw error;
      await this.#agent.defineBlock({ label: this.#label, kind: "loadable", description: "The model's own files" });
      await put();
    }
  }

  async remove(key: string): Promise<void> {
    await this.#agent.deleteSkill({ label: this.#label, key });
  }
}

function listing(path: string, key: string, files: File[]): string {
  if (files.length === 0 && key !== "")
    throw new Error(`The path ${path} does not exist. Please provide a valid path.`);
  const sizes = new Map<string, number>();
  for (const { key: file, bytes } of files) {
    const steps = file.slice(key === "" ? 0 : key.length + 1).split("/");
    if (steps.some((step) => step.startsWith(".") || step === "node_modules")) continue;
    for (let depth = 1; depth <= Math.min(steps.length, LISTED_DEPTH); depth += 1) {
      const name = `${steps.slice(0, depth).join("/")}${depth < steps.length ? "/" : ""}`;
      sizes.set(name, (sizes.get(name) ?? 0) + bytes);
    }
  }
  const base = path.replace(/\/+$/, "");
  const lines = [...sizes]
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([name, bytes]) => `${sizeOf(bytes)}\t${base}/${name}`);
  const total = sizeOf(files.reduce((sum, { bytes }) => sum + bytes, 0));
  return [
    `Here're the files and directories up to ${LISTED_DEPTH} levels deep in ${path}, excluding hidden items and node_modules:`,
    `${total}\t${path}`,
    ...lines,
  ].join("\n");
}

function numbered(path: string, content: string, range: number[] | undefined): string {
  const lines = content.split("\n");
  const [first, last] = range?.length === 2 ? (range as [number, number]) : [1, -1];
  const [from, to] = [Math.max(1, first), last === -1 ? lines.length : last];
  return `Here's the content of ${path} with line numbers:\n${number(lines.slice(from - 1, to), from - 1)}`;
}

const number = (lines: string[], before: number): string =>
  lines.map((line, n) => `${String(before + n + 1).padStart(LINE_DIGITS)}\t${line}`).join("\n");

/** The numbers of the lines in which a text begins. */
function linesWith(content: string, text: string): number[] {
  const found: number[] = [];
  for (let at = content.indexOf(text); at >= 0; at = content.indexOf(text, at + text.length))
    found.push(content.slice(0, at).split("\n").length);
  return found;
}

function sizeOf(bytes: number): string {
  const units = ["B", "K", "M", "G"];
  const power = bytes === 0 ? 0 : Math.min(Math.floor(Math.log(bytes) / Math.log(1024)), units.length - 1);
  const size = bytes / 1024 ** power;
  return `${Number.isInteger(size) ? size : size.toFixed(1)}${units[power]}`;
}
