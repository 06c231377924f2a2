// The Python package from its archive: both archives are built, the wheel is installed into an
// empty environment, the types are checked, and pytest runs the tests in this folder against the
// Worker, all with the oldest and the newest Python (3.11 or later) on this machine.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { promisify } from "node:util";
import { build } from "esbuild";
import { pythonPackages, pythons } from "../../scripts/setup/python.mjs";
import { CLIENT, ROOT } from "../../scripts/paths.mjs";
import { NODE } from "../../scripts/wrangler.mjs";
import { startProvider } from "../client/provider_server.mjs";
import { startServer } from "../workerd/harness.mjs";

const SECRET = "a secret of the tests of the Python package";
const PACKAGE = join(ROOT, "python");
const HERE = import.meta.dirname;
const PYRIGHT = join(HERE, "node_modules", "pyright", "index.js");
const LIMIT_MS = 600_000;

/** The only packages that `pip install session-agent` brings along. */
const BESIDE = ["httpx", "httpcore", "h11", "anyio", "idna", "certifi", "sniffio", "typing_extensions.py"];

/**
 * LangGraph's suite takes as long as all other tests together, and the third-party clients take 250
 * MB on disk, so they run with the oldest Python alone.
 */
const NOT_TWICE = [
  "--deselect",
  "test_langgraph.py::test_langgraphs_conformance_suite",
  `--ignore=${join(HERE, "test_base_url_clients.py")}`,
];

const requirements = (file) =>
  readFileSync(join(HERE, file), "utf8")
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"));

const PACKAGES = {
  title: "what the Python package is tested with (LangGraph, OpenAI's Agents SDK, pytest: some 150 MB on disk)",
  requirements: requirements("requirements.txt"),
};

const CLIENTS = {
  title: "clients that use the base URL (LangChain, LiteLLM: some 250 MB on disk)",
  requirements: requirements("clients.txt"),
};

const OLDER = {
  title: "the clients of OpenAI and Anthropic of a year ago",
  requirements: requirements("official.txt"),
};

const folder = mkdtempSync(join(tmpdir(), "session-agent-python-"));
after(() => rmSync(folder, { recursive: true, force: true }));

/** Runs a program and returns its output, which is also the reason if it fails. */
async function run(program, args, { cwd = folder, env = process.env } = {}) {
  try {
    const { stdout } = await promisify(execFile)(program, args, { cwd, env, timeout: LIMIT_MS, maxBuffer: 2 ** 26 });
    return stdout;
  } catch (error) {
    assert.fail(`${program} ${args.slice(0, 4).join(" ")}: ${error.stdout}\n${error.stderr}`.slice(-20_000));
  }
}

/** The program that shares threads with Python, with the packages of the client's tests. */
const JAVASCRIPT = join(folder, "javascript.mjs");
await build({
  entryPoints: [join(HERE, "javascript.mjs")],
  outfile: JAVASCRIPT,
  bundle: true,
  platform: "node",
  format: "esm",
  alias: {
    "session-agent": join(CLIENT, "dist", "index.js"),
    "session-agent/langgraph": join(CLIENT, "dist", "langgraph.js"),
    "session-agent/openai-agents": join(CLIENT, "dist", "openai-agents.js"),
  },
  nodePaths: [join(ROOT, "tests", "client", "node_modules")],
  logLevel: "warning",
});

const found = await pythons();
const chosen = found.because ? [] : await Promise.all(found.map((one) => pythonPackages(PACKAGES, { found: one })));

const clients = found.because ? found : await pythonPackages(CLIENTS, { found: found[0] });
const older = found.because ? found : await pythonPackages(OLDER, { found: found[0] });

const provider = await startProvider();
after(() => provider.stop());
const server = await startServer({
  inspect: false,
  vars: { OPENAI_BASE_URL: provider.openai, OPENAI_API: "responses", ANTHROPIC_BASE_URL: provider.anthropic },
  secrets: { SESSION_AGENT_TOKEN: SECRET, OPENAI_API_KEY: "openai's key", ANTHROPIC_API_KEY: "anthropic's key" },
});
after(() => server.stop());

test("a_python_with_the_packages_is_installed", () => {
  for (const { because, help } of [found, ...chosen, clients, older])
    assert.equal(because, undefined, `${because}: ${help}`);
});

