// Sessions that store a LangGraph thread, as `session-agent/langgraph` writes them: one with the
// checkpoints of each namespace, and one with pending writes.

import type { Session, SessionEvent } from "session-agent";
import { sessionName } from "../text.ts";

export interface Thread {
  kind: "checkpoints" | "writes";
  thread: string;
  namespace: string;
}

/** `null`: the session is a conversation. */
export function threadOf({ metadata }: Pick<Session, "metadata">): Thread | null {
  const { langgraph, thread, namespace } = metadata ?? {};
  if ((langgraph !== "checkpoints" && langgraph !== "writes") || typeof thread !== "string") return null;
  return { kind: langgraph, thread, namespace: typeof namespace === "string" ? namespace : "" };
}

export function threadName({ kind, thread, namespace }: Thread): string {
  const name = namespace === "" ? thread : `${thread} · ${namespace}`;
  return kind === "writes" ? `${name}: pending writes` : name;
}

/** The title of a session: a thread has its own name. */
export function titleOf(session: Pick<Session, "id" | "name" | "metadata">): string {
  const thread = threadOf(session);
  return thread === null ? sessionName(session) : threadName(thread);
}

export interface Checkpoint {
  id: string;
  eventId: string;
  createdAt: number;
  /** The number of the superstep. `null`: unknown. */
  step: number | null;
  /** The origin of the checkpoint: `input`, `loop`, `update`, `fork`. */
  source: string;
  /** The values that changed, by channel. For a value that is not JSON, its type is shown. */
  changed: readonly { channel: string; value: unknown }[];
  channels: readonly string[];
}

/** The checkpoints of a page of a thread's log, the newest first. Other events are left out. */
export function checkpointsOf(events: readonly SessionEvent[]): Checkpoint[] {
  const checkpoints: Checkpoint[] = [];
  let changed: { channel: string; value: unknown }[] = [];
  for (const { id, action, content, createdAt } of events) {
    if (action !== "user_message") {
      changed.push({ channel: channelOf(id), value: decoded(content) });
      continue;
    }
    const stored = fields(parsed(content));
    const metadata = fields(decoded(String(stored.metadata ?? "")));
    checkpoints.push({
      id: String(stored.id ?? id),
      eventId: id,
      createdAt,
      step: typeof metadata.step === "number" ? metadata.step : null,
      source: String(metadata.source ?? "checkpoint"),
      changed,
      channels: Array.isArray(stored.channels) ? stored.channels.map(String) : [],
    });
    changed = [];
  }
  return checkpoints.reverse();
}

/** A value's id contains the channel's name, or a digest of a long name. */
function channelOf(id: string): string {
  const names = parsed(id);
  return Array.isArray(names) ? String(names.at(-2) ?? names[0]) : "a value";
}

/** A serializer's type, a colon, and the text. */
function decoded(text: string): unknown {
  const at = text.indexOf(":");
  return text.slice(0, at) === "json"
    ? parsed(text.slice(at + 1))
    : `${text.slice(0, at)}, ${text.length - at - 1} characters`;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

const fields = (value: unknown): Record<string, unknown> =>
  typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};

export interface Said {
  role: string;
  text: string;
}

/** The LangChain messages in a value. */
export function messagesIn(value: unknown): Said[] {
  const list = Array.isArray(value) ? value : [value];
  return list.flatMap((item) => {
    const { kwargs, id, type, content } = fields(item);
    const inside = fields(kwargs);
    const text = inside.content ?? content;
    const name = Array.isArray(id) ? String(id.at(-1)) : String(inside.type ?? type ?? "");
    return typeof text === "string" && name !== "" ? [{ role: name.replace(/Message(Chunk)?$/, ""), text }] : [];
  });
}
