// The floor: what a Durable Object costs that does the same SQL as this Worker and
// nothing else. No access check, no validation, no limits, no branches. It answers
// the same requests with the same JSON, so whoever measures can swap one for the other.
//
// SQLite makes the JSON of a page. `getHistoryByRows` is the exception: it makes the
// page in JavaScript, row by row, as one would write it first.
//
// Later changes of this Worker are seen against this file. So it stays as it is.

import { DurableObject } from "cloudflare:workers";
import { metered } from "./meter.mjs";

/** The tables that an append and a page touch, in this Worker's layout. */
const SCHEMA = `
  CREATE TABLE IF NOT EXISTS sessions (
    number     INTEGER PRIMARY KEY,
    id         TEXT NOT NULL UNIQUE,
    agent_id   TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    seq_floor  INTEGER NOT NULL DEFAULT 0
  );
  CREATE TABLE IF NOT EXISTS events (
    session_id TEXT NOT NULL,
    seq        INTEGER NOT NULL,
    id         TEXT NOT NULL,
    id_indexed INTEGER NOT NULL DEFAULT 0,
    parent_seq INTEGER NOT NULL DEFAULT 0,
    parent_id  TEXT,
    is_branch  INTEGER NOT NULL DEFAULT 0,
    action     TEXT NOT NULL,
    content    TEXT,
    tool       TEXT,
    metadata   TEXT,
    created_at INTEGER NOT NULL,
    written_at INTEGER NOT NULL,
    message    TEXT,
    PRIMARY KEY (session_id, seq)
  ) WITHOUT ROWID;
  CREATE UNIQUE INDEX IF NOT EXISTS events_by_id ON events (session_id, id) WHERE id_indexed = 1;
  CREATE INDEX IF NOT EXISTS events_by_parent ON events (session_id, parent_seq) WHERE is_branch = 1;`;

/** Where the next event goes. */
const TIP = `
  SELECT s.seq_floor, newest.seq, newest.id
    FROM sessions AS s
    LEFT JOIN events AS newest
      ON newest.session_id = s.id
     AND newest.seq = (SELECT max(seq) FROM events WHERE session_id = s.id)
   WHERE s.id = ?1`;

const COLUMNS = `
  (session_id, seq, id, id_indexed, parent_seq, parent_id, action, content, tool, metadata,
   created_at, written_at, message)`;

const INSERT_ONE = `
  INSERT INTO events ${COLUMNS}
  VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)`;

const INSERT_SEVERAL = `
  INSERT INTO events ${COLUMNS}
  SELECT ?1, value ->> 'seq', value ->> 'id', 0, value ->> 'parentSeq', value ->> 'parentId',
         value ->> 'action', value ->> 'content', NULL, value ->> 'metadata',
         ?3, ?3, NULL
    FROM json_each(?2)`;

const FIND_BY_ID = `
  SELECT seq
    FROM events
   WHERE session_id = ?1
     AND id = ?2
     AND id_indexed = 1`;

const HAS_BRANCHES = "SELECT 1 FROM events WHERE session_id = ?1 AND is_branch = 1 LIMIT 1";

/** The newest of a session in their order, which is the table's: nothing is sorted. */
const page = (columns) => `
  SELECT ${columns}
    FROM events
   WHERE session_id = ?1
     AND seq >= (SELECT min(seq)
                   FROM (SELECT seq
                           FROM events
                          WHERE session_id = ?1
                          ORDER BY seq DESC
                          LIMIT ?2))
   ORDER BY seq`;

/** An event's JSON; the longer way where it has fields that most don't have. */
const EVENT = `
  iif(tool IS NULL AND metadata IS NULL,
      json_object('id', id, 'sessionId', session_id, 'seq', seq, 'parentId', parent_id,
                  'action', action, 'content', coalesce(content, ''), 'createdAt', created_at),
      concat('{"id":', json_quote(id), ',"sessionId":', json_quote(session_id), ',"seq":', seq,
             ',"parentId":', json_quote(parent_id), ',"action":', json_quote(action),
             ',"content":', json_quote(coalesce(content, '')),
             iif(tool IS NULL, '', concat(',', rtrim(ltrim(json(tool), '{'), '}'))),
             iif(metadata IS NULL, '', concat(',"metadata":', json(metadata))),
             ',"createdAt":', created_at, '}'))`;

/** A page as one text, the quickest way that SQLite has. */
const EVENTS = `
  SELECT '[' || coalesce(group_concat(event, ','), '') || ']' AS page
    FROM (${page(`${EVENT} AS event`)})`;

const MESSAGES = `
  SELECT concat('{"messages":[', group_concat(message, ','), '],"truncated":', iif(min(parent_seq) = 0, 'false', 'true'),
                ',"cursor":', iif(min(parent_seq) = 0, 'null', concat('"', min(seq), '-', min(parent_seq), '"')), '}') AS page
    FROM (${page(`
      seq, parent_seq,
      concat('{"id":', json_quote(id), ',', message, ',"createdAt":', created_at, '}') AS message`)})`;

