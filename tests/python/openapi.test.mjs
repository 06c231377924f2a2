// Python clients generated from openapi.json by third-party generators work.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { OPENAPI } from "../../scripts/paths.mjs";
import { pythonPackages } from "../../scripts/setup/python.mjs";
import { startServer } from "../workerd/harness.mjs";

const SECRET = "a secret of the tests of the document for Python";
const HERE = join(import.meta.dirname, "openapi");
const LIMIT_MS = 300_000;

const PACKAGES = {
  title: "programs that read openapi.json (generators of clients, schemathesis: some 100 MB on disk)",
  requirements: readFileSync(join(HERE, "requirements.txt"), "utf8")
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#")),
};

const folder = mkdtempSync(join(tmpdir(), "session-agent-openapi-"));
let server;
let packages;
before(async () => {
  packages = await pythonPackages(PACKAGES);
  assert.equal(packages.because, undefined, `${packages.because}: ${packages.help}`);
  const secrets = { SESSION_AGENT_TOKEN: SECRET };
  const workers = { tools: "export default { fetch: () => new Response('done') };" };
  server = await startServer({ inspect: false, directory: true, vars: { MODEL: "demo" }, secrets, workers });
});
after(async () => {
  await server?.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** Runs Python with the packages and the generated code. Returns its output. */
async function python(...args) {
  const env = { ...packages.env, PYTHONPATH: [packages.env.PYTHONPATH, folder].join(delimiter) };
  const options = { cwd: folder, env, timeout: LIMIT_MS, maxBuffer: 2 ** 26 };
  const { stdout, stderr } = await promisify(execFile)(packages.python, args, options).catch((error) =>
    assert.fail(`${args.join(" ")}: ${error.stdout}\n${error.stderr}`.slice(-20_000)),
  );
  return stdout + stderr;
}

test("openapi_python_client_generates_a_working_client_of_all_operations", async () => {
  const output = await python(
    ...["-m", "openapi_python_client", "generate", "--path", OPENAPI, "--meta", "none"],
    ...["--config", join(HERE, "openapi-python-client.yml"), "--output-path", join(folder, "session_agent_api")],
  );
  // The generator omits what it can't read, with a warning.
  assert.doesNotMatch(output, /warning|unable|error/i);
  await python(join(HERE, "used_client.py"), String(server.url), SECRET);
});

test("datamodel_code_generator_makes_models_that_accept_answers_and_refuse_wrong_requests", async () => {
  await python(
    ...["-m", "datamodel_code_generator", "--input", OPENAPI, "--input-file-type", "openapi"],
    ...["--output-model-type", "pydantic_v2.BaseModel", "--target-python-version", "3.11", "--formatters", "builtin"],
    ...["--disable-warnings", "--output", join(folder, "session_agent_models.py")],
  );
  await python(join(HERE, "used_models.py"), String(server.url), SECRET);
});

test("requests_and_answers_match_the_document", async () => {
  console.log((await python(join(HERE, "valid_requests.py"), OPENAPI, String(server.url), SECRET)).trimEnd());
});
