// Clients generated from openapi.json by third-party generators compile strictly and work.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { cp, mkdtemp, rm, symlink } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { build } from "esbuild";
import { OPENAPI } from "../../scripts/paths.mjs";
import { NODE } from "../../scripts/wrangler.mjs";
import { startServer } from "../workerd/harness.mjs";

const runFile = promisify(execFile);
const PACKAGES = join(import.meta.dirname, "generators");

let folder;
let server;
before(async () => {
  // Beside the packages that the generated code imports.
  folder = await mkdtemp(join(PACKAGES, ".made-"));
  await cp(join(PACKAGES, "used.ts"), join(folder, "used.ts"));
  await symlink(join(PACKAGES, "node_modules"), join(folder, "node_modules"), "dir");
  server = await startServer();
});
after(async () => {
  await server?.stop();
  if (folder) await rm(folder, { recursive: true });
});

/** Runs a program of the generators' packages. */
async function program(file, ...args) {
  const { stdout } = await runFile(NODE, [join(PACKAGES, "node_modules", file), ...args], { cwd: folder }).catch(
    ({ stdout, stderr }) => assert.fail(`${stdout}\n${stderr}`),
  );
  return stdout;
}

test("openapi_typescript_and_hey_api_generate_working_clients", async () => {
  await program("openapi-typescript/bin/cli.js", OPENAPI, "--output", "types.ts");
  await program(
    "@hey-api/openapi-ts/bin/run.js",
    "-i",
    OPENAPI,
    "-o",
    "hey",
    "-c",
    "@hey-api/client-fetch",
    "--no-log-file",
  );
  const options =
    "--noEmit --strict --skipLibCheck --target esnext --module esnext --moduleResolution bundler --lib esnext,dom,dom.iterable";
  assert.equal(await program("typescript/bin/tsc", ...options.split(" "), "used.ts"), "");

  const bundle = join(folder, "used.mjs");
  await build({
    entryPoints: [join(folder, "used.ts")],
    outfile: bundle,
    bundle: true,
    format: "esm",
    platform: "node",
  });
  const { byHeyApi, byOpenapiTypescript } = await import(pathToFileURL(bundle));
  const { origin } = new URL(server.url);
  const body = { texts: ["I like tea."], field: "query" };
  assert.deepEqual(await byOpenapiTypescript(origin), { name: "Typed", ...body });
  assert.deepEqual(await byHeyApi(origin), { name: "Hey", ...body });
});