class Floor extends DurableObject {
  #sql = this.ctx.storage.sql;

  constructor(ctx, env) {
    super(ctx, env);
    this.#sql.exec(SCHEMA);
  }

  async fetch(request) {
    const operation = request.url.slice(request.url.lastIndexOf("/") + 1);
    if (operation === "health") return respond('{"ok":true}');
    const input = JSON.parse(await request.text());
    const answer = this[operation]?.(input);
    if (answer === undefined) return new Response(`no operation ${operation}`, { status: 404 });
    return respond(answer);
  }

  createSession({ id }) {
    const now = Date.now();
    this.#sql.exec("INSERT INTO sessions (id, agent_id, created_at, updated_at) VALUES (?1, 'floor', ?2, ?2)", id, now);
    return JSON.stringify({ id, createdAt: now, updatedAt: now });
  }

  appendEvents({ sessionId, events }) {
    const tip = this.#tip(sessionId);
    const now = Date.now();
    const rows = events.map(({ action, content, metadata }, index) => {
      const seq = tip.seq + index + 1;
      return { seq, id: `e${seq}-${randomText()}`, parentSeq: seq - 1, parentId: null, action, content, metadata };
    });
    for (const [index, row] of rows.entries()) row.parentId = index === 0 ? tip.id : rows[index - 1].id;
    if (rows.length === 1) this.#insert(sessionId, { ...rows[0], idIndexed: 0, message: null, now });
    else this.#sql.exec(INSERT_SEVERAL, sessionId, JSON.stringify(rows), now);
    return JSON.stringify({
      events: rows.map(({ id, seq }) => ({ id, seq, inserted: true })),
      leafId: rows.at(-1).id,
    });
  }

  appendMessage({ sessionId, message }) {
    const { id, role, parts } = message;
    const tip = this.#tip(sessionId);
    if (this.#sql.exec(FIND_BY_ID, sessionId, id).toArray().length > 0) return JSON.stringify({ inserted: false, message });
    const now = Date.now();
    this.#insert(sessionId, {
      seq: tip.seq + 1,
      id,
      idIndexed: 1,
      parentSeq: tip.seq,
      parentId: tip.id,
      action: role === "user" ? "user_message" : "agent_message",
      content: parts.map(({ text }) => text).join(""),
      message: JSON.stringify({ role, parts }).slice(1, -1),
      now,
    });
    return JSON.stringify({ inserted: true, message: { ...message, createdAt: now } });
  }

  loadEvents({ sessionId, limit }) {
    return this.#sql.exec(EVENTS, sessionId, limit).one().page;
  }

  getHistory({ sessionId, limit }) {
    if (this.#isBranched(sessionId)) return undefined;
    return this.#sql.exec(MESSAGES, sessionId, limit).one().page;
  }

  getHistoryByRows({ sessionId, limit }) {
    if (this.#isBranched(sessionId)) return undefined;
    const rows = this.#sql.exec(page("seq, parent_seq, id, message, created_at"), sessionId, limit).toArray();
    const messages = rows.map((row) => ({ id: row.id, ...JSON.parse(`{${row.message}}`), createdAt: row.created_at }));
    const { seq, parent_seq: parentSeq } = rows[0];
    return JSON.stringify({ messages, truncated: parentSeq !== 0, cursor: parentSeq === 0 ? null : `${seq}-${parentSeq}` });
  }

  #tip(sessionId) {
    const row = this.#sql.exec(TIP, sessionId).one();
    return { seq: Math.max(row.seq ?? 0, row.seq_floor), id: row.id };
  }

  #isBranched(sessionId) {
    return this.#sql.exec(HAS_BRANCHES, sessionId).toArray().length > 0;
  }

  #insert(sessionId, { seq, id, idIndexed, parentSeq, parentId, action, content, metadata, message, now }) {
    const meta = metadata === undefined ? null : JSON.stringify(metadata);
    this.#sql.exec(
      INSERT_ONE,
      sessionId, seq, id, idIndexed, parentSeq, parentId, action, content, null, meta, now, now, message,
    );
  }
}

/** As long as the ends of this Worker's ids. */
function randomText() {
  return crypto.randomUUID().replaceAll("-", "").slice(0, 16);
}

function respond(json) {
  return new Response(json, { headers: { "content-type": "application/json" } });
}

export class FloorObject extends metered(Floor) {}

/** The floor of the router: finds the object by the name in the path. */
export default {
  async fetch(request, env) {
    const { pathname } = new URL(request.url);
    if (pathname === "/health") return respond('{"ok":true}');
    return env.OBJECT.getByName(decodeURIComponent(pathname.split("/")[3])).fetch(request);
  },
};
