// Reads an export of the tables in which the Agents SDK stores conversations and context blocks: JSON
// lines, each `{ "table": …, "row": { … } }`. Bytes are base64.

import { textReaderOf } from "./bytes.js";

/** A row of an export. Bytes are base64. */
export interface TableRow {
  table: string;
  row: { [column: string]: any };
}

type Row = TableRow["row"];

/** A message in the format of `appendMessage`, or the reason why it can't be converted. */
export interface Checked {
  checked?: { id: string; [field: string]: any };
  reason?: string;
}

/** A session in the tables. If a `parentId` is `undefined`, the message follows the leaf. */
export interface SessionPlan {
  id: string;
  name?: string;
  messages: Array<{ message: { id: string; [field: string]: any }; parentId?: string | null }>;
  compactions: Array<{ summary: string; fromId: string; toId: string }>;
  skipped: Array<{ id: string | null; reason: string }>;
}

export interface BlockPlan {
  label: string;
  kind: "writable" | "searchable";
  content?: string;
  entries?: Array<{
    key: string;
    content: string;
    validFrom?: number;
    validUntil?: number;
    metadata?: { [field: string]: any };
    tags?: string[];
  }>;
}

/** A session while its rows are read, with the parents of skipped messages. */
interface Reading extends SessionPlan {
  parents: Map<string, string | null>;
}

type Rows = (name: string) => Row[];
type Media = Map<string, { type: string; base64: string }>;

const POINTER = /^attachment:sha256:(.+)$/;
const DEFAULT_SESSION = "default";
/** The depth to which the SDK searches a message for media. */
const DEPTH = 32;

const MESSAGES = ["cf_agents_session_messages", "assistant_messages", "cf_ai_chat_agent_messages"];
const COMPACTIONS = ["cf_agents_session_compactions", "assistant_compactions"];
const OTHERS = [
  "assistant_sessions",
  "cf_agents_context_blocks",
  "cf_agents_search_fts",
  "cf_agents_session_message_chunks",
  "cf_agents_session_attachment_meta",
  "cf_agents_session_attachment_chunks",
];

/** `{ sessions, blocks, ignored }`. `check` returns whether a message can be stored. */
export async function messagesOfTables(
  file: unknown,
  check: (message: unknown) => Checked,
): Promise<{ sessions: SessionPlan[]; blocks: BlockPlan[]; ignored: string[] }> {
  const tables = await tablesOf(file);
  const rows: Rows = (name) => tables.get(name) ?? [];
  const chunks = joined(
    rows("cf_agents_session_message_chunks"),
    ({ session_id: session, id }) => JSON.stringify([session, id]),
    "content",
  );
  const media = mediaOf(rows);
  const sessions = new Map<string, Reading>();
  const sessionOf = (id: string | null | undefined): Reading => {
    const key = id || DEFAULT_SESSION;
    const known = sessions.get(key);
    if (known !== undefined) return known;
    const session: Reading = { id: key, messages: [], compactions: [], skipped: [], parents: new Map() };
    sessions.set(key, session);
    return session;
  };
  for (const row of MESSAGES.flatMap((name) => inOrder(rows(name)))) {
    const rest = chunks.get(JSON.stringify([row.session_id, row.id])) ?? "";
    addMessage(sessionOf(row.session_id), row, rest, media, check);
  }
  for (const row of COMPACTIONS.flatMap((name) => inOrder(rows(name)))) {
    sessionOf(row.session_id).compactions.push({
      summary: row.summary,
      fromId: row.from_message_id,
      toId: row.to_message_id,
    });
  }
  for (const { id, name } of rows("assistant_sessions")) {
    const session = sessions.get(id);
    if (name && session !== undefined) session.name = name;
  }
  const read = new Set([...MESSAGES, ...COMPACTIONS, ...OTHERS]);
  return {
    sessions: [...sessions.values()].map(({ parents, ...session }) => session),
    blocks: blocksOf(rows),
    ignored: [...tables.keys()].filter((name) => !read.has(name)),
  };
}

function addMessage(
  session: Reading,
  row: Row,
  rest: string,
  media: Media,
  check: (message: unknown) => Checked,
): void {
  const skip = (reason: string): void => {
    session.skipped.push({ id: row.id, reason });
    // Its children move to its parent.
    session.parents.set(row.id, ancestor(row.parent_id, session));
  };
  if (row.type !== undefined && row.type !== "message") return skip(`It has the type \`${row.type}\`.`);
  const text = `${row.content ?? row.message}${rest}`;
  const parsed = parse(text);
  if (parsed === undefined) return skip("Its content is not JSON.");
  const message = { ...restored(parsed, media, 0), id: row.id };
  const createdAt = timeOf(row.created_at);
  const { checked, reason } = check(
    message.createdAt === undefined && createdAt !== undefined ? { ...message, createdAt } : message,
  );
  if (reason !== undefined || checked === undefined) return skip(reason ?? "");
  const before = session.messages.at(-1)?.message.id ?? null;
  // The oldest tables have no tree.
  session.messages.push({
    message: checked,
    parentId: row.parent_id === undefined ? before : ancestor(row.parent_id, session),
  });
}

