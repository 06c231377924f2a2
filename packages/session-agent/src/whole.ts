// Exports and imports a whole agent as a file of JSON lines. Both are streamed: neither side has a whole file in memory.

import type { Connection } from "./connection.js";
import { NetworkError } from "./errors.js";
import type { ImportedAgent } from "./operations.js";
import { counting, type ImportFile, streamOf, type TransferOptions, whole } from "./transfer.js";

export interface ExportAgentOptions extends TransferOptions {
  /** The `after` of the last `cursor` line of an interrupted export. */
  after?: string | undefined;
}

export interface ImportAgentOptions extends TransferOptions {
  /** Trusts the file's block sources, its addresses of tool servers, and its frozen prompts. */
  allowSources?: boolean | undefined;
  /**
   * A longer file is sent in several requests, each with whole sessions. Default: 64 MiB, below
   * Cloudflare's limit for a request on any plan. A request has at most 2,000 sessions.
   */
  partBytes?: number | undefined;
}

const NEWLINE = 10;
const PART_BYTES = 64 * 2 ** 20;
/** The most sessions of one request, which then takes a few seconds of the agent's CPU time. */
const PART_SESSIONS = 2_000;
const DONE = '{"type":"done"';
const END = '{"type":"end"';

const encoder = new TextEncoder();

/** The file as a stream of bytes. The stream fails if the file is incomplete or the connection breaks. */
export async function exportAgent(
  connection: Connection,
  { signal, retry, trace, onProgress, after }: ExportAgentOptions = {},
): Promise<ReadableStream<Uint8Array>> {
  const path = after === undefined ? "/export" : `/export?after=${encodeURIComponent(after)}`;
  const response = await connection.request("exportAgent", path, {}, { signal, retry, trace, isRepeatable: true });
  return response.body!.pipeThrough(counting(onProgress)).pipeThrough(whole("exportAgent", "done"));
}

/** Imports a file part by part. Existing sessions are not written again. */
export async function importAgent(
  connection: Connection,
  file: ImportFile,
  { signal, trace, onProgress, allowSources, partBytes = PART_BYTES }: ImportAgentOptions = {},
): Promise<ImportedAgent> {
  const lines = linesOf(streamOf(file).pipeThrough(counting(onProgress)));
  const parts = new Parts(lines, partBytes);
  const sum: ImportedAgent = { sessions: 0, imported: 0, skipped: 0, events: 0 };
  const path = `/import${allowSources ? "?allowSources=true" : ""}`;
  try {
    while (!parts.isOver) {
      const body = streamOf(parts.next());
      const headers = { "content-type": "application/x-ndjson" };
      const init = { method: "POST", headers, body, duplex: "half" } as RequestInit;
      const response = await connection.request("importAgent", path, init, { signal, trace });
      add(sum, (await response.json()) as ImportedAgent);
    }
  } finally {
    await lines.return(undefined);
  }
  return sum;
}

function add(sum: ImportedAgent, part: ImportedAgent): void {
  for (const field of ["sessions", "imported", "skipped", "events"] as const) sum[field] += part[field];
  const joined = <T>(one: T[] = [], other: T[] = []): T[] => [...new Set([...one, ...other])];
  for (const field of ["leftOut", "toolsWithoutHeaders", "toolsUnavailable"] as const) {
    const all = joined<any>(sum[field], part[field]);
    if (all.length > 0) sum[field] = all;
  }
}

/** Splits a file between sessions. Each part is a complete file. */
class Parts {
  isOver = false;
  #lines: AsyncGenerator<Uint8Array, void, undefined>;
  #partBytes: number;
  #format: unknown;
  #sessions = 0;

  constructor(lines: AsyncGenerator<Uint8Array, void, undefined>, partBytes: number) {
    this.#lines = lines;
    this.#partBytes = partBytes;
  }

  async *next(): AsyncGenerator<Uint8Array, void, undefined> {
    let [bytes, sessions] = [0, 0];
    const isFirst = this.#format === undefined;
    if (!isFirst) yield encoder.encode(`{"type":"agent","format":${this.#format},"continued":true}\n`);
    for (;;) {
      const { done, value: line } = await this.#lines.next();
      if (done) {
        // The agent reports a file without an end.
        this.isOver = true;
        return;
      }
      if (this.#format === undefined) this.#format = formatOf(line);
      bytes += line.byteLength;
      if (begins(line, DONE)) {
        this.isOver = true;
        const { sessions: whole } = JSON.parse(new TextDecoder().decode(line));
        this.#sessions += sessions;
        if (whole !== this.#sessions)
          throw new NetworkError(`The file has ${this.#sessions} sessions of ${whole}: lines were lost.`, {
            operation: "importAgent",
          });
        yield encoder.encode(`{"type":"done","sessions":${sessions}}\n`);
        return;
      }
      yield line;
      if (!begins(line, END)) continue;
      sessions += 1;
      if (bytes < this.#partBytes && sessions < PART_SESSIONS) continue;
      this.#sessions += sessions;
      yield encoder.encode(`{"type":"done","sessions":${sessions}}\n`);
      return;
    }
  }
}

/** The format that the first line names; any other line is refused by the agent. */
function formatOf(line: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder().decode(line)).format ?? null;
  } catch {
    return null;
  }
}

function begins(line: Uint8Array, text: string): boolean {
  for (let at = 0; at < text.length; at += 1) if (line[at] !== text.charCodeAt(at)) return false;
  return true;
}

/** The lines of a file, each with its line break. */
async function* linesOf(file: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array, void, undefined> {
  const reader = file.getReader();
  let rest: Uint8Array[] = [];
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      let from = 0;
      for (let at = value.indexOf(NEWLINE); at >= 0; at = value.indexOf(NEWLINE, from)) {
        yield joinedOf([...rest, value.subarray(from, at + 1)]);
        rest = [];
        from = at + 1;
      }
      if (from < value.length) rest.push(value.subarray(from));
    }
    if (rest.length > 0) yield joinedOf(rest);
  } finally {
    await reader.cancel().catch(() => {});
  }
}

function joinedOf(pieces: Uint8Array[]): Uint8Array {
  if (pieces.length === 1) return pieces[0]!;
  const all = new Uint8Array(pieces.reduce((bytes, piece) => bytes + piece.byteLength, 0));
  let at = 0;
  for (const piece of pieces) {
    all.set(piece, at);
    at += piece.byteLength;
  }
  return all;
}
