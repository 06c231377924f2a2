// The README, held to what is true: its requests are sent as they are printed,
// its TypeScript is run, its tables are compared. How the tour is written is in
// reader.mjs.

import assert from "node:assert/strict";
import { mkdtemp, readFile, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { transform } from "esbuild";
import { costsInAnAgentOf, costsInASessionOf, costsOfTurns } from "../../bench/costs.mjs";
import { OPENAPI } from "../../scripts/places.mjs";
import { startServer } from "./harness.mjs";
import { answersIn, Reader } from "./reader.mjs";
import { blocks, fromRoot, namesIn, readme, tableUnder } from "./readme.mjs";

const FEWEST_REQUESTS = 18;

const server = await startServer();
after(() => server.stop());

test("the_tour_answers_as_it_is_printed", async () => {
  const storage = await mkdtemp(join(tmpdir(), "session-agent-readme-"));
  let toured = await startServer({ storage });
  try {
    const reader = new Reader();
    let sent = 0;
    for (const [n, { language, text }] of blocks.entries()) {
      if (language !== "sh") continue;
      const requests = [];
      for (const { secret, request } of reader.follow(text)) {
        if (request) requests.push(request);
        if (!secret) continue;
        await toured.stop();
        toured = await startServer({ storage, secrets: secret });
      }
      const answers = requests.length > 0 ? answersIn(blocks[n + 1]) : [];
      assert.equal(answers.length, requests.length, `an answer a request:\n${text}`);
      for (const [n, { path, init }] of requests.entries()) {
        const response = await toured.fetch(path, init);
        const where = `${path} ${init.body ?? ""}`;
        assert.equal(response.ok, !("error" in answers[n]), where);
        reader.compare(await response.json(), answers[n], where);
        sent += 1;
      }
    }
    assert.ok(sent >= FEWEST_REQUESTS, `${sent} requests`);
    assert.equal(sent, readme.match(/\bcurl -/g).length, "every request of the README is one of the tour");
  } finally {
    await toured.stop();
    await rm(storage, { recursive: true, force: true });
  }
});

test("the_typescript_runs_over_both_bindings", async () => {
  const [helper, ...uses] = blocks.filter(({ language }) => language === "ts").map(({ text }) => text);
  assert.equal(uses.length, 2);
  await server.call("alice", "createSession", { id: "trip" });
  const message = { id: "ask", role: "user", parts: [{ type: "text", text: "Is it raining in Oslo?" }] };
  await server.call("alice", "appendMessage", { sessionId: "trip", message });
  const used = [];
  const fetcher = (via, agent) => ({
    fetch: (url, init) => {
      used.push(via);
      return server.fetch(new URL(url).pathname, init, { via, agent });
    },
  });
  const env = { MEMORY: fetcher("service"), AGENTS: { getByName: (name) => fetcher("object", name) } };
  for (const use of uses) {
    const typed = `export default async (env: any) => { ${use}\n return { messages, alice }; };\n${helper}`;
    const { code } = await transform(typed, { loader: "ts" });
    const { default: run } = await import(`data:text/javascript,${encodeURIComponent(code)}`);
    const { messages, alice } = await run(env);
    assert.deepEqual(messages.map(({ id }) => id), ["ask"]);
    await assert.rejects(alice("getHistory", { sessionId: "nowhere" }), { code: "session_not_found" });
  }
  assert.deepEqual(used, ["service", "service", "object", "object"]);
});

test("the_table_of_operations_is_the_api_documents", async () => {
  const { paths } = JSON.parse(await readFile(OPENAPI, "utf8"));
  const documented = Object.keys(paths).filter((path) => path.includes("/rpc/")).map((path) => path.split("/").at(-1));
  assert.deepEqual(namesIn(tableUnder("Operations"), 1).sort(), documented.sort());
});

test("the_table_of_configuration_is_what_the_worker_reads", async () => {
  const edge = await Promise.all(["mod", "object", "router"].map((name) => readFile(fromRoot(`src/edge/${name}.rs`), "utf8")));
  const read = [...edge.join("\n").matchAll(/\.(?:secret|var|durable_object|service|ai|bucket)\("(\w+)"\)/g)];
  const sources = await readdir(fromRoot("src"), { recursive: true });
  for (const file of sources.filter((file) => file.endsWith(".rs") && !/tests|testing/.test(file))) {
    const source = await readFile(fromRoot(`src/${file}`), "utf8");
    read.push(...source.matchAll(/find_setting\("(\w+)"\)/g));
    const named = [...source.matchAll(/find_setting\(([A-Z_]+)\)/g)].map(([, name]) => name);
    read.push(...[...source.matchAll(/const ([A-Z_]+): &str = "(\w+)";/g)].filter(([, name]) => named.includes(name)).map(([, , value]) => [, value]));
  }
  const settings = (await readFile(fromRoot("wrangler.toml"), "utf8")).replaceAll(/^#.*$/gm, "");
  const bound = [...settings.matchAll(/^(?:binding|name) = "([A-Z_]+)"/gm)];
  assert.ok(read.length >= 3 && bound.length >= 3);
  const names = new Set([...read, ...bound].map(([, name]) => name));
  assert.deepEqual(namesIn(tableUnder("Configuration"), 0).sort(), [...names].sort());
});

test("the_tables_of_costs_are_the_benchs", async () => {
  const measured = await readFile(fromRoot("bench/rows.md"), "utf8");
  const rows = readme.match(/^\| .* \| \d+ \/ \d+ \| .*$/gm);
  assert.ok(rows.length >= 12);
  for (const row of rows) assert.ok(measured.includes(`${row}\n`), row);
});

test("the_bench_has_measured_this_build", async () => {
  const lines = (await readFile(fromRoot("bench/rows.md"), "utf8")).split("\n");
  // The lengths that take a moment; cost.test.mjs goes further.
  const columns = [
    [1, await costsInASessionOf(server, 10)],
    [2, await costsInASessionOf(server, 1_000)],
    [1, await costsInAnAgentOf(server, 1)],
  ];
  for (const [column, costs] of columns) {
    assert.ok(costs.size >= 2);
    for (const [operation, cost] of costs) {
      const row = lines.find((line) => line.startsWith(`| ${operation} |`));
      assert.equal(row?.split("|")[column + 1].trim(), cost, `${operation}: \`npm run bench\` writes bench/rows.md anew`);
    }
  }
});

test("the_bench_has_measured_the_turns_of_this_build", async () => {
  const measured = await readFile(fromRoot("bench/rows.md"), "utf8");
  for (const [turn, costs] of await costsOfTurns()) {
    assert.ok(measured.includes(`| ${turn} | ${costs.join(" | ")} |\n`), `${turn}: \`npm run bench\` writes bench/rows.md anew`);
  }
});

test("every_link_into_the_tree_leads_somewhere", async () => {
  const links = [...readme.matchAll(/\]\((?!https?:)([^)#]+)\)/g)].map(([, path]) => path);
  assert.ok(links.length >= 3);
  for (const path of links) await readFile(fromRoot(path));
});
