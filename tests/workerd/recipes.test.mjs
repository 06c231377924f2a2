// The recipes of docs/recipes.md: their types, and their pages in a happy-dom document over their
// own Worker, with the built Session Agent behind its service binding.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, afterEach, test } from "node:test";
import { promisify } from "node:util";
import { build } from "esbuild";
import { CLIENT, TSC } from "../../scripts/paths.mjs";
import { NODE } from "../../scripts/wrangler.mjs";
import { call, startChatServer, until } from "./chat_server.mjs";
import { blocksIn } from "./documents.mjs";
import { callTool, gate, refuse, say } from "./model_server.mjs";
import "./browser_tab.mjs";

const SECRET = "the secret of this test, long enough";
const files = blocksIn("ts recipe", "tsx recipe").map(({ text }) => ({
  name: /^\/\/ (src\/\w+\.tsx?)\n/.exec(text)?.[1] ?? assert.fail(text),
  text,
}));

// Inside the tree, so that packages are found by their names.
const folder = await mkdtemp(join(import.meta.dirname, ".recipes-"));
after(() => rm(folder, { recursive: true, force: true }));
await mkdir(join(folder, "src"));
for (const { name, text } of files) await writeFile(join(folder, name), text);
await mkdir(join(folder, "node_modules"));
await symlink(CLIENT, join(folder, "node_modules/session-agent"), "dir");

/**
 * A file of the recipes, bundled with what it imports from our packages. `more`: esbuild's options.
 */
async function bundled(contents, more) {
  const { outputFiles } = await build({
    stdin: { contents, resolveDir: folder, loader: "ts" },
    bundle: true,
    format: "esm",
    write: false,
    jsx: "automatic",
    ...more,
  });
  return outputFiles[0].text;
}

const worker = await bundled(
  `import worker from "./src/worker"; export default { fetch: (request, { SERVICE }) => worker.fetch(request, { MEMORY: SERVICE, SESSION_AGENT_TOKEN: ${JSON.stringify(SECRET)} }) };`,
  { platform: "neutral" },
);
const { server, model, stop } = await startChatServer({ token: SECRET, workers: { page: worker } });
after(stop);
afterEach(() => assert.equal(model.unusedAnswers, 0, "a scripted answer was never requested"));

const origin = new URL(await server.urlOf("page")).origin;
const headers = { authorization: `Bearer ${SECRET}` };
const operate = (agent, operation, input) => call(server, agent, operation, input, headers);

// A page's globals: its own address, a cookie, and `location`.
const { fetch: plainFetch, WebSocket: PlainSocket } = globalThis;
let user = "";
let tokens = 0;
globalThis.fetch = (url, init = {}) => {
  const address = new URL(url instanceof Request ? url.url : url, origin);
  if (address.pathname === "/api/token") tokens += 1;
  return plainFetch(url instanceof Request ? new Request(address, url) : address, {
    ...init,
    headers: { ...Object.fromEntries(new Headers(init.headers)), cookie: `user=${user}` },
  });
};
globalThis.location = new URL(origin);
globalThis.window.happyDOM.setURL(origin);
after(() => Object.assign(globalThis, { fetch: plainFetch, WebSocket: PlainSocket }));

const { createElement } = await import("react");
const { createRoot } = await import("react-dom/client");

let opened = 0;

/** Opens one of the two pages as a user: the document's text, and its buttons. */
async function open(name, as) {
  user = as;
  opened += 1;
  const file = name === "ChatPage" ? "chat" : "live_chat";
  // Each page is a new module, as after a reload.
  const code = await bundled(`export { ${name} as Page } from "./src/${file}"; // ${opened}`, {
    packages: "external",
    alias: { "session-agent": join(CLIENT, "dist/index.js") },
  });
  const at = join(folder, `page-${opened}.mjs`);
  await writeFile(at, code);
  const { Page } = await import(at);
  const place = document.createElement("div");
  document.body.append(place);
  const root = createRoot(place);
  root.render(createElement(Page));
  const text = () => place.textContent;
  const button = (label) => [...place.querySelectorAll("button")].find((one) => one.textContent === label);
  return {
    shows: (holds) =>
      until(
        () => (typeof holds === "string" ? text().includes(holds) : holds(place)),
        (check) => {
          const timer = setInterval(check, 20);
          return () => clearInterval(timer);
        },
        () => place.innerHTML,
      ),
    alert: () => place.querySelector("[role=alert]").textContent,
    button,
    press: (label) => button(label).click(),
    async write(words) {
      await this.shows(() => button("Send") !== undefined);
      const input = place.querySelector("input");
      // As React listens: to the event, after the document has the value.
      Object.getOwnPropertyDescriptor(window.HTMLInputElement.prototype, "value").set.call(input, words);
      input.dispatchEvent(new window.Event("input", { bubbles: true }));
      await this.shows(() => place.querySelector("input").value === words);
      button("Send").click();
    },
    close: () => {
      root.unmount();
      place.remove();
    },
  };
}

