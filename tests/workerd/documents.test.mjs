// Checks the README and the guides in docs/ against the Worker: their requests are sent as printed,
// their code is run or compiled, and wrangler reads their settings. A block of an unknown kind is a
// failure. document_reader.mjs describes how requests and answers are written. tables.test.mjs checks the
// tables, and types.test.mjs the types of the TypeScript.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { existsSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, test } from "node:test";
import { promisify } from "node:util";
import { transform } from "esbuild";
import { unstable_readConfig as readConfig } from "wrangler";
import { ROOT } from "../../scripts/paths.mjs";
import { NODE, quietEnv, WRANGLER } from "../../scripts/wrangler.mjs";
import { blocksIn, documents, ENV, isHelper, namesIn, read, readme, tableUnder, handWritten } from "./documents.mjs";
import { startServer } from "./harness.mjs";
import { openPage } from "./browser_tab.mjs";
import { runDocuments } from "./document_runner.mjs";

const README_BYTES = 12 * 1024;
const FEWEST_REQUESTS = 8;
const SECRET = "the secret of this test, long enough";

/** The languages of blocks. A test below covers each of them. */
const CHECKED_LANGUAGES = [
  "sh",
  "json",
  "json defaults",
  "ts",
  "ts client",
  "ts own",
  // tests/client/base_url.test.mjs runs it.
  "ts anthropic",
  // tests/client/base_url_second_worker.test.mjs runs it.
  "ts service",
  // tests/client/base_url_coding_agents.test.mjs runs it.
  "sh agent",
  // tests/python/test_base_url.py runs it.
  "python openai",
  "ts recipe",
  "toml own",
  "tsx",
  "tsx recipe",
  "rust",
  // tests/python/test_documents.py runs it.
  "python",
  "toml",
];

const runFile = promisify(execFile);
const settings = readConfig({ config: join(ROOT, "wrangler.toml") }, { hideWarnings: true });
const server = await startServer({ vars: {}, secrets: { SESSION_AGENT_TOKEN: SECRET } });
after(() => server.stop());

test("the_readme_is_short", () => {
  const bytes = Buffer.byteLength(readme.text);
  assert.ok(
    bytes <= README_BYTES,
    `README.md has ${bytes} bytes, at most ${README_BYTES} are allowed: move a part of it to docs/`,
  );
});

