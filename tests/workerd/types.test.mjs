// Type-checks the TypeScript that people copy (the blocks of the README and the guides, and the
// examples) and the client itself. documents.test.mjs, client.test.mjs and
// tests/scripts/examples.test.mjs run the same code without its types.
//
// A block becomes its own file at the line numbers of its document, so a compiler error names the
// document's line. Declarations that a test adds to the block replace the lines of its fences.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, readdir, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { CLIENT, ROOT, TSC } from "../../scripts/paths.mjs";
import { NODE, quietEnv, WRANGLER } from "../../scripts/wrangler.mjs";
import { blocksIn, clientGuides, clientProgram, ENV, isHelper, handWritten } from "./documents.mjs";

const PACKAGES = join(ROOT, "tests/node_modules");

const runFile = promisify(execFile);

/** A Worker and a page have different globals, so each kind of block has its own options. */
const PLACES = {
  ts: { types: ["@cloudflare/workers-types"], lib: ["esnext"] },
  tsx: { types: ["react"], lib: ["esnext", "dom", "dom.iterable"], jsx: "react-jsx" },
  // Only the client's types, which are checked as well.
  client: { types: [], lib: ["esnext", "dom", "dom.iterable", "dom.asynciterable"], skipLibCheck: false },
};

/** A Worker as in the client's guides. */
const GUIDED =
  "declare const env: { MEMORY: Fetcher; AGENTS: DurableObjectNamespace; SESSION_AGENT_TOKEN: string; AI: { run(model: string, input: object): Promise<{ response: string }> } }; declare const model: import('ai').LanguageModel;";

test("the_typescript_of_documents_and_examples_type_checks", async () => {
  const files = await readdir(join(ROOT, "examples"), { recursive: true });
  const examples = files
    .filter((name) => /\.tsx?$/.test(name) && !name.includes("node_modules"))
    .map((name) => join("examples", name));
  assert.ok(blocksIn("ts").length >= 4);
  assert.ok(blocksIn("tsx").length >= 2);
  assert.ok(examples.length >= 1);
  const errors = await typeErrorsOf(handWritten, examples);
  assert.ok(errors.length === 0, errors.join("\n"));
});

test("a_type_error_is_reported_with_the_line_of_its_document", async () => {
  const block = (line, language, text) => ({ path: "docs/wrong.md", line, language, text });
  const helper = block(3, "ts", "export const add = (a: number, b: number) => a + b;\n");
  const worker = block(
    7,
    "ts",
    "const messages = [add(1, 2)];\nenv.MEMORY.fetch();\nadd(1, env.SESSION_AGENT_TOKEN);\n",
  );
  const page = block(
    20,
    "tsx",
    'import { useChat } from "@ai-sdk/react";\nconst chat = useChat({ id: "trip", resume: token });\n',
  );
  const errors = await typeErrorsOf([{ path: "docs/wrong.md", blocks: [helper, worker, page] }], []);
  assert.deepEqual(
    errors.map((error) => error.match(/^(\S+) - error TS(\d+)/)?.slice(1)),
    [
      ["docs/wrong.md:9", "2554"],
      ["docs/wrong.md:10", "2345"],
      ["docs/wrong.md:22", "2322"],
    ],
  );
});

test("the_client_and_its_guides_type_check", async () => {
  const errors = await inFolder(async (folder) => {
    const guides = clientGuides.map(({ path }) => `${path}.1.ts`);
    for (const [n, guide] of clientGuides.entries()) await put(folder, guides[n], clientProgram(guide, GUIDED));
    for (const file of ["client_types.ts", "client_ai_types.ts"])
      await cp(join(ROOT, "tests/workerd", file), join(folder, file));
    const problems = [
      await compile(folder, "ts", [...guides, "client_types.ts", "client_ai_types.ts"]),
      await compile(folder, "client", ["client_types.ts"]),
    ];
    return problems.flat();
  });
  assert.ok(errors.length === 0, errors.join("\n"));
});

test("the_types_from_wrangler_are_sufficient_for_the_client", async () => {
  const errors = await inFolder(async (folder) => {
    const bindings = handWritten.flatMap(({ path, blocks }) =>
      blocks.filter(
        ({ language, text }) => path === "docs/chat.md" && language === "toml" && /^binding|^name/m.test(text),
      ),
    );
    assert.equal(bindings.length, 2);
    await put(folder, "index.ts", "export default { fetch: () => new Response() };\n");
    await put(
      folder,
      "wrangler.toml",
      `name = "caller"\nmain = "index.ts"\ncompatibility_date = "2026-11-17"\n${bindings.map(({ text }) => text).join("\n")}`,
    );
    await runFile(NODE, [WRANGLER, "types", "--include-runtime=false"], { cwd: folder, env: quietEnv() });
    await put(folder, "uses.ts", USES_BINDINGS);
    return await compile(folder, "ts", ["worker-configuration.d.ts", "uses.ts"]);
  });
  assert.ok(errors.length === 0, errors.join("\n"));
});

