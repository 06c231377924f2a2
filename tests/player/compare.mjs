// Reads everything that an agent has stored and compares it with its model.

import { isDeepStrictEqual } from "node:util";

/** An agent's whole readable state. `read` is a request that must succeed. */
export async function observe(read) {
  const sessions = [];
  for (let cursor = null; ; ) {
    const page = await read("listSessions", { limit: 500, ...(cursor && { cursor }) });
    sessions.push(...page.sessions);
    cursor = page.cursor;
    if (cursor === null) break;
  }
  const seen = [];
  for (const { id, name, metadata, parentSessionId, usage, updatedAt } of sessions) {
    const events = [];
    for (let afterSeq = 0; ; afterSeq = events.at(-1)?.seq ?? 0) {
      const page = await read("loadEvents", { sessionId: id, limit: 1000, afterSeq });
      // Long texts make shorter pages, so only an empty page is the end.
      if (page.length === 0) break;
      events.push(...page);
    }
    const { compactions } = await read("getCompactions", { sessionId: id });
    const leaf = await read("getLatestLeaf", { sessionId: id });
    const settings = await read("configureCompaction", { sessionId: id });
    seen.push({
      id,
      name,
      metadata,
      parentSessionId,
      usage,
      updatedAt,
      events,
      compactions,
      leafId: leaf?.id ?? null,
      settings,
      memory: await observeMemory(read, id),
    });
  }
  return { sessions: seen, memory: await observeMemory(read) };
}

async function observeMemory(read, sessionId) {
  const scope = sessionId === undefined ? {} : { sessionId };
  const blocks = await read("getBlocks", scope);
  const items = {};
  for (const { label, kind } of blocks) {
    if (kind === "searchable")
      items[label] = (await read("listEntries", { ...scope, label, limit: 200 })).entries.map(
        ({ key, content, title, tags = [] }) => ({ key, content, title, tags }),
      );
    if (kind === "loadable")
      items[label] = (await read("listSkills", { ...scope, label, limit: 1000 })).skills.map(
        ({ key, bytes, tags = [] }) => ({
          key,
          bytes,
          tags,
        }),
      );
  }
  return { blocks, items };
}

/**
 * The first difference between the agent and its model; `null`: none. Ids that the model doesn't
 * know are taken from the answer if everything else agrees.
 */
export function differ(model, seen) {
  const adopted = [];
  const wrong = compareAgents(model, seen, adopted);
  if (wrong === null) for (const adopt of adopted) adopt();
  return wrong;
}

function compareAgents(model, seen, adopted) {
  const left = [...seen.sessions];
  for (const session of [...model.sessions].sort((a, b) => (a.id === null) - (b.id === null))) {
    const at = session.id === null ? 0 : left.findIndex(({ id }) => id === session.id);
    const [found] = at < 0 ? [] : left.splice(at, 1);
    if (found === undefined) return `session ${session.id} is missing`;
    if (session.id === null) adopted.push(() => (session.id = found.id));
    const wrong = compareSessions(session, found, adopted);
    if (wrong !== null) return `session ${found.id}: ${wrong}`;
  }
  if (left.length > 0) return `there is a session ${left[0].id} that nobody created`;
  return compareMemory(model.memory, seen.memory);
}

