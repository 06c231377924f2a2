// `npm create session-agent -- --template react`: a browser uses the page as a visitor would, first
// with the demo model, which needs no account, then with a scripted one.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { quietEnv } from "../../scripts/wrangler.mjs";
import { launch, skip, until } from "../console/browser.mjs";
import { callTool, gate, refuse, say, startModel } from "../workerd/model_server.mjs";
import { createProject } from "./create_project.mjs";
import { dev, npmRun } from "./packed_project.mjs";

const TYPES = ["@types/react", "@types/react-dom", "@cloudflare/workers-types"];
const LINKS = ["ai", "zod", "wrangler", "react", "react-dom", "vite", "typescript", ...TYPES];
const AXE = createRequire(new URL("../console/", import.meta.url)).resolve("axe-core/axe.min.js");
const PATIENCE_MS = 60_000;

let project;
let browser;
before(async () => {
  project = await createProject("react", LINKS);
  if (!skip) browser = await launch();
});
after(async () => {
  await browser?.close();
  await project?.remove();
});

/** The page in a new browser. */
async function visit(t, url) {
  const context = await browser.newContext();
  context.setDefaultTimeout(PATIENCE_MS);
  const page = await context.newPage();
  const wrong = [];
  page.on("pageerror", (error) => wrong.push(error.stack));
  page.on("request", (request) => {
    if (request.url().startsWith("http") && new URL(request.url()).origin !== new URL(url).origin)
      wrong.push(`asked ${request.url()}`);
  });
  t.after(async () => {
    await context.close();
    assert.deepEqual(wrong, []);
  });
  const button = (name) => page.getByRole("button", { name, exact: true });
  return {
    context,
    page,
    button,
    list: page.getByRole("list", { name: "Messages" }),
    shows: (text) => page.getByRole("list", { name: "Messages" }).getByText(text, { exact: true }).waitFor(),
    /** The message with this text, as the list shows it. */
    item: (text) => page.getByRole("list", { name: "Messages" }).getByRole("listitem").filter({ hasText: text }),
    alerts: (text) => page.getByRole("alert").getByText(text).waitFor(),
    write: async (text) => {
      await page.getByRole("textbox", { name: "Message" }).fill(text);
      await button("Send").click();
    },
  };
}

/**
 * Runs the project by its own command, with separate state. A test ends when an answer is shown,
 * which may be before its turn is over. With shared state, the next server would resume that turn
 * and use an answer scripted for another.
 */
async function serving(t, ...options) {
  const state = await mkdtemp(join(project.folder, ".state-"));
  const server = await dev(project.folder, "--persist-to", state, ...options);
  t.after(() => server.stop());
  return server;
}

async function servingModel(t) {
  const model = await startModel();
  t.after(() => model.stop());
  // The answers are scripted for the turns, so no other request may use one.
  const AGENT_DEFAULTS = JSON.stringify({ learn: { into: "facts", after: "manual" } });
  const vars = { MODEL: "openai:test", OPENAI_BASE_URL: model.url, OPENAI_API_KEY: "a key", AGENT_DEFAULTS };
  return {
    model,
    ...(await serving(t, ...Object.entries(vars).flatMap(([name, value]) => ["--var", `${name}:${value}`]))),
  };
}

test("its_types_check_and_a_dry_run_deployment_passes", async () => {
  assert.match(await npmRun(project.folder, "check"), /env\.SESSION_AGENT \(Assistant\)/);
  // Git doesn't see the files that the check wrote.
  const git = async (...args) => (await promisify(execFile)("git", args, { cwd: project.folder })).stdout;
  await git("init", "--quiet");
  const written = (await git("ls-files", "--others", "--exclude-standard")).split("\n");
  assert.ok(written.includes("src/worker.ts"));
  assert.deepEqual(
    written.filter((name) => /^dist\/|tsbuildinfo$/.test(name)),
    [],
  );
});

test("its_own_tests_pass", async () => {
  // Node's test runner runs nothing inside itself.
  const { NODE_TEST_CONTEXT, ...env } = quietEnv();
  const { stdout } = await promisify(execFile)("npm", ["test"], { cwd: project.folder, env });
  assert.match(stdout, /^(?:#|ℹ) pass 2$/m);
});

test("a_visitor_chats_with_the_demo_and_approves_its_calls", { skip }, async (t) => {
  const { url } = await serving(t);
  const { page, button, shows, write, list } = await visit(t, url);
  await page.goto(url);
  await write("Remember that I like tea.");
  await page.getByText(/set_context/).waitFor();
  await button("Regenerate").click({ trial: true });

  await write('call book {"place":"Maaemo"}');
  await button("Allow").waitFor();
  await page.addScriptTag({ path: AXE });
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme });
    const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
    assert.deepEqual(
      violations.map(({ id, nodes }) => [id, nodes.map(({ html }) => html)]),
      [],
    );
  }
  await button("Allow").click();
  await page.getByText("A table at Maaemo is booked.").first().waitFor({ state: "attached" });
  await button("Regenerate").click({ trial: true });
  await write('call book {"place":"No\\u200bma"}');
  // Invisible characters are escaped where a person decides.
  await page.getByText("\\u{200B}").first().waitFor();
  // A reload doesn't change the question.
  await page.reload();
  await button("Refuse").click();
  await shows("You refused this.");
  assert.equal(await page.getByText("A table at Noma").count(), 0);

  // Another chat of the visitor's has other messages, and the same memory.
  await button("New chat").click();
  await until(
    () => list.getByRole("listitem").count(),
    (count) => count === 0,
  );
  await write("What do you remember?");
  await list
    .getByText(/I like tea/)
    .first()
    .waitFor();
  await page.goBack();
  await shows("You refused this.");

  // Another visitor has another agent.
  const other = await visit(t, url);
  await other.page.goto(page.url());
  await other.button("Send").waitFor();
  assert.equal(await other.list.getByRole("listitem").count(), 0);
});