/** A Worker's own code, whose `Env` is the one that `wrangler types` writes. */
const USES_BINDINGS = `
import { namespaceOf, serviceOf, sessionAgent } from "session-agent";
export async function both(env: Env): Promise<string[]> {
  const { messages } = await sessionAgent(env.MEMORY, "alice").session("trip").getHistory();
  await sessionAgent(env.AGENTS, "alice").listSessions();
  const answer: string = await serviceOf(env.MEMORY).call("alice", "getStats", "{}", { token: "t" });
  const { sessions } = await namespaceOf(env.AGENTS).getByName("alice").listSessions({}, { token: "t" });
  return [answer, ...messages.map(({ id }) => id), ...sessions.map(({ id }) => id)];
}
`;

/** The compiler's errors for the TypeScript in these documents and examples. */
function typeErrorsOf(documents, examples) {
  return inFolder(async (folder) => {
    for (const example of examples) await cp(join(ROOT, example), join(folder, example));
    const files = Object.fromEntries(
      ["ts", "tsx"].map((language) => [language, examples.filter((name) => name.endsWith(`.${language}`))]),
    );
    for (const { blocks } of documents) {
      for (const block of blocks.filter(({ language }) => language in files)) {
        await put(folder, fileOf(block), programOf(block, blocks));
        files[block.language].push(fileOf(block));
      }
    }
    const problems = await Promise.all(
      Object.keys(files).map((language) => compile(folder, language, files[language])),
    );
    return problems.flat();
  });
}

/** Runs `work` with a folder in which the packages resolve. The folder is deleted afterwards. */
async function inFolder(work) {
  const folder = await mkdtemp(join(tmpdir(), "session-agent-types-"));
  try {
    await symlink(PACKAGES, join(folder, "node_modules"), "dir");
    return await work(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function put(folder, file, text) {
  await mkdir(dirname(join(folder, file)), { recursive: true });
  await writeFile(join(folder, file), text);
}

const fileOf = ({ path, line, language }) => `${path}.${line}.${language}`;

/** A block as a module with the line numbers of its document. */
function programOf(block, blocks) {
  const before = blocks.slice(0, blocks.indexOf(block)).filter(isHelper);
  const given =
    block.language === "ts"
      ? [...before.map(importOf), `declare const env: ${typeOf(ENV)};`]
      : ["declare const token: string;"];
  const used = block.language === "ts" ? "messages" : "chat";
  if (isHelper(block)) return `${"\n".repeat(block.line)}${block.text}`;
  return `${"\n".repeat(block.line - 1)}${given.join(" ")}\n${block.text}export { ${used} };\n`;
}

/** A helper's names, which the blocks after it use. */
function importOf(helper) {
  const names = [...helper.text.matchAll(/^export (?:async )?(?:function|const|class) (\w+)/gm)].map(
    ([, name]) => name,
  );
  return `import { ${names.join(", ")} } from "./${fileOf(helper).split("/").at(-1)}";`;
}

const typeOf = (fields) =>
  `{ ${Object.entries(fields)
    .map(([name, type]) => `${name}: ${type}`)
    .join("; ")} }`;

async function compile(folder, language, files) {
  const config = join(folder, `tsconfig.${language}.json`);
  const compilerOptions = {
    strict: true,
    noEmit: true,
    target: "esnext",
    module: "esnext",
    moduleResolution: "bundler",
    allowImportingTsExtensions: true,
    paths: {
      "session-agent": [join(CLIENT, "dist/index.d.ts")],
      "session-agent/react": [join(CLIENT, "dist/react.d.ts")],
      // The client's own folder has no packages.
      react: [join(PACKAGES, "@types/react/index.d.ts")],
    },
    // Those of the packages, which are ignored.
    skipLibCheck: true,
    ...PLACES[language],
  };
  await writeFile(config, JSON.stringify({ compilerOptions, files }));
  const failed = await runFile(NODE, [TSC, "--project", config, "--pretty", "false"], { cwd: folder }).then(
    () => null,
    (error) => error,
  );
  if (failed === null) return [];
  const errors = failed.stdout.split(/\n(?! )/).filter((error) => error !== "");
  assert.ok(errors.length > 0, failed.message);
  return errors.map((error) => error.replace(/^(.+?)(?:(?<=\.md)\.\d+\.tsx?)?\((\d+),\d+\): /, "$1:$2 - "));
}