function compareSessions(session, found, adopted) {
  for (const field of ["name", "metadata", "parentSessionId"]) {
    if (!isDeepStrictEqual(session[field], found[field]))
      return `${field} is ${show(found[field])}, not ${show(session[field])}`;
  }
  for (const [field, value] of Object.entries(session.usage)) {
    if (value !== null && found.usage[field] !== value) return `usage.${field} is ${found.usage[field]}, not ${value}`;
  }
  for (const [field, value] of Object.entries(session.settings)) {
    if (found.settings[field] !== value) return `the setting ${field} is ${found.settings[field]}, not ${value}`;
  }
  const seqs = [...session.events.keys()].sort((a, b) => a - b);
  if (found.events.length !== seqs.length || found.events.some(({ seq }, at) => seq !== seqs[at])) {
    return `it has the events ${found.events.map(({ seq }) => seq)}, not ${seqs}`;
  }
  const ids = new Map([[0, null]]);
  for (const event of found.events) ids.set(event.seq, event.id);
  for (const event of found.events) {
    const known = session.events.get(event.seq);
    if (known.id === null) adopted.push(() => (known.id = event.id));
    else if (known.id !== event.id) return `event ${event.seq} is ${event.id}, not ${known.id}`;
    if (event.parentId !== ids.get(known.parent))
      return `event ${event.id} follows ${event.parentId}, not ${ids.get(known.parent)}`;
    if (event.action !== known.action) return `event ${event.id} is a ${event.action}, not a ${known.action}`;
    if (event.content !== (known.content ?? ""))
      return `event ${event.id} says ${show(event.content)}, not ${show(known.content)}`;
    for (const field of ["toolCalls", "toolCallId", "toolName", "isError"]) {
      if (known.message === undefined && known[field] !== undefined && !isDeepStrictEqual(event[field], known[field]))
        return `event ${event.id} has the ${field} ${show(event[field])}, not ${show(known[field])}`;
    }
  }
  const leaf = session.leaf === 0 ? null : ids.get(session.messageStart(session.leaf));
  if (found.leafId !== leaf) return `its leaf's message is ${found.leafId}, not ${leaf}`;
  const left = [...found.compactions];
  for (const overlay of session.overlays) {
    const edges = [ids.get(overlay.from), ids.get(overlay.to)];
    const at = left.findIndex(
      ({ id, fromId, toId }) => (overlay.id === null || id === overlay.id) && fromId === edges[0] && toId === edges[1],
    );
    const [seen] = at < 0 ? [] : left.splice(at, 1);
    if (seen === undefined)
      return `the compaction ${overlay.id} from ${edges[0]} to ${edges[1]} is not among ${show(found.compactions)}`;
    if (overlay.id === null) adopted.push(() => (overlay.id = seen.id));
    if (seen.summary !== overlay.summary) return `the compaction ${seen.id} says ${show(seen.summary)}`;
  }
  if (left.length > 0) return `there is a compaction ${left[0].id} that nobody created`;
  return compareMemory(session.memory, found.memory);
}

function compareMemory(memory, found) {
  const blocks = new Map(found.blocks.map((block) => [block.label.toLowerCase(), block]));
  if (!isDeepStrictEqual(new Set(blocks.keys()), new Set(memory.blocks.keys())))
    return `it has the blocks ${[...blocks.keys()]}, not ${[...memory.blocks.keys()]}`;
  for (const [key, definition] of memory.blocks) {
    const block = blocks.get(key);
    for (const field of ["kind", "description", "maxTokens"]) {
      if (block[field] !== definition[field])
        return `the ${field} of block ${key} is ${show(block[field])}, not ${show(definition[field])}`;
    }
    const stored = memory.holds(key);
    if (definition.kind === "readonly" || definition.kind === "writable") {
      if (block.content !== memory.text(key))
        return `block ${key} says ${show(block.content)}, not ${show(memory.text(key))}`;
      if (block.version !== stored.version)
        return `block ${key} has the version ${block.version}, not ${stored.version}`;
    } else {
      const items = [...stored.items].sort(([a], [b]) => (a < b ? -1 : 1));
      const expected = items.map(([key, item]) =>
        definition.kind === "searchable"
          ? { key, content: item.content, title: item.title ?? null, tags: item.tags ?? [] }
          : { key, bytes: Buffer.byteLength(item.content), tags: item.tags ?? [] },
      );
      if (!isDeepStrictEqual(found.items[block.label], expected))
        return `block ${key} holds ${show(found.items[block.label])}, not ${show(expected)}`;
    }
  }
  return null;
}

export function show(value) {
  const text = JSON.stringify(value) ?? "undefined";
  return text.length > 300 ? `${text.slice(0, 300)}…` : text;
}
