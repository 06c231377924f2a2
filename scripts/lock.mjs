// A lock across processes: two setups must not install into the same folder, and two
// builds must not write the same output.
//
// The lock is a file that its holder touches every few seconds. If the holder is killed, the
// lock expires without manual cleanup. Process ids are not used, because a container that
// shares the cache has other ones.

import { mkdirSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { randomUUID } from "node:crypto";
import { setTimeout as wait } from "node:timers/promises";

const HEARTBEAT_MS = 2_000;
const ABANDONED_AFTER_MS = 10_000;
const POLL_MS = 250;

export async function withLock(file, whenWaiting, work) {
  const release = await take(file, whenWaiting);
  try {
    return await work();
  } finally {
    release();
  }
}

async function take(file, whenWaiting) {
  const token = randomUUID();
  mkdirSync(dirname(file), { recursive: true });
  for (let isAnnounced = false; !(await tryToAcquire(file, token)); isAnnounced = true) {
    if (!isAnnounced) whenWaiting();
    await wait(POLL_MS);
  }
  const heartbeat = setInterval(() => touch(file), HEARTBEAT_MS).unref();
  const release = () => {
    clearInterval(heartbeat);
    if (holder(file) === token) rmSync(file, { force: true });
  };
  process.once("exit", release);
  return () => {
    process.off("exit", release);
    release();
  };
}

async function tryToAcquire(file, token) {
  if (isAbandoned(file)) rmSync(file, { force: true });
  try {
    writeFileSync(file, token, { flag: "wx" });
  } catch (error) {
    if (error.code === "EEXIST") return false;
    throw error;
  }
  // Two processes that find the same abandoned lock may each remove it; the later one then removes
  // the earlier one's. A second check settles who has it.
  await wait(50);
  return holder(file) === token;
}

function isAbandoned(file) {
  try {
    return Date.now() - statSync(file).mtimeMs > ABANDONED_AFTER_MS;
  } catch {
    return false;
  }
}

function holder(file) {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return null;
  }
}

function touch(file) {
  try {
    const now = new Date();
    utimesSync(file, now, now);
  } catch {
    // Another process removed it (a cleared cache): the work continues without a lock.
  }
}