function ancestor(id: string | null | undefined, { parents }: Reading): string | null {
  let found = id ?? null;
  while (found !== null && parents.has(found)) found = parents.get(found) ?? null;
  return found;
}

function blocksOf(rows: Rows): BlockPlan[] {
  const texts = rows("cf_agents_context_blocks").map(
    ({ label, content }): BlockPlan => ({ label, kind: "writable", content }),
  );
  const found = new Map<string, Required<Pick<BlockPlan, "label" | "kind" | "entries">>>();
  for (const { label, key, content } of rows("cf_agents_search_fts")) {
    if (!found.has(label)) found.set(label, { label, kind: "searchable", entries: [] });
    found.get(label)!.entries.push({ key, content });
  }
  return [...texts, ...found.values()];
}

function mediaOf(rows: Rows): Media {
  const data = joined(rows("cf_agents_session_attachment_chunks"), ({ hash }) => hash, "data");
  return new Map(
    rows("cf_agents_session_attachment_meta").map(({ hash, media_type: type }) => [
      hash,
      { type, base64: data.get(hash) ?? "" },
    ]),
  );
}

/** Joins the pieces of each key, ordered by `idx`. */
function joined(rows: Row[], keyOf: (row: Row) => string, column: string): Map<string, string> {
  const whole = new Map<string, string>();
  for (const row of [...rows].sort((one, other) => one.idx - other.idx))
    whole.set(keyOf(row), `${whole.get(keyOf(row)) ?? ""}${row[column]}`);
  if (column === "data") for (const [key, text] of whole) whole.set(key, rejoined(text));
  return whole;
}

/** Joins pieces of base64 that are padded separately. */
function rejoined(base64: string): string {
  if (!/=[^=]/.test(base64)) return base64;
  return btoa(
    base64
      .split(/(?<==)(?=[^=])/)
      .map((piece) => atob(piece))
      .join(""),
  );
}

/** The message with its media instead of the pointers to them. */
function restored(value: any, media: Media, depth: number): any {
  if (depth > DEPTH || value === null || typeof value !== "object") return value;
  if (Array.isArray(value)) return value.map((one) => restored(one, media, depth + 1));
  for (const field of ["url", "data"]) {
    const payload = media.get(POINTER.exec(value[field])?.[1] ?? "");
    if (payload === undefined) continue;
    return {
      ...value,
      [field]: field === "url" ? `data:${value.mediaType ?? payload.type};base64,${payload.base64}` : payload.base64,
    };
  }
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, restored(one, media, depth + 1)]));
}

function inOrder(rows: Row[]): Row[] {
  const sortKey = (row: Row, n: number): [number, number] => [row.seq ?? timeOf(row.created_at) ?? 0, n];
  const keyed = rows.map((row, n) => ({ row, key: sortKey(row, n) }));
  return keyed.sort((one, other) => one.key[0] - other.key[0] || one.key[1] - other.key[1]).map(({ row }) => row);
}

/** Milliseconds of a number, or of the text that SQLite's CURRENT_TIMESTAMP writes. */
function timeOf(value: any): number | undefined {
  if (typeof value === "number") return value;
  const time = Date.parse(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d/.test(value) ? `${value.replace(" ", "T")}Z` : value);
  return Number.isNaN(time) ? undefined : time;
}

async function tablesOf(file: unknown): Promise<Map<string, Row[]>> {
  const tables = new Map<string, Row[]>();
  let number = 0;
  for await (const line of linesOf(file)) {
    number += 1;
    const { table, row } = (typeof line === "string" ? parse(line) : line) ?? {};
    if (typeof table !== "string" || typeof row !== "object" || row === null)
      throw new TypeError(`Line ${number} of the export is not { "table": …, "row": { … } }.`);
    const rows = tables.get(table) ?? [];
    rows.push(row);
    tables.set(table, rows);
  }
  return tables;
}

/** The lines of a text, of a stream of bytes or of an object with one; otherwise the items of an iterable. */
async function* linesOf(file: any): AsyncGenerator<any, void, undefined> {
  if (typeof file === "string") {
    yield* file.split("\n").filter((line) => line.trim() !== "");
    return;
  }
  const stream: ReadableStream<Uint8Array> | null | undefined =
    file instanceof ReadableStream
      ? file
      : file instanceof Blob
        ? file.stream()
        : file instanceof Response
          ? file.body
          : undefined;
  if (!stream) {
    yield* file;
    return;
  }
  const reader = textReaderOf(stream);
  for (let text = ""; ; ) {
    const { done, value } = await reader.read();
    const lines = `${text}${value ?? ""}`.split("\n");
    text = done ? "" : (lines.pop() ?? "");
    yield* lines.filter((line) => line.trim() !== "");
    if (done) return;
  }
}

function parse(text: string): any {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