test("the_recipes_type_check", async () => {
  const settings = {
    strict: true,
    noEmit: true,
    target: "esnext",
    module: "esnext",
    moduleResolution: "bundler",
    skipLibCheck: true,
  };
  for (const [place, options, given] of [
    ["worker", { lib: ["esnext"], types: ["@cloudflare/workers-types"] }, ["src/worker.ts"]],
    [
      "page",
      { lib: ["esnext", "dom", "dom.iterable"], types: ["react"], jsx: "react-jsx" },
      files.map(({ name }) => name).filter((name) => name !== "src/worker.ts"),
    ],
  ]) {
    const config = join(folder, `tsconfig.${place}.json`);
    await writeFile(config, JSON.stringify({ compilerOptions: { ...settings, ...options }, files: given }));
    const problems = await promisify(execFile)(NODE, [TSC, "--project", config, "--pretty", "false"], {
      cwd: folder,
    }).then(
      () => "",
      ({ stdout, message }) => stdout || message,
    );
    assert.equal(problems, "");
  }
  assert.equal(files.length, 6);
});

const REFUSED =
  "The OpenAI-compatible endpoint refused the request (status 400, `test`). Check the model's name, and that the conversation fits into its context.";

const PAY = {
  name: "pay",
  description: "Pays.",
  parameters: { type: "object", properties: { amount: { type: "number" } } },
  service: "TOOLS",
  needsApproval: true,
};

for (const name of ["ChatPage", "LiveChatPage"]) {
  const who = name === "ChatPage" ? "ann" : "bob";
  const agent = `user:${who}`;

  test(`${name}_shows_the_history_and_answers_and_asks_for_an_approval`, async () => {
    await operate(agent, "createSession", { id: "main" });
    await operate(agent, "appendMessage", {
      sessionId: "main",
      message: { id: "old", role: "user", parts: [{ type: "text", text: "From before." }] },
    });
    await operate(agent, "defineTool", PAY);
    const page = await open(name, who);
    await page.shows("From before.");
    model.next(say("Hello ", "there."));
    await page.write("Hi");
    await page.shows("Hello there.");
    model.next(callTool("pay", { amount: 5 }, "c1"), say("It is paid."));
    await page.write("Pay 5.");
    await page.shows("Allow");
    page.press("Allow");
    await page.shows("It is paid.");
    page.close();
    const again = await open(name, who);
    await again.shows("It is paid.");
    again.close();
  });

  test(`${name}_stops_the_turn_in_the_agent`, async () => {
    const page = await open(name, who);
    await page.shows("It is paid.");
    const rest = gate();
    model.next(say("One moment", rest, " never said"));
    await page.write("Go on.");
    await page.shows("One moment");
    page.press("Stop");
    await page.shows(() => page.button("Send") !== undefined);
    rest.open();
    const { messages } = await operate(agent, "getHistory", { sessionId: "main" });
    assert.equal(messages.at(-1).parts.findLast(({ type }) => type === "text").text, "One moment");
    page.close();
  });

  test(`${name}_continues_a_turn_after_a_reload`, async () => {
    const first = await open(name, who);
    await first.shows("One moment");
    const rest = gate();
    model.next(say("It began", rest, " and ended."));
    await first.write("Once more.");
    await first.shows("It began");
    first.close();
    const second = await open(name, who);
    await second.shows("It began");
    rest.open();
    await second.shows("It began and ended.");
    second.close();
  });

  test(`${name}_shows_an_error_as_a_sentence`, async () => {
    const page = await open(name, who);
    await page.shows("It began and ended.");
    model.next(refuse(400, "no such model"));
    await page.write("Break.");
    await page.shows((place) => place.querySelector("[role=alert]") !== null);
    assert.equal(page.alert(), REFUSED);
    page.close();
  });

  test(`${name}_reports_that_nobody_is_logged_in`, async () => {
    const page = await open(name, "");
    await page.shows("Log in first.");
    page.close();
  });
}

test("a_token_is_requested_once_and_again_before_it_expires", async () => {
  user = "ann";
  const at = join(folder, "visit.mjs");
  await writeFile(
    at,
    await bundled('export * from "./src/visit";', {
      packages: "external",
      alias: { "session-agent": join(CLIENT, "dist/index.js") },
    }),
  );
  const { visit, loadHistory, sentenceOf } = await import(at);
  tokens = 0;
  const { token, expiresAt } = await visit();
  await loadHistory();
  assert.equal((await visit()).token, token);
  assert.equal(tokens, 1);
  const { now } = Date;
  Date.now = () => expiresAt - 5 * 60_000;
  try {
    await visit();
    assert.equal(tokens, 2);
  } finally {
    Date.now = now;
  }
  // An error response has its own text, from which the AI SDK makes an error.
  const refused = await fetch("/agents/session-agent/user:ann/chat", { method: "POST", body: "{}" });
  assert.equal(refused.status, 401);
  assert.equal(
    sentenceOf(new Error(await refused.text())),
    "Send `Authorization: Bearer …` with the Worker's secret, or with a token from `mintToken`.",
  );
  assert.equal(sentenceOf(new Error("Failed to fetch")), "Failed to fetch");
});