test("a_turn_is_stopped_resumed_and_refused_in_the_page", { skip }, async (t) => {
  const { url, model } = await servingModel(t);
  const { page, button, shows, write, list, alerts, item } = await visit(t, url);
  await page.goto(url);

  // A page reloaded in the middle of an answer receives all of it.
  const rest = gate();
  model.next(say("Before, ", rest, "and after."));
  await write("Go on.");
  await shows("Before,");
  await page.reload();
  await shows("Before,");
  rest.open();
  await shows("Before, and after.");

  // Stopping a turn aborts the model's answer, and the log has the text so far.
  const never = gate();
  model.next(say("This far ", never, "and no further."));
  await write("And on.");
  await shows("This far");
  await button("Stop").click();
  await button("Regenerate").click({ trial: true });
  await until(
    () => model.abandoned,
    (count) => count === 1,
  );
  never.open();
  await page.reload();
  await shows("This far");
  assert.equal(await list.getByText("no further").count(), 0);

  // The next message continues the agent's conversation.
  model.next(say("I see."));
  await write("And now?");
  await shows("I see.");
  const contents = model.requests
    .at(-1)
    .messages.filter(({ role }) => role !== "system")
    .map(({ content }) => content);
  assert.deepEqual(contents, ["Go on.", "Before, and after.", "And on.", "This far ", "And now?"]);

  // An error is a sentence at its message, and the next message succeeds.
  model.next(refuse(401, "No such key."));
  await write("Are you there?");
  await item("Are you there?")
    .getByText(/^[A-Z][^{}]+\.$/)
    .waitFor();
  model.next(say("I am."));
  await write("Again?");
  await shows("I am.");
  assert.equal(await page.getByRole("alert").count(), 0);

  // A message written without a connection is sent when the connection is back.
  await page.context().setOffline(true);
  await alerts(/^The agent can't be reached\./);
  await write("Hello?");
  await shows("Hello?");
  model.next(say("Welcome back."));
  await page.context().setOffline(false);
  await shows("Welcome back.");
  assert.equal(await page.getByRole("alert").count(), 0);

  // Another answer replaces the first in the view.
  model.next(say("One."), say("Two."));
  await write("Count.");
  await shows("One.");
  await button("Regenerate").click();
  await shows("Two.");
  assert.equal(await list.getByText("One.", { exact: true }).count(), 0);
  assert.equal(model.unusedAnswers, 0);
});

test("chats_are_listed_by_the_start_of_their_first_message", { skip }, async (t) => {
  const { url, model } = await servingModel(t);
  const { page, button, shows, write, list } = await visit(t, url);
  const chats = page.getByRole("navigation", { name: "Chats" });
  await page.goto(url);
  assert.equal(await chats.getByRole("link").count(), 0);
  model.next(say("Snow."));
  await write("How is Oslo?");
  await shows("Snow.");
  await chats.getByRole("link", { name: "How is Oslo?", exact: true }).waitFor();
  await button("New chat").click();
  const long = `Tell me of Rome. ${"And of its streets. ".repeat(5)}`;
  model.next(say("**Sun** and `wine`."));
  await write(long);
  await list.getByText("Sun", { exact: true }).waitFor();
  assert.deepEqual(await list.locator("strong, code").allTextContents(), ["Sun", "wine"]);
  await chats.getByRole("link", { name: long.slice(0, 60), exact: true }).waitFor();
  await page.reload();
  await chats.getByRole("link", { name: "How is Oslo?", exact: true }).click();
  await shows("Snow.");
  assert.equal(await chats.getByRole("link").count(), 2);
  assert.equal(await chats.locator('[aria-current="page"]').textContent(), "How is Oslo?");
});

test("the_memory_panel_updates_during_a_turn_and_is_editable", { skip }, async (t) => {
  const { url, model } = await servingModel(t);
  const { page, shows, write } = await visit(t, url);
  const memory = page.getByRole("complementary", { name: "Memory" }).getByRole("textbox", { name: "memory" });
  await page.goto(url);
  await memory.waitFor();
  assert.equal(await memory.inputValue(), "");
  const rest = gate();
  model.next(callTool("set_context", { label: "memory", content: "Likes snow." }), say("Noted ", rest, "that."));
  await write("I like snow.");
  await shows("Noted");
  await until(
    () => memory.inputValue(),
    (text) => text === "Likes snow.",
  );
  rest.open();
  await shows("Noted that.");
  await memory.fill("Likes snow and tea.");
  const saved = page.waitForResponse((response) => response.url().endsWith("/rpc/setBlock"));
  await memory.blur();
  assert.equal((await saved).status(), 200);
  await page.reload();
  await until(
    () => memory.inputValue(),
    (text) => text === "Likes snow and tea.",
  );
});

test("a_failed_turn_stays_marked_and_can_be_retried", { skip }, async (t) => {
  const { url, model } = await servingModel(t);
  const { page, shows, write, item } = await visit(t, url);
  await page.goto(url);
  model.next(refuse(401, "No such key."));
  await write("Are you there?");
  const again = item("Are you there?").getByRole("button", { name: "Try again" });
  await again.waitFor();
  model.next(say("Later."));
  await write("Another");
  await shows("Later.");
  await page.reload();
  await shows("Later.");
  await again.waitFor();
  assert.match(await item("Are you there?").textContent(), /refused this Worker's credentials/);
  assert.equal(await item("Another").getByRole("button").count(), 0);
  model.next(say("I am."));
  await again.click();
  await shows("I am.");
  await again.waitFor({ state: "detached" });
  assert.equal(model.unusedAnswers, 0);
});

test("a_token_is_renewed_before_expiry_and_when_refused", { skip }, async (t) => {
  const { url, model } = await servingModel(t);
  const { page, shows, write } = await visit(t, url);
  const change = { next: {} };
  let logins = 0;
  await page.route("**/api/login", async (route) => {
    logins += 1;
    const response = await route.fetch();
    const { next } = change;
    change.next = {};
    await route.fulfill({ response, json: { ...(await response.json()), ...next } });
  });

  // A token signed with another secret: the agent refuses it, and the page logs in again.
  change.next = { token: "sa2.eyJhIjoxfQ.AAAA" };
  await page.goto(url);
  await until(
    () => logins,
    (count) => count === 2,
  );
  model.next(say("Yes."));
  await write("Am I in?");
  await shows("Yes.");
  assert.equal(logins, 2);

  // A token that is about to expire is not sent any more.
  change.next = { expiresIn: 30 };
  await page.reload();
  await shows("Yes.");
  const before = logins;
  model.next(callTool("clock", {}), say("Noon."));
  await write("What time is it?");
  await shows("Noon.");
  assert.ok(logins >= 4 && logins <= before + 1, `${before}, then ${logins}`);
  assert.deepEqual([model.unusedAnswers, model.requests.length], [0, 3]);
});

test("the_login_checks_the_origin_and_recognizes_visitors", async (t) => {
  const { url } = await serving(t);
  const login = async (headers = {}) => {
    const response = await fetch(`${url}/api/login`, { method: "POST", headers });
    return { status: response.status, cookie: response.headers.get("set-cookie"), ...(await response.json()) };
  };
  const first = await login();
  assert.match(first.cookie, /^visitor=[0-9a-f-]{36}; Path=\/; HttpOnly; SameSite=Strict; /);
  const again = await login({ cookie: first.cookie.split(";")[0], "sec-fetch-site": "same-origin" });
  assert.equal(again.agent, first.agent);
  const other = await login();
  assert.notEqual(other.agent, first.agent);
  const { status, cookie, error } = await login({ "sec-fetch-site": "cross-site" });
  assert.deepEqual([status, cookie, /^[A-Z].*\.$/.test(error.message)], [403, null, true]);

  // A token is for the chats of one visitor, and for what the page does.
  const ask = async (agent, operation, input) => {
    const headers = { authorization: `Bearer ${first.token}` };
    const address = `${url}/agents/session-agent/${encodeURIComponent(agent)}/rpc/${operation}`;
    return (await fetch(address, { method: "POST", headers, body: JSON.stringify(input) })).status;
  };
  const message = { role: "user", parts: [{ type: "text", text: "Hello" }] };
  assert.equal(await ask(first.agent, "runTurn", { sessionId: "a", message }), 200);
  assert.equal(await ask(first.agent, "getHistory", { sessionId: "a" }), 200);
  assert.equal(await ask(first.agent, "deleteSession", { sessionId: "a" }), 403);
  assert.equal(await ask(first.agent, "runTurn", { sessionId: "a", message, model: "openai:another" }), 403);
  assert.equal(await ask(other.agent, "getHistory", { sessionId: "a" }), 401);
  assert.equal(await ask("visitor:somebody", "getHistory", { sessionId: "a" }), 401);
});

test("without_a_secret_the_page_explains_how_to_set_one", { skip }, async (t) => {
  const { url } = await serving(t, "--var", "SESSION_AGENT_TOKEN:");
  const { page, alerts } = await visit(t, url);
  await page.goto(url);
  await alerts(/SESSION_AGENT_TOKEN/);
});
