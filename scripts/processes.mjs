// Runs child processes that stop together with this process.

import { spawn, spawnSync } from "node:child_process";
import { UserError } from "./user_error.mjs";

const SIGNALS = { SIGHUP: 1, SIGINT: 2, SIGTERM: 15 };
const GRACE_MS = 5_000;

/** Runs a program to its end with our standard output. Returns its exit code. */
export function run(program, args, options = {}) {
  return endOf(spawn(program, args, { ...options, stdio: ["ignore", "inherit", "inherit"] }));
}

/** Does the same, and returns a copy of the program's standard output. */
export async function runWithCopy(program, args, options = {}) {
  const child = spawn(program, args, { ...options, stdio: ["ignore", "pipe", "inherit"] });
  let output = "";
  child.stdout.setEncoding("utf8").on("data", (text) => {
    output += text;
    process.stdout.write(text);
  });
  return { code: await endOf(child), output };
}

/** Runs a program whose output may be shown later. Returns its exit code and its whole output. */
export async function runCaptured(program, args, options = {}) {
  const child = spawn(program, args, { ...options, stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", (text) => (output += text));
  return { code: await endOf(child), output };
}

/**
 * Starts a server that runs until it ends by itself or we receive a signal to stop. A signal is not
 * a failure, so our exit code is then 0. The server and its children form a process group, and none
 * of them outlives us.
 */
export function startServer(program, args, options = {}) {
  const child = spawn(program, args, { ...options, stdio: ["ignore", "inherit", "inherit"], detached: true });
  const ended = endOf(child, async (_signal, untilEnd) => {
    child.kill("SIGINT");
    const tooLate = setTimeout(() => killGroup(child.pid), GRACE_MS);
    await untilEnd;
    clearTimeout(tooLate);
    killGroup(child.pid);
    return 0;
  }).finally(() => killGroup(child.pid));
  return { ended, isRunning: () => child.exitCode === null && child.signalCode === null };
}

/** The output of a program, or `null` if it is missing or fails. */
export function outputOf(program, args) {
  const { status, stdout } = spawnSync(program, args, { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
  return status === 0 ? stdout.trim() : null;
}

// How to stop each running program, and our exit code in that case.
const running = new Set();
let isStopping = false;

for (const [signal, number] of Object.entries(SIGNALS)) {
  process.on(signal, async () => {
    if (isStopping) return;
    isStopping = true;
    const codes = await Promise.all([...running].map((stop) => stop(signal)));
    process.exit(codes.length === 0 ? 128 + number : Math.max(...codes));
  });
}

/** The exit code of a program. While this process is stopping, nothing continues after it. */
async function endOf(child, stop = forwardSignal) {
  const untilEnd = new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code, signal) => resolve(code ?? 128 + (SIGNALS[signal] ?? 9)));
  });
  const stopIt = (signal) => stop(signal, untilEnd, child);
  running.add(stopIt);
  try {
    const code = await untilEnd;
    return isStopping ? await new Promise(() => {}) : code;
  } catch (error) {
    throw error.code === "ENOENT"
      ? new UserError(`\`${child.spawnfile}\` could not be started: no such program.`)
      : error;
  } finally {
    running.delete(stopIt);
  }
}

async function forwardSignal(signal, untilEnd, child) {
  child.kill(signal);
  await untilEnd;
  return 128 + SIGNALS[signal];
}

function killGroup(pid) {
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // The process group is empty.
  }
}