// The `build` step generates the modules that are not in the repository, so nothing here is older
// than the document.
const [oldest] = chosen;
if (oldest?.python) {
  const args = ["-m", "build", "--no-isolation", "--outdir", join(folder, "dist"), PACKAGE];
  test("both_archives_are_built", async () => {
    await run(oldest.python, args, { env: oldest.env });
    const names = readdirSync(join(folder, "dist")).sort();
    assert.match(names.join(), /^session_agent-[\d.]+-py3-none-any\.whl,session_agent-[\d.]+\.tar\.gz$/);
    const [version] = names[0].match(/[\d.]+(?=-py3)/);
    assert.equal(JSON.parse(readFileSync(join(ROOT, "packages/session-agent/package.json"), "utf8")).version, version);
    assert.match(readFileSync(join(PACKAGE, "src/session_agent/_version.py"), "utf8"), RegExp(`"${version}"`));
    const listed = await run(oldest.python, ["-m", "zipfile", "--list", join(folder, "dist", names[0])]);
    for (const file of ["py.typed", "types.py", "_sync/agent.py", "_async/operations.py"])
      assert.match(listed, RegExp(`session_agent/${file} `));
    for (const file of ["LICENSE", "METADATA"]) assert.match(listed, RegExp(`dist-info/(licenses/)?${file} `));
    assert.doesNotMatch(listed, /tests\/|__pycache__|generate/);
  });

  for (const [n, { python, env }] of chosen.entries()) {
    const { version } = found[n];
    test(`python_${version.join("_")}`, async (t) => {
      const environment = join(folder, `python-${n}`);
      const own = join(environment, "bin", "python");
      const packages = join(environment, "lib", `python${version.join(".")}`, "site-packages");
      await t.test("the_wheel_installs_into_an_empty_environment", async () => {
        await run(python, ["-m", "venv", "--without-pip", environment]);
        const wheel = readdirSync(join(folder, "dist")).find((name) => name.endsWith(".whl"));
        const install = ["install", "--quiet", "--no-index", "--no-deps", "--no-compile", join(folder, "dist", wheel)];
        await run(python, ["-m", "pip", "--python", own, ...install]);
        for (const name of BESIDE) symlinkSync(join(env.PYTHONPATH, name), join(packages, name));
      });
      await t.test("it_depends_only_on_httpx_and_names_what_an_adapter_needs", async () => {
        const program = `
import session_agent, sys
agent = session_agent.SessionAgent(${JSON.stringify(String(server.url))}, "bare-${n}", token=${JSON.stringify(SECRET)})
assert agent.session("s").create()["id"] == "s"
assert session_agent.__file__.startswith(sys.prefix), session_agent.__file__
for name in ("langgraph", "openai_agents"):
    try:
        __import__("session_agent." + name)
    except ImportError as error:
        assert "pip install" in str(error), error
    else:
        raise AssertionError(name)
`;
        await run(own, ["-c", program]);
      });
      await t.test("pytest", async () => {
        const others = n === 0 ? [env.PYTHONPATH, clients.env.PYTHONPATH] : [env.PYTHONPATH];
        writeFileSync(join(packages, "others.pth"), `${others.join("\n")}\n`);
        const more = {
          SESSION_AGENT_URL: String(server.url),
          SESSION_AGENT_TOKEN: SECRET,
          SESSION_AGENT_JAVASCRIPT: JAVASCRIPT,
          SESSION_AGENT_PROVIDER: provider.anthropic,
          // It includes a list of prices.
          LITELLM_LOCAL_MODEL_COST_MAP: "True",
          PYTHONDONTWRITEBYTECODE: "1",
        };
        const pytest = async (what, least, env = {}) => {
          const report = join(folder, `report-${n}.xml`);
          const flags = ["-q", "-p", "no:cacheprovider", "--tb=short", "--durations=5", `--junitxml=${report}`];
          const output = await run(own, ["-m", "pytest", ...flags, ...what], {
            cwd: HERE,
            env: { ...process.env, ...more, ...env },
          });
          console.log(output.trimEnd().split("\n").slice(-8).join("\n"));
          const [, skipped, tests] = readFileSync(report, "utf8").match(/ skipped="(\d+)" tests="(\d+)"/);
          assert.ok(Number(tests) > least, `${tests} tests`);
          assert.equal(skipped, "0");
        };
        await pytest([...(n > 0 ? NOT_TWICE : []), HERE], 40);
        // PYTHONPATH has precedence over the newest versions.
        const official = ["test_base_url.py", "test_base_url_sdks.py"].map((file) => join(HERE, file));
        if (n === 0) await pytest(official, 20, { PYTHONPATH: older.env.PYTHONPATH });
      });
    });
  }

  // The sources as they are installed, and a caller's program.
  test("the_types_check_strictly", async () => {
    const project = join(folder, "typed");
    mkdirSync(project);
    const packages = join(folder, "python-0", "lib", `python${found[0].version.join(".")}`, "site-packages");
    cpSync(join(packages, "session_agent"), join(project, "session_agent"), { recursive: true });
    cpSync(join(HERE, "typed.py"), join(project, "typed.py"));
    const settings = {
      include: ["."],
      typeCheckingMode: "strict",
      pythonVersion: "3.11",
      extraPaths: [oldest.env.PYTHONPATH],
    };
    writeFileSync(join(project, "pyrightconfig.json"), JSON.stringify(settings));
    const output = await run(NODE, [
      PYRIGHT,
      "--pythonpath",
      join(folder, "python-0", "bin", "python"),
      "--project",
      project,
    ]);
    assert.match(output, /^0 errors, 0 warnings/m);
  });
}
