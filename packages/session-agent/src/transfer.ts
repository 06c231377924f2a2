// Exports and imports sessions as files of JSON lines. Both are streamed: neither side has a whole file in memory.

import { textReaderOf } from "./bytes.js";
import { errorFrom } from "./error_codes.js";
import { NetworkError } from "./errors.js";
import { type Connection, lost } from "./connection.js";
import type { Imported } from "./operations.js";
import type { CallOptions } from "./options.js";
import { segmentOf } from "./target.js";

export interface TransferOptions extends CallOptions {
  /** Called after each piece of the file. */
  onProgress?: ((progress: Progress) => void) | undefined;
}

export interface Progress {
  bytes: number;
  lines: number;
}

export interface ExportLine {
  type: string;
  [field: string]: any;
}

export type ImportFile =
  | string
  | ArrayBuffer
  | ArrayBufferView
  | Blob
  | Response
  | ReadableStream<Uint8Array>
  | Iterable<string | Uint8Array>
  | AsyncIterable<string | Uint8Array>;

const NEWLINE = 10;
const PIECE_BYTES = 64 * 1024;
/** A file's last line is short, so a longer end is not parsed. */
const END_BYTES = 16 * 1024;

/** The file as a stream of bytes. The stream fails if the file is incomplete or the connection breaks. */
export async function exportSession(
  connection: Connection,
  id: string,
  { signal, retry, trace, onProgress }: TransferOptions = {},
): Promise<ReadableStream<Uint8Array>> {
  const path = `/sessions/${segmentOf(id, "A session's id in an address")}/export`;
  const response = await connection.request("exportSession", path, {}, { signal, retry, trace, isRepeatable: true });
  return response.body!.pipeThrough(counting(onProgress)).pipeThrough(whole("exportSession", "end"));
}

/** The lines of the file as values. The last one is the `end`. */
export async function* exportLines(
  connection: Connection,
  id: string,
  options: TransferOptions = {},
): AsyncGenerator<ExportLine, void, undefined> {
  const file = await exportSession(connection, id, options);
  const reader = textReaderOf(file);
  try {
    for (let text = ""; ; ) {
      const { done, value } = await reader.read().catch((error) => {
        if (options.signal?.aborted) throw options.signal.reason;
        throw error instanceof Error && "code" in error ? error : lost("exportSession", error);
      });
      if (done) return;
      const lines = (text + value).split("\n");
      text = lines.pop() ?? "";
      for (const line of lines) yield JSON.parse(line);
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}

/** `file`: a text, bytes, a Blob, a Response, a stream of bytes, or anything that iterates over texts or bytes. */
export async function importSession(
  connection: Connection,
  id: string,
  file: ImportFile,
  { signal, trace, onProgress, allowSources }: TransferOptions & { allowSources?: boolean | undefined } = {},
): Promise<Imported> {
  const body = onProgress === undefined && isWhole(file) ? file : streamOf(file).pipeThrough(counting(onProgress));
  const path = `/sessions/${segmentOf(id, "A session's id in an address")}/import${allowSources ? "?allowSources=true" : ""}`;
  const headers = { "content-type": "application/x-ndjson" };
  const isStream = body instanceof ReadableStream;
  const init = { method: "POST", headers, body: body as BodyInit, ...(isStream && { duplex: "half" }) };
  const response = await connection.request("importSession", path, init, { signal, trace });
  return (await response.json()) as Imported;
}

const isBytes = (file: unknown): file is ArrayBuffer | ArrayBufferView =>
  file instanceof ArrayBuffer || ArrayBuffer.isView(file);
const isWhole = (file: unknown): boolean => typeof file === "string" || isBytes(file) || file instanceof Blob;

export function streamOf(file: ImportFile): ReadableStream<Uint8Array> {
  if (file instanceof ReadableStream) return file;
  if (file instanceof Blob) return file.stream();
  if (file instanceof Response) return file.body!;
  if (typeof file === "string") return streamOf(new TextEncoder().encode(file));
  const pieces = isBytes(file) ? cut(file) : file;
  const iterator: AsyncIterator<string | Uint8Array> =
    (pieces as any)[Symbol.asyncIterator]?.() ?? (pieces as any)[Symbol.iterator]();
  return new ReadableStream({
    async pull(controller) {
      const { done, value } = await iterator.next();
      if (done) controller.close();
      else controller.enqueue(typeof value === "string" ? new TextEncoder().encode(value) : value);
    },
    async cancel() {
      await iterator.return?.();
    },
  });
}

function* cut(bytes: ArrayBuffer | ArrayBufferView): Generator<Uint8Array> {
  const all =
    bytes instanceof ArrayBuffer
      ? new Uint8Array(bytes)
      : new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let at = 0; at < all.length; at += PIECE_BYTES) yield all.subarray(at, at + PIECE_BYTES);
}

/** Reports to `onProgress` after each piece how many bytes and lines have passed. */
export function counting(onProgress: TransferOptions["onProgress"]): TransformStream<Uint8Array, Uint8Array> {
  let [bytes, lines] = [0, 0];
  return new TransformStream<Uint8Array, Uint8Array>({
    transform(piece, controller) {
      bytes += piece.byteLength;
      for (let at = piece.indexOf(NEWLINE); at >= 0; at = piece.indexOf(NEWLINE, at + 1)) lines += 1;
      controller.enqueue(piece);
      onProgress?.({ bytes, lines });
    },
  });
}

/** Passes a file through, and fails at its end if its last line doesn't have the type `type`. */
export function whole(operation: string, type: string): TransformStream<Uint8Array, Uint8Array> {
  let end = new Uint8Array(0);
  return new TransformStream<Uint8Array, Uint8Array>({
    transform(piece, controller) {
      const longer = new Uint8Array(end.length + Math.min(piece.length, END_BYTES));
      longer.set(end);
      longer.set(piece.subarray(-END_BYTES), end.length);
      end = longer.subarray(-END_BYTES);
      controller.enqueue(piece);
    },
    flush() {
      const last = lastLine(new TextDecoder().decode(end));
      if (last?.type === type) return;
      if (last?.type === "error") throw errorFrom(last.error ?? last, { operation });
      throw new NetworkError(`The file was cut off: it has no \`${type}\`.`, { operation });
    },
  });
}

function lastLine(text: string): any {
  try {
    return JSON.parse(text.trimEnd().split("\n").at(-1) ?? "");
  } catch {
    return undefined;
  }
}
