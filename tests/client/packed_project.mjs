// Creates a project that installs the packed archive in its own folder. Its other dependencies are
// linked from the packages of these tests.

import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { promisify } from "node:util";
import { CLIENT, ROOT } from "../../scripts/paths.mjs";
import { NODE, quietEnv, WRANGLER } from "../../scripts/wrangler.mjs";
import { reservePort } from "../workerd/ports.mjs";

const runFile = promisify(execFile);
const START_MS = 120_000;

/**
 * A folder with the package from its archive, and `sources`. `links`: the names of other packages,
 * which are linked. `parent`: the folder that contains it, whose packages it uses. `remove` deletes
 * it.
 */
export async function project(sources, links = [], parent = undefined) {
  const folder = await mkdtemp(
    parent === undefined ? join(tmpdir(), "session-agent-project-") : join(parent, ".project-"),
  );
  const archives = await mkdtemp(join(tmpdir(), "session-agent-archive-"));
  await runFile("npm", ["pack", CLIENT, "--pack-destination", archives], { env: quietEnv() });
  const [archive] = await readdir(archives);
  await cp(sources, folder, { recursive: true });
  const { scripts } = existsSync(join(folder, "package.json"))
    ? JSON.parse(await readFile(join(folder, "package.json"), "utf8"))
    : {};
  await writeFile(
    join(folder, "package.json"),
    JSON.stringify({ name: "a-project", private: true, type: "module", scripts }),
  );
  await runFile(
    "npm",
    ["install", "--offline", "--no-audit", "--no-fund", "--legacy-peer-deps", join(archives, archive)],
    { cwd: folder, env: quietEnv() },
  );
  await rm(archives, { recursive: true });
  for (const name of links) {
    const to = join(folder, "node_modules", name);
    await mkdir(dirname(to), { recursive: true });
    const [found] = ["tests/node_modules", "tests/client/node_modules", "node_modules"]
      .map((folder) => join(ROOT, folder, name))
      .filter(existsSync);
    await symlink(found, to, "dir");
    await linkPrograms(found, join(folder, "node_modules/.bin"));
  }
  return { folder, remove: () => rm(folder, { recursive: true, force: true }) };
}

/** The folder in which npm's scripts find a package's programs. */
async function linkPrograms(from, bin) {
  const { name, bin: programs = {} } = JSON.parse(await readFile(join(from, "package.json"), "utf8"));
  await mkdir(bin, { recursive: true });
  for (const [program, file] of Object.entries(typeof programs === "string" ? { [name]: programs } : programs)) {
    await symlink(join(from, file), join(bin, program));
  }
}

/** Runs a script of a project's package.json to its end. Returns its output. */
export async function npmRun(folder, ...args) {
  const { stdout, stderr } = await runFile("npm", ["run", ...args], { cwd: folder, env: { ...quietEnv(), CI: "1" } });
  return `${stdout}\n${stderr}`;
}

/** The wrangler of the project's parent folder, or the newest. */
function wranglerOf(folder) {
  const own = join(dirname(folder), "node_modules/wrangler/bin/wrangler.js");
  return existsSync(own) ? own : WRANGLER;
}

/** Runs wrangler in a project to its end. Returns its output. */
export async function wrangler(folder, ...args) {
  const { stdout, stderr } = await runFile(NODE, [wranglerOf(folder), ...args], {
    cwd: folder,
    env: { ...quietEnv(), CI: "1", WRANGLER_LOG_PATH: join(folder, "logs") },
  });
  return `${stdout}\n${stderr}`;
}

/** `npm run dev` of a project, or `wrangler dev` if it has no such script: `{ url, stop, output }`. */
export async function dev(folder, ...args) {
  const reserved = await reservePort();
  const { port } = reserved.address();
  reserved.close();
  const { scripts } = JSON.parse(await readFile(join(folder, "package.json"), "utf8"));
  const [program, ...first] =
    scripts?.dev === undefined ? [NODE, wranglerOf(folder), "dev", "--local"] : ["npm", "run", "dev", "--"];
  const options = [
    "--ip",
    "127.0.0.1",
    "--port",
    `${port}`,
    "--inspector-port",
    "0",
    "--show-interactive-dev-session=false",
    ...args,
  ];
  const env = { ...quietEnv(), CI: "1", WRANGLER_LOG_PATH: join(folder, "logs") };
  // A separate process group: npm does not forward a signal to its child processes.
  const child = spawn(program, [...first, ...options], {
    cwd: folder,
    env,
    detached: true,
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", (text) => (output += text));
  const ended = once(child, "close");
  const url = `http://127.0.0.1:${port}`;
  const stop = async () => {
    if (child.exitCode === null && child.signalCode === null) process.kill(-child.pid, "SIGINT");
    await ended;
  };
  try {
    for (const until = Date.now() + START_MS; ; await wait(200)) {
      if (
        await fetch(`${url}/own/ready`).then(
          (response) => response.arrayBuffer(),
          () => null,
        )
      )
        break;
      assert.ok(
        child.exitCode === null && !/ERROR\b/.test(output) && Date.now() < until,
        "The project does not answer.",
      );
    }
  } catch (error) {
    await stop();
    throw new Error(`${error.message}\n${output}`, { cause: error });
  }
  return { url, stop, output: () => output };
}