test("every_code_block_has_a_kind_that_is_tested", () => {
  for (const { path, text, blocks } of documents) {
    const fences = text.match(/^[\s>]*(?:`{3,}|~{3,}).*$/gm) ?? [];
    assert.equal(
      fences.length,
      2 * blocks.length,
      `${path}: each block begins and ends with three backticks at its line's beginning`,
    );
    for (const { language, text } of blocks)
      assert.ok(CHECKED_LANGUAGES.includes(language), `${path}: no test holds a block in \`${language}\`:\n${text}`);
    const prose = text.replaceAll(/^```.*?^```$/gms, "");
    assert.doesNotMatch(prose, /\n\n(?: {4}|\t)/, `${path}: an indented block, which no test reads`);
  }
});

for (const document of handWritten) {
  if (!document.blocks.some(({ language }) => language === "sh" || language === "json")) continue;
  test(`the_requests_of_${document.path}_answer_as_printed`, async () => {
    const commands = [];
    const followed = document === readme ? [readme] : [readme, document];
    const { sent, printed } = await runDocuments(followed, (words, of) => of === document && commands.push(words));
    if (document === readme) assert.ok(sent >= FEWEST_REQUESTS, `${sent} requests`);
    for (const block of document.blocks) {
      if (block.language === "json")
        assert.ok(printed.includes(block), `answers that no request right before them asks for:\n${block.text}`);
    }
    for (const words of commands) await checkCommand(words);
  });
}

/** Checks that a command exists, and that the tree has what the command names. */
async function checkCommand(words) {
  const line = words.join(" ");
  if (words[0] === "openssl" && !words.includes("|")) return assert.equal(line, "openssl rand -hex 32");
  if (words.includes("|")) {
    const at = words.indexOf("|");
    assert.equal(words.slice(0, at).join(" "), "openssl rand -hex 32", line);
    return checkCommand(words.slice(at + 1));
  }
  if (words[0] === "npm") {
    const { scripts } = JSON.parse(await read("package.json"));
    return assert.ok((words[1] === "run" ? words[2] : words[1]) in scripts, line);
  }
  assert.equal(words.slice(0, 2).join(" "), "npx wrangler", `no command that a test knows: ${line}`);
  const { stdout } = await runFile(NODE, [WRANGLER, ...words.slice(2), "--help"], { env: quietEnv() });
  const usage =
    stdout
      .match(/^wrangler ([a-z0-9 ]+)/m)?.[1]
      .trim()
      .split(" ") ?? [];
  assert.deepEqual(words.slice(2, 2 + usage.length), usage, `wrangler's help is of another command: ${line}`);
  const named = words[2 + usage.length];
  if (["secret put", "secret delete"].includes(usage.join(" ")))
    assert.ok(namesIn(tableUnder("docs/deploy.md", "Settings"), 0).includes(named), line);
  if (usage.join(" ") === "r2 bucket create") assert.equal(named, settings.r2_buckets[0].bucket_name, line);
}

test("the_typescript_examples_run_over_both_bindings", async () => {
  await haveTrip("alice");
  const used = [];
  const binding = (via, agent) => ({
    fetch: (url, init) => {
      used.push(`${via} fetch`);
      return server.fetch(new URL(url).pathname, init, { via, agent });
    },
    call: (...given) => {
      used.push(`${via} call`);
      const [named, operation, ...more] = via === "service" ? given : [agent, ...given];
      return server.rpc(named, operation, more, { via });
    },
    request: async (...given) => {
      used.push(`${via} request`);
      const { answer } = await server.callMethod({ via, agent, method: "request", given });
      return answer;
    },
    getHistory: async (...given) => {
      used.push(`${via} method`);
      const { answer } = await server.callMethod({ via, agent, method: "getHistory", given });
      return answer;
    },
  });
  const env = {
    SESSION_AGENT_TOKEN: SECRET,
    MEMORY: binding("service"),
    AGENTS: { getByName: (name) => binding("object", name) },
  };
  assert.deepEqual(Object.keys(env), Object.keys(ENV));
  for (const { blocks } of handWritten) {
    const helpers = [];
    for (const block of blocks) {
      const { language, text } = block;
      if (isHelper(block)) helpers.push(text);
      if (language !== "ts" || isHelper(block)) continue;
      const typed = `${helpers.join("\n")}\nexport default async (env: any) => { ${text}\n return messages; };`;
      const { code } = await transform(typed, { loader: "ts" });
      const { default: run } = await import(`data:text/javascript,${encodeURIComponent(code)}`);
      assert.deepEqual(
        (await run(env)).map(({ id }) => id),
        ["ask"],
        text,
      );
    }
  }
  assert.deepEqual(used.toSorted(), [
    "object call",
    "object method",
    "service call",
    "service fetch",
    "service request",
  ]);
});

test("the_typescript_helper_throws_the_agents_errors", async () => {
  const [helper] = blocksIn("ts").filter(isHelper);
  const { code } = await transform(helper.text, { loader: "ts" });
  const { memoryOf } = await import(`data:text/javascript,${encodeURIComponent(code)}`);
  const call = (operation, ...given) => server.rpc("alice", operation, given);
  await assert.rejects(memoryOf(call, SECRET)("getHistory", { sessionId: "nowhere" }), {
    code: "session_not_found",
    status: 404,
  });
  await assert.rejects(memoryOf(call)("getHistory", { sessionId: "trip" }), { code: "unauthorized" });
});

test("the_hooks_chat_with_the_agent_in_a_page", async () => {
  await haveTrip("alice");
  const authorization = { authorization: `Bearer ${SECRET}` };
  const scope = { preset: "chat", sessionId: "trip", expiresIn: 60 };
  const { body } = await server.call("alice", "mintToken", scope, { headers: authorization });
  const blocks = blocksIn("tsx");
  assert.ok(blocks.length >= 2);
  for (const { path, text } of blocks) {
    const page = await openPage(server, await hooksIn(text), { token: body.token });
    try {
      const before = page.messages.length;
      await page.chat.sendMessage({ text: "Hello" });
      const isAnswered = ({ messages, chat }) =>
        messages.length === before + 2 && chat.status !== "streaming" && textOf(messages.at(-1)) !== "";
      await page.reaches(isAnswered);
      assert.deepEqual(
        page.messages.slice(-2).map(({ role }) => role),
        ["user", "assistant"],
        path,
      );
    } finally {
      await page.close();
    }
  }
});

/** A ```tsx block as a function of the names that it imports: hooks that make `chat` and maybe `agent`. */
async function hooksIn(text) {
  const scope = {};
  const body = text.replaceAll(/^import \{ (.+) \} from "(.+)";$/gm, (_line, names, from) => {
    for (const name of names.split(", ")) scope[name] = { from };
    return "";
  });
  for (const [name, { from }] of Object.entries(scope)) {
    scope[name] = (await import(from))[name] ?? assert.fail(`${from} has no ${name}`);
  }
  const { code } = await transform(
    `export const use = (${Object.keys(scope).join(", ")}) => ({ token }: any) => { ${body}\n return { agent: typeof agent === "undefined" ? undefined : agent, chat }; };`,
    { loader: "tsx" },
  );
  const { use } = await import(`data:text/javascript,${encodeURIComponent(code)}`);
  return use(...Object.values(scope));
}

test("the_documented_defaults_apply_as_printed", async () => {
  const blocks = blocksIn("json defaults");
  assert.ok(blocks.length >= 1);
  for (const { path, text } of blocks) {
    const defaults = JSON.parse(text);
    const origins = (defaults.tools ?? []).map(({ url }) => new URL(url).origin);
    const deployed = await startServer({ vars: { AUTH: "open", TOOL_ORIGINS: origins.join(" ") }, defaults });
    try {
      const { body } = await deployed.call("user:42", "getConfig", {});
      assert.deepEqual(body.problems, [], path);
      const { body: blocks } = await deployed.call("user:42", "getBlocks", {});
      assert.deepEqual(
        blocks.map(({ label }) => label),
        defaults.blocks.map(({ label }) => label),
        path,
      );
    } finally {
      await deployed.stop();
    }
  }
});

test("wrangler_accepts_the_documented_configuration", async () => {
  const blocks = blocksIn("toml");
  assert.ok(blocks.length >= 2);
  const names = namesIn(tableUnder("docs/deploy.md", "Settings"), 0);
  const own = await read("wrangler.toml");
  const folder = await mkdtemp(join(tmpdir(), "session-agent-toml-"));
  try {
    for (const [n, { path, text }] of blocks.entries()) {
      const config = join(folder, `${n}.toml`);
      await writeFile(config, `name = "caller"\ncompatibility_date = "${settings.compatibility_date}"\n${text}`);
      const warnings = [];
      const {
        services = [],
        durable_objects,
        routes = [],
        vars,
        migrations,
      } = await warningsTo(warnings, () => readConfig({ config }));
      assert.deepEqual(warnings, [], `${path}:\n${text}`);
      const objects = durable_objects.bindings;
      const transfers = migrations.flatMap(({ transferred_classes = [] }) => transferred_classes);
      const checked = services.length + objects.length + routes.length + transfers.length + Object.keys(vars).length;
      // A document about the deployment itself is printed for this Worker.
      assert.ok(checked > 0 || own.includes(text.trim()), `${path}: nothing that this test holds:\n${text}`);
      for (const { service } of services) assert.equal(service, settings.name, path);
      for (const { class_name, script_name } of objects) {
        assert.deepEqual(
          [class_name, script_name],
          [settings.durable_objects.bindings[0].class_name, settings.name],
          path,
        );
      }
      for (const { to } of transfers) assert.equal(to, settings.durable_objects.bindings[0].class_name, path);
      for (const name of Object.keys(vars)) assert.ok(names.includes(name), `${path}: ${name} is not a setting`);
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});

test("the_picture_has_colors_for_light_and_dark", async () => {
  const picture = await read("docs/images/overview.svg");
  const [, light, dark] = picture.match(/<style>(.*?)@media \(prefers-color-scheme: dark\) \{(.*?)<\/style>/s);
  const styled = (style) => [...style.matchAll(/^\s*\.(\w+) \{/gm)].map(([, name]) => name).sort();
  const used = [...new Set([...picture.matchAll(/class="(\w+)"/g)].map(([, name]) => name))].sort();
  assert.deepEqual([styled(light), styled(dark)], [used, used]);
  assert.doesNotMatch(
    picture,
    /(?:fill|stroke)="(?!none|url)/,
    "a colour of the picture stands in its style, once for light and once for dark",
  );
  assert.match(picture, /<title .*<\/title>\s*<desc /);
});

test("every_link_within_the_repository_resolves", () => {
  const links = documents.flatMap(({ path, text }) => {
    const found = [
      ...text.matchAll(/\]\((?!https?:)([^)]+)\)/g),
      ...text.matchAll(/(?:src|srcset)="(?!https?:)([^"]+)"/g),
    ];
    return found.map(([, link]) => ({ path, link }));
  });
  assert.ok(links.length >= 20);
  for (const { path, link } of links) {
    const [file, heading] = link.split("#");
    const target = file === "" ? path : join(dirname(path), file);
    assert.ok(existsSync(join(ROOT, target)), `${path}: ${link}`);
    if (heading === undefined) continue;
    const to =
      documents.find((document) => document.path === target) ??
      assert.fail(`${path}: ${link} names a heading of no document`);
    assert.ok(anchorsIn(to.text).includes(heading), `${path}: ${target} has no heading #${heading}`);
  }
});

test("every_document_is_in_the_index_and_every_guide_in_the_readme", () => {
  const index = documents.find(({ path }) => path === "docs/README.md").text;
  for (const { path } of documents) {
    if (path === "README.md" || path === "docs/README.md") continue;
    assert.ok(index.includes(`](${path.slice("docs/".length)})`), `docs/README.md doesn't name ${path}`);
  }
  const guides = [...index.matchAll(/^- \[.+?\]\(([\w-]+\.md)\)/gm)].map(([, name]) => name);
  assert.ok(guides.length >= 8);
  for (const name of guides) assert.ok(readme.text.includes(`](docs/${name})`), `README.md doesn't name docs/${name}`);
});

/** The anchors of a document's headings, as GitHub generates them. */
function anchorsIn(text) {
  const headings = text.replaceAll(/^```.*?^```$/gms, "").matchAll(/^#+ (.*)$/gm);
  return [...headings].map(([, heading]) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\w -]/g, "")
      .replaceAll(" ", "-"),
  );
}

/** Creates the session of the README's tour if it does not exist. */
async function haveTrip(agent) {
  const headers = { authorization: `Bearer ${SECRET}` };
  const { status } = await server.call(agent, "createSession", { id: "trip" }, { headers });
  if (status !== 200) return;
  const message = { id: "ask", role: "user", parts: [{ type: "text", text: "Is it raining in Oslo?" }] };
  await server.call(agent, "appendMessage", { sessionId: "trip", message }, { headers });
}

function textOf({ parts }) {
  return parts
    .filter(({ type }) => type === "text")
    .map(({ text }) => text)
    .join("");
}

/** Runs `work`. Its warnings go into `warnings` instead of the terminal. */
async function warningsTo(warnings, work) {
  const { warn } = console;
  console.warn = (...words) => warnings.push(words.join(" "));
  try {
    return await work();
  } finally {
    console.warn = warn;
  }
}
