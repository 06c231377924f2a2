// `npm start`: runs Session Agent on the loopback interface, without an account, a login or
// requests to Cloudflare.
//
// It runs the production configuration with `wrangler dev --local`, with two differences.
// AUTH=local: every program on this machine has access, but no web page does. AGENT_DEFAULTS, if
// it is not set: a new agent has a memory.
//
//   PORT                 the first port to try, 8787 by default
//   SESSION_AGENT_STATE  the folder for the state, .local/state by default

import { createServer } from "node:net";
import { join, relative } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { build } from "./build.mjs";
import { localDefaults } from "./local_defaults.mjs";
import { LOCAL, ROOT } from "./paths.mjs";
import { setUp } from "./setup.mjs";
import { UserError } from "./user_error.mjs";
import { startServer } from "./processes.mjs";
import { NODE, quietEnv, WRANGLER } from "./wrangler.mjs";

const STATE = process.env.SESSION_AGENT_STATE ?? join(LOCAL, "state");
const HOST = "127.0.0.1";
const FIRST_PORT = 8787;
const PORTS_TRIED = 50;

export async function main() {
  await setUp();
  await build();

  const port = await freePort(portFrom(process.env.PORT));
  const server = startServer(NODE, [WRANGLER, "dev", ...wranglerOptions(port)], {
    cwd: ROOT,
    env: { ...quietEnv(), SESSION_AGENT_START: "1" },
  });
  const address = `http://${HOST}:${port}`;
  untilItAnswers(`${address}/health`, server).then(async (answers) => {
    if (answers) console.log(welcome(address, await findAccess(address)));
  });
  return await server.ended;
}

function wranglerOptions(port) {
  return [
    "--local",
    "--ip",
    HOST,
    "--port",
    port,
    "--inspector-port",
    "0",
    "--persist-to",
    STATE,
    "--var",
    "AUTH:local",
    ...localDefaults(ROOT),
    // Otherwise `Host` is a route of wrangler.toml, whatever name a page used, and
    // AUTH=local can't check whether that was this machine's own.
    "--infer-origin-from-routes=false",
    "--show-interactive-dev-session=false",
    "--log-level",
    "log",
  ].map(String);
}

/** Checks who has access: sends an unknown operation, which creates no tables in an object. */
async function findAccess(address) {
  const response = await fetch(`${address}/agents/session-agent/demo/rpc/whoGetsIn`, {
    method: "POST",
    body: "{}",
    signal: AbortSignal.timeout(5_000),
  }).catch(() => undefined);
  const { error } = (await response?.json().catch(() => undefined)) ?? {};
  if (error?.code === "unknown_operation") return { access: "open to everyone on this machine", header: "" };
  const access =
    response?.status === 401
      ? "requires a token, because SESSION_AGENT_TOKEN is set in .dev.vars or the environment"
      : (error?.message ?? "does not report who has access");
  return { access, header: ` -H "authorization: Bearer $SESSION_AGENT_TOKEN"` };
}

function welcome(address, { access, header }) {
  return `
Session Agent is running at ${address}

  ${access}, state stored in ${relative(ROOT, STATE)}, Ctrl-C stops it

Create a session:

  curl -s ${address}/agents/session-agent/demo/rpc/createSession${header} -d '{"name":"first"}'
`;
}

export function portFrom(text) {
  if (!text) return FIRST_PORT;
  const port = Number(text);
  if (!Number.isInteger(port) || port < 1 || port > 65_535) {
    throw new UserError(`PORT must be a number from 1 to 65535, not \`${text}\`.`);
  }
  return port;
}

/** `wanted`, or the next free port. */
async function freePort(wanted) {
  for (let port = wanted; port < wanted + PORTS_TRIED && port <= 65_535; port++) {
    if (await isFree(port)) return port;
  }
  throw new UserError(`No free port was found, starting at ${wanted}. Set PORT to a free one.`);
}

function isFree(port) {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once("error", () => resolve(false));
    probe.listen(port, HOST, () => probe.close(() => resolve(true)));
  });
}

/** Whether it answered, with any status, before it ended. */
async function untilItAnswers(url, server) {
  while (server.isRunning()) {
    try {
      await fetch(url, { signal: AbortSignal.timeout(5_000) });
      return true;
    } catch {
      await wait(100);
    }
  }
  return false;
}
