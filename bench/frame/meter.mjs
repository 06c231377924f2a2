// Counts the rows that an object reads and writes, if the variable METER is set. Speed is
// measured without METER: then the class is unchanged.

/**
 * `Base` with two more endpoints: `/__meter` resets the counts, and `/__metered` answers
 * `{ read, written }`.
 */
export function metered(Base) {
  return class extends Base {
    #count;

    constructor(ctx, env) {
      const count = env.METER === undefined ? undefined : countRows(ctx.storage);
      super(ctx, env);
      this.#count = count;
    }

    async fetch(request) {
      if (this.#count !== undefined && request.url.endsWith("/__meter")) {
        this.#count.reset();
        return new Response("{}");
      }
      if (this.#count !== undefined && request.url.endsWith("/__metered")) return Response.json(this.#count.read());
      return super.fetch(request);
    }
  };
}

function countRows(storage) {
  const { sql } = storage;
  const [exec, setAlarm] = [sql.exec.bind(sql), storage.setAlarm.bind(storage)];
  // `null`: nothing is counted.
  let cursors = null;
  // Setting an alarm is billed as one row.
  let alarms = 0;
  sql.exec = (...statement) => {
    const cursor = exec(...statement);
    cursors?.push(cursor);
    return cursor;
  };
  storage.setAlarm = (...when) => {
    alarms += 1;
    return setAlarm(...when);
  };
  const sum = (of) => cursors.reduce((total, cursor) => total + cursor[of], 0);
  return {
    reset() {
      cursors = [];
      alarms = 0;
    },
    read() {
      const rows = { read: sum("rowsRead"), written: sum("rowsWritten") + alarms };
      cursors = null;
      return rows;
    },
  };
}
