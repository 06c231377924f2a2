// The supported versions: packages/session-agent/src/versions.ts defines them, and every other
// place must state the same.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { problemOfDate, problemOfModel, problemOfTool } from "../../client/dist/worker/fitting.js";
import { VERSIONS } from "../../client/dist/versions.js";
import nodes from "../../scripts/node_version.cjs";
import { ROOT } from "../../scripts/paths.mjs";

const { node, wrangler, compatibilityDate, ai } = VERSIONS;
const MAJORS = Object.keys(ai.majors);
const TEMPLATES = "packages/create-session-agent/templates";
const CREATE = "packages/create-session-agent";

const textOf = (path) => readFile(join(ROOT, path), "utf8");
const jsonOf = async (path) => JSON.parse(await textOf(path));
const short = (version) => version.replace(/(\.0)+$/, "");

const TABLE = `| what | works with |
|---|---|
| Node | ${short(node.worker)} and later; for the client, ${short(node.client)} and later |
| wrangler | ${wrangler.oldest} to ${wrangler.newest} |
| \`compatibility_date\` | ${compatibilityDate.oldest} to ${compatibilityDate.newest} |
| \`ai\`, the AI SDK | ${MAJORS.slice(0, -1).join(", ")} and ${MAJORS.at(-1)} |
`;

test("readme_guide_and_packages_state_the_same_versions", async () => {
  for (const path of ["README.md", "docs/embed.md", "packages/session-agent/README.md", `${CREATE}/README.md`]) {
    assert.ok((await textOf(path)).includes(TABLE), `${path} has not this table:\n${TABLE}`);
  }
});

test("each_package_requires_the_node_version_it_needs", async () => {
  const enginesOf = async (path) => (await jsonOf(`${path}/package.json`)).engines.node;
  assert.deepEqual(
    [await enginesOf("."), await enginesOf("packages/session-agent")],
    Array(2).fill(`>=${short(node.client)}`),
  );
  const templates = await readdir(join(ROOT, TEMPLATES));
  for (const path of [CREATE, ...templates.map((name) => `${TEMPLATES}/${name}`)])
    assert.equal(await enginesOf(path), `>=${short(node.worker)}`, path);
  // The Node versions for the scripts and for wrangler.
  assert.equal(nodes.problemWithNode(node.client), null);
  assert.match(nodes.problemWithNode("19.9.0"), new RegExp(`needs Node ${short(node.client)} `));
  assert.deepEqual([nodes.runsWrangler(node.worker), nodes.runsWrangler("22.11.0")], [true, false]);
});

test("the_oldest_and_newest_documented_versions_are_tested", async () => {
  const oldest = (await jsonOf("tests/client/versions/package.json")).devDependencies;
  assert.equal(oldest.wrangler, wrangler.oldest);
  assert.equal((await jsonOf("package.json")).devDependencies.wrangler, wrangler.newest);
  assert.equal((await jsonOf("tests/package.json")).devDependencies.ai, ai.newest);
  const tested = Object.entries(oldest).filter(([name]) => /^ai-\d+$/.test(name));
  assert.deepEqual(
    tested.map(([, version]) => version.match(/^npm:ai@(\d+)\./)[1]),
    MAJORS,
  );
  assert.ok(ai.newest.startsWith(`${MAJORS.at(-1)}.`));
  const { engines } = await jsonOf("node_modules/wrangler/package.json");
  assert.equal(engines.node, `>=${node.worker}`);
});

test("the_client_alone_has_no_peer_dependencies", async () => {
  // npm fails where a peer is of another version, also an optional one. The client needs neither.
  const { peerDependencies } = await jsonOf("packages/session-agent/package.json");
  assert.deepEqual([peerDependencies.ai, peerDependencies.wrangler], [undefined, undefined]);
});

