// What Rust has JavaScript do in one call where it would take ten: each call between the
// two costs time, and so does each value that Rust touches.

/** The most UTF-16 units of text in rows that cross as JSON at once. */
const SHORT_UNITS = 4096;

/** As `MANY_ROWS` of edge/storage.rs. */
const MANY_ROWS = 4;

/** As `MAX_WRITING_STATEMENTS` of base/database.rs. */
const MAX_WRITING_STATEMENTS = 2000;

/** A statement that writes more rows than this, or takes long texts, is asked what size it left. */
const FEW_ROWS = 15;

/** What was written to each object's storage since it was asked last. */
const WRITES = new WeakMap();

function writesOf(storage) {
  let writes = WRITES.get(storage);
  if (writes === undefined) {
    writes = { statements: new Set(), isIncomplete: false, peakBytes: 0 };
    WRITES.set(storage, writes);
  }
  return writes;
}

/** One request's statements, and the rows that they have read and written so far. */
export class Statements {
  rowsRead = 0;
  rowsWritten = 0;
  #isNarrowed = false;
  #sql;
  #others;
  #long;
  #writes;

  constructor(storage) {
    this.#sql = storage.sql;
    this.#writes = writesOf(storage);
  }

  /** What was written since this was asked last, as JSON of a list. */
  takeWrites() {
    const { statements, isIncomplete, peakBytes } = this.#writes;
    const message = JSON.stringify([[...statements], isIncomplete, peakBytes]);
    Object.assign(this.#writes, { statements: new Set(), isIncomplete: false, peakBytes: 0 });
    return message;
  }

  /**
   * From here on counts, as read, the rows that statements return. The engine also counts the row where a range ends,
   * which is another session's row or none, so its count reveals other sessions. For a caller who may see one session.
   */
  narrow() {
    this.#isNarrowed = true;
    this.rowsRead = this.rowsWritten = 0;
  }

  /** Runs a statement, and leaves its rows. `params` are a list, or its JSON. */
  run(query, params) {
    this.#count(this.#exec(query, params), 0, query, params);
  }

  /** Runs a statement that writes, and returns whether it wrote anything. */
  writes(query, params) {
    const before = this.rowsWritten;
    this.run(query, params);
    return this.rowsWritten > before;
  }

  /** Runs a statement that writes, and returns how many rows it wrote, without those of indexes. */
  change(query, params) {
    this.run(query, params);
    return this.#sql.exec("SELECT changes()").raw().next().value[0];
  }

  /** Runs a statement to its end. Its rows are lists of values: no names are copied. */
  rows(query, params) {
    const cursor = this.#exec(query, params);
    let rows = [];
    try {
      return (rows = cursor.raw().toArray());
    } finally {
      this.#count(cursor, rows.length, query, params);
    }
  }

  /**
   * The rows as JSON, if they are few and short: one call brings them to Rust. `undefined`:
   * {@link takeRows} has them.
   */
  shortRows(query, params) {
    const rows = this.rows(query, params);
    const json = rows.length < MANY_ROWS ? shortJson(rows) : undefined;
    if (json === undefined) this.#long = rows;
    return json;
  }

  /** The rows that {@link shortRows} did not return. */
  takeRows() {
    const rows = this.#long;
    this.#long = undefined;
    return rows;
  }

  /** A statement's first row: its first value. `undefined`: there is no row. */
  first(query, params) {
    const [row] = this.rows(query, params);
    this.#others = row?.slice(1);
    return row?.[0];
  }

  /** The other values of that row, as JSON of a list with one row. */
  others() {
    return JSON.stringify([this.#others]);
  }

  #exec(query, params) {
    return this.#sql.exec(query, ...(typeof params === "string" ? JSON.parse(params) : params));
  }

  #count({ rowsRead, rowsWritten }, returned, query, params) {
    this.rowsRead += this.#isNarrowed ? returned : rowsRead;
    if (rowsWritten === 0) return;
    this.rowsWritten += rowsWritten;
    const writes = this.#writes;
    if (writes.statements.size < MAX_WRITING_STATEMENTS) writes.statements.add(query);
    else writes.isIncomplete = true;
    if (rowsWritten > FEW_ROWS || typeof params !== "string")
      writes.peakBytes = Math.max(writes.peakBytes, this.#sql.databaseSize);
  }
}

/** Rows as JSON; `undefined`: their texts are long. */
function shortJson(rows) {
  let units = 0;
  for (const row of rows) {
    for (const value of row) if (typeof value === "string") units += value.length;
    if (units > SHORT_UNITS) return undefined;
  }
  return JSON.stringify(rows);
}

const ENCODER = new TextEncoder();

/** Writes a text as UTF-8. Returns how many bytes the text takes; -1: more than there are. */
export function encodeInto(text, bytes) {
  const { read, written } = ENCODER.encodeInto(text, bytes);
  return read === text.length ? written : -1;
}

const DECODER = new TextDecoder("utf-8", { ignoreBOM: true });

/** The text of UTF-8. */
export function decode(bytes) {
  return DECODER.decode(bytes);
}

/**
 * Sends a JSON text, or its bytes. `cost`: the statements that it took. `more`: further
 * headers, as JSON of an object.
 */
export function respond(status, body, cost, more) {
  return new Response(body, {
    status,
    headers: {
      "content-type": "application/json",
      "cache-control": "no-store",
      "x-content-type-options": "nosniff",
      "x-rows-read": `${cost?.rowsRead ?? 0}`,
      "x-rows-written": `${cost?.rowsWritten ?? 0}`,
      ...(more && JSON.parse(more)),
    },
  });
}

/** How long a reader has for an answer of {@link respondInTime}. */
const READING_MS = 28_000;

/** How much of such an answer the Worker in front takes at once, and buffers until it is read. */
const PIECE_BYTES = 128 << 10;

/**
 * As {@link respond}, for bytes that are let go if nobody reads them. A page of usual length
 * takes a third longer if Rust makes its pieces.
 */
export function respondInTime(status, bytes, cost, more) {
  let at = 0;
  let deadline;
  const source = {
    start(controller) {
      deadline = setTimeout(() => controller.error("The answer was not read in time."), READING_MS);
    },
    pull(controller) {
      controller.enqueue(bytes.subarray(at, at + PIECE_BYTES));
      at += PIECE_BYTES;
      if (at < bytes.length) return;
      clearTimeout(deadline);
      controller.close();
    },
    cancel: () => clearTimeout(deadline),
  };
  return respond(status, new ReadableStream(source, { highWaterMark: 0 }), cost, more);
}

/**
 * Calls `run(id)` in a microtask. `queueMicrotask` does the same, and takes ten times as
 * long in this runtime. A crash is reported as it would be there.
 */
export function runSoon(run, id) {
  Promise.resolve(id).then(run).catch(reportError);
}

/**
 * Writes a request's line into the log, and its point into a data set: JSON of its fields. If a log or a data set
 * fails, only the line is lost, never the request.
 */
export function report(line, dataset, point) {
  try {
    if (line !== undefined) console.log(line);
    if (point !== undefined) dataset.writeDataPoint(JSON.parse(point));
  } catch {
    // The request is answered all the same.
  }
}
