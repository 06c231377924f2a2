// What the system reports about a process.

import { readdir, readFile } from "node:fs/promises";

/**
 * The CPU time of all threads of a process, in milliseconds; `null` if the system doesn't report
 * it.
 */
export async function cpuMs(pid) {
  try {
    const threads = await readdir(`/proc/${pid}/task`);
    const times = await Promise.all(
      threads.map(async (thread) =>
        Number((await readFile(`/proc/${pid}/task/${thread}/schedstat`, "utf8")).split(" ")[0]),
      ),
    );
    return times.reduce((sum, time) => sum + time, 0) / 1e6;
  } catch {
    return null;
  }
}
