// Runs an example together with Session Agent: `npm start` in the example's folder.
// Both Workers run on this machine's loopback, with no account and no login.
//
//   PORT              the port, 8788 by default
//   MODEL, OPENAI_BASE_URL, OPENAI_API_KEY, ANTHROPIC_API_KEY
//                     the model of Session Agent's own turns, `demo` by default
//
// Session Agent has no public route here either: the example reaches it by a service
// binding, with a secret that is made for this run.

import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { build } from "./build.mjs";
import { BUILD, LOCAL, ROOT } from "./paths.mjs";
import { run, startServer } from "./processes.mjs";
import { setUp } from "./setup.mjs";
import { packagesOfExample } from "./setup/packages.mjs";
import { portFrom } from "./start.mjs";
import { UserError } from "./user_error.mjs";
import { NODE, quietEnv, WRANGLER } from "./wrangler.mjs";

export const FIRST_PORT = "8788";
const FORWARDED = ["MODEL", "OPENAI_BASE_URL", "OPENAI_API_KEY", "ANTHROPIC_API_KEY"];

export async function main([name]) {
  const examples = join(ROOT, "examples");
  const names = readdirSync(examples).filter((one) => existsSync(join(examples, one, "package.json")));
  if (!names.includes(name)) throw new UserError(`There is no such example: ${names.join(", ")}.`);
  const folder = join(examples, name);
  await setUp(packagesOfExample(folder));
  await build();
  await buildPage(folder);

  const secret = randomBytes(32).toString("hex");
  const memory = writeConfiguration(name, folder, secret);
  const options = [
    "--config",
    join(folder, "wrangler.toml"),
    "--config",
    memory,
    "--local",
    "--ip",
    "127.0.0.1",
    "--port",
    portFrom(process.env.PORT ?? FIRST_PORT),
    "--inspector-port",
    "0",
    "--persist-to",
    join(LOCAL, "examples", name, "state"),
    "--var",
    `SESSION_AGENT_TOKEN:${secret}`,
    "--show-interactive-dev-session=false",
  ];
  return await startServer(NODE, [WRANGLER, "dev", ...options.map(String)], { cwd: folder, env: quietEnv() }).ended;
}

/** The page of an example that has one. */
async function buildPage(folder) {
  if (JSON.parse(readFileSync(join(folder, "package.json"), "utf8")).scripts.build === undefined) return;
  const code = await run("npm", ["run", "--silent", "build"], { cwd: folder, env: quietEnv() });
  if (code !== 0) throw new UserError("The example's page could not be built: see the reason above.");
}

/** Session Agent's configuration for this run: the production one's bindings, a secret, and the example's tools. */
function writeConfiguration(name, folder, secret) {
  const [, compatibilityDate] = readFileSync(join(ROOT, "wrangler.toml"), "utf8").match(
    /^compatibility_date = "(.+)"/m,
  );
  const example = wranglerOf(folder);
  const offersTools = /^export class Tools /m.test(readFileSync(join(folder, example("main")), "utf8"));
  const configuration = {
    name: "session-agent",
    main: join(BUILD, "index.js"),
    compatibility_date: compatibilityDate,
    durable_objects: { bindings: [{ name: "SESSION_AGENT", class_name: "SessionAgent" }] },
    migrations: [{ tag: "v1", new_sqlite_classes: ["SessionAgent"] }],
    vars: { MODEL: "demo", ...given(FORWARDED), SESSION_AGENT_TOKEN: secret },
    ...(offersTools && { services: [{ binding: "TOOLS", service: example("name"), entrypoint: "Tools" }] }),
  };
  const target = join(LOCAL, "examples", name);
  mkdirSync(target, { recursive: true });
  const file = join(target, "wrangler.json");
  writeFileSync(file, JSON.stringify(configuration, null, 2));
  return file;
}

/** Reads texts of the example's own configuration. */
function wranglerOf(folder) {
  const text = readFileSync(join(folder, "wrangler.toml"), "utf8");
  return (field) => text.match(new RegExp(`^${field} = "(.+)"`, "m"))[1];
}

const given = (names) =>
  Object.fromEntries(names.filter((name) => process.env[name] !== undefined).map((name) => [name, process.env[name]]));