test("templates_examples_and_guides_use_supported_versions", async () => {
  const templates = await readdir(join(ROOT, TEMPLATES));
  assert.deepEqual(templates.sort(), ["class", "react", "worker"]);
  for (const name of templates) {
    const { dependencies, devDependencies } = await jsonOf(`${TEMPLATES}/${name}/package.json`);
    assert.equal(devDependencies.wrangler, `^${wrangler.oldest}`, name);
    if (dependencies.ai !== undefined) assert.equal(dependencies.ai, `^${MAJORS.at(-1)}.0.0`, name);
  }
  assert.match(await textOf("wrangler.toml"), new RegExp(`^compatibility_date = "${compatibilityDate.newest}"$`, "m"));
  // This example contains no Worker.
  const examples = (await readdir(join(ROOT, "examples"))).filter((name) => name !== "github-actions");
  const configurations = [
    ...templates.map((name) => `${TEMPLATES}/${name}/wrangler.toml`),
    ...examples.map((name) => `examples/${name}/wrangler.toml`),
  ];
  const guides = (await readdir(join(ROOT, "docs")))
    .filter((name) => name.endsWith(".md"))
    .map((name) => `docs/${name}`);
  let dates = 0;
  for (const path of [...configurations, ...guides]) {
    for (const [, date] of (await textOf(path)).matchAll(/^compatibility_date = "(.+)"$/gm)) {
      assert.ok(date >= compatibilityDate.oldest && date <= compatibilityDate.newest, `${path}: ${date}`);
      dates += 1;
    }
  }
  assert.ok(dates > configurations.length, `${dates} dates were found`);
});

test("an_unsupported_version_is_explained_in_a_sentence", () => {
  assert.deepEqual([problemOfDate({ rpc: true }), problemOfDate(undefined)], [null, null]);
  assert.equal(
    problemOfDate({}),
    "The Worker's `compatibility_date` is older than 2024-04-03, or it has the flag `no_rpc`. Write a date from 2024-04-03 to 2026-11-17 into its wrangler.toml.",
  );
  for (const specificationVersion of Object.values(ai.majors))
    assert.equal(problemOfModel({ specificationVersion }), null);
  assert.equal(
    problemOfModel({ specificationVersion: "v1" }),
    '`model` returned a model of the specification "v1". Session Agent supports those of `ai` 5, 6 and 7. Install `ai@7` and the provider\'s package for it, with Node 22.12.0 or later: under Node 20, npm chooses old versions.',
  );
  assert.match(
    problemOfModel({ specificationVersion: "v9" }),
    /Install a newer `session-agent`, or an older package of the provider\.$/,
  );
  assert.deepEqual([problemOfTool({ inputSchema: {} }), problemOfTool({})], [null, null]);
  assert.match(problemOfTool({ parameters: {} }), /^it has `parameters` and no `inputSchema`, as tools of `ai` 4\. /);
});

test("an_old_node_is_reported_before_anything_is_created", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "session-agent-old-node-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const old = (version) =>
    `Object.defineProperty(process, "versions", { value: { ...process.versions, node: "${version}" } });`;
  for (const [version, isAccepted] of [
    ["20.20.2", false],
    ["22.11.0", false],
    [node.worker, true],
    ["24.0.0", true],
  ]) {
    await writeFile(join(folder, "old.cjs"), old(version));
    const program = join(ROOT, CREATE, "index.js");
    const running = promisify(execFile)(
      process.execPath,
      ["--require", join(folder, "old.cjs"), program, `made-${version}`],
      { cwd: folder },
    );
    const { code = 0, stderr } = await running.catch((error) => error);
    assert.equal(code, isAccepted ? 0 : 1, `${version}: ${stderr}`);
    assert.equal((await readdir(folder)).includes(`made-${version}`), isAccepted);
    if (!isAccepted)
      assert.match(
        stderr,
        new RegExp(`^Session Agent .* needs Node ${node.worker} or later, and this is Node ${version}\\. .*\\.\\n$`),
      );
  }
});
