// Managing an agent in the console: retention with its dry run, a person's data, tools, tokens,
// compaction, backups, defaults and the list of agents.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { after, describe, test } from "node:test";
import { say, startModel } from "../workerd/model_server.mjs";
import { skip, startConsole, until } from "./browser.mjs";

const AXE = skip ? "" : await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const SECRET = "the secret of this test, long enough";
const DAY_MS = 86_400_000;

/** A tool and a server of tools, both at one address. */
const tools = createServer(async (request, response) => {
  let text = "";
  for await (const piece of request) text += piece;
  if (/^\/(private|login|oauth|\.well-known)\b/.test(request.url)) return authorizing(request, text, response);
  const { method, id, arguments: input } = JSON.parse(text || "{}");
  response.setHeader("content-type", "application/json");
  if (request.url === "/weather") return response.end(JSON.stringify({ sky: "clear", of: input }));
  const listed = { name: "hello", description: "Says hello.", inputSchema: { type: "object", properties: {} } };
  const results = {
    initialize: { protocolVersion: "2025-06-18", capabilities: { tools: {} }, serverInfo: { name: "t", version: "1" } },
    "tools/list": { tools: [listed] },
  };
  if (id === undefined) return response.writeHead(202).end();
  response.end(JSON.stringify({ jsonrpc: "2.0", id, result: results[method] ?? {} }));
});

/** The Worker behind the public URL `origin`, for a browser that returns to it. */
let returnedTo;

/** A server of tools that requires a user's authorization, and its authorization server. */
function authorizing(request, text, response) {
  const url = new URL(request.url, origin);
  const login = `${origin}/login`;
  const answer = (body, status = 200, headers = {}) =>
    response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(body));
  switch (url.pathname) {
    case "/.well-known/oauth-protected-resource/private":
      return answer({ resource: `${origin}/private`, authorization_servers: [login] });
    case "/.well-known/oauth-authorization-server/login":
      return answer({
        issuer: login,
        authorization_endpoint: `${login}/authorize`,
        token_endpoint: `${login}/token`,
        registration_endpoint: `${login}/register`,
        code_challenge_methods_supported: ["S256"],
        token_endpoint_auth_methods_supported: ["none"],
      });
    case "/login/register":
      return answer({ client_id: "client", redirect_uris: JSON.parse(text).redirect_uris }, 201);
    case "/login/authorize": {
      const back = new URL(url.searchParams.get("redirect_uri"));
      back.search = new URLSearchParams({ code: "code", state: url.searchParams.get("state") });
      return answer({}, 302, { location: back.href });
    }
    case "/login/token":
      return answer({ access_token: "allowed", token_type: "Bearer", expires_in: 3600 });
    case "/oauth/callback":
      return answer({}, 302, { location: new URL(request.url, returnedTo).href });
    case "/private": {
      if (request.headers.authorization !== "Bearer allowed")
        return answer({}, 401, { "www-authenticate": 'Bearer scope="read"' });
      const { id, method } = JSON.parse(text);
      const listed = { name: "secret_hello", description: "Says hello.", inputSchema: { type: "object" } };
      const results = {
        "server/discover": { supportedVersions: ["2026-07-28"], capabilities: { tools: {} } },
        "tools/list": { tools: [listed] },
      };
      return answer({ jsonrpc: "2.0", id, result: results[method] ?? {} });
    }
    default:
      return answer({}, 404);
  }
}

await new Promise((resolve) => tools.listen(0, "127.0.0.1", resolve));
const origin = `http://127.0.0.1:${tools.address().port}`;
after(() => tools.close());

describe("manage", { skip }, async () => {
  const site = skip
    ? null
    : await startConsole({
        directory: true,
        vars: { AUTH: "open", MODEL: "demo", TOOL_ORIGINS: origin },
        defaults: { maxSteps: 3 },
      });
  after(() => site?.stop());
  const ask = (...given) => site.ask(...given);
  const click = (page, name) => page.getByRole("button", { name, exact: true }).click();
  const fill = (page, label, text) => page.getByLabel(label, { exact: true }).fill(text);

  /** A session whose three events are forty days old. */
  async function importOld(agent, id) {
    const at = Date.now() - 40 * DAY_MS;
    const head = {
      ...{ type: "session", format: 1, id, agentId: "a", name: null, parentSessionId: null, metadata: null },
      ...{ createdAt: at, updatedAt: at, usage: { inputTokens: 0, outputTokens: 0, cost: 0 }, seqFloor: 3 },
    };
    const events = [1, 2, 3].map((seq) => ({
      ...{ type: "event", seq, id: `e${seq}`, parentId: seq === 1 ? null : `e${seq - 1}`, action: "user_message" },
      ...{ content: `old ${seq}`, createdAt: at, writtenAt: at },
    }));
    const lines = [head, ...events, { type: "end", events: 3, leafId: null }];
    const body = `${lines.map((line) => JSON.stringify(line)).join("\n")}\n`;
    const path = `/agents/session-agent/${agent}/sessions/${id}/import`;
    const response = await site.server.fetch(path, { method: "POST", body });
    assert.equal(response.status, 200, await response.clone().text());
  }

  test("retention_rules_are_previewed_before_they_are_set", async (t) => {
    await importOld("keep", "s");
    await importOld("keep", "t");
    const page = await site.open(t, "#/keep/manage/retention");
    await fill(page, "Delete events after (days)", "30");
    await click(page, "Preview");
    await page.getByRole("cell", { name: "6", exact: true }).waitFor();
    assert.equal((await ask("keep", "getConfig")).retention, null, "nothing is set");
    await page.getByLabel("Rules for").selectOption("session");
    await page.getByLabel("Session ID").fill("t");
    await page.getByLabel(/^Pinned/).check();
    await click(page, "Save rules");
    await page.getByText("Rules saved.").waitFor();
    assert.equal((await ask("keep", "getSession", { sessionId: "t" })).pinned, true);
    await page.getByLabel("Rules for").selectOption("agent");
    await fill(page, "Delete events after (days)", "30");
    await click(page, "Preview");
    await page.getByRole("cell", { name: "3", exact: true }).waitFor();
    await click(page, "Save rules");
    await until(
      () => ask("keep", "getConfig"),
      ({ retention }) => retention?.eventsDays === 30,
    );
    await until(
      () => ask("keep", "loadEvents", { sessionId: "s" }),
      (events) => events.length === 0,
    );
    assert.equal((await ask("keep", "loadEvents", { sessionId: "t" })).length, 3);
  });

  test("a_person_is_found_saved_and_erased_and_the_receipt_is_stored", async (t) => {
    await ask("person", "createSession", { id: "s", name: "Call with Anna Smith" });
    const texts = ["Anna Smith called.", "Nobody called.", "anna smith called again."];
    const events = texts.map((content) => ({ action: "user_message", content }));
    await ask("person", "appendEvents", { sessionId: "s", events });
    await ask("person", "defineBlock", { label: "facts", kind: "searchable" });
    await ask("person", "setEntry", { label: "facts", key: "anna", content: "Anna Smith likes figs." });
    const page = await site.open(t, "#/person/manage/people");
    await fill(page, "Name, email address or number", "anna smith");
    await click(page, "Find");
    await page.getByText("4 mentions", { exact: true }).waitFor();
    const [download] = await Promise.all([page.waitForEvent("download"), click(page, "Save as a file")]);
    const file = JSON.parse(await readFile(await download.path(), "utf8"));
    assert.equal(file.places.length, 4);
    assert.ok(file.places.some(({ text }) => JSON.stringify(text)?.includes("likes figs")));
    // One of them remains.
    await page.getByRole("listitem").filter({ hasText: "called again" }).getByRole("checkbox").uncheck();
    await click(page, "Erase 3 mentions");
    await page.getByRole("dialog").getByRole("button", { name: "Erase", exact: true }).click();
    await page
      .getByText(/Erased: .*1 entry\b/)
      .first()
      .waitFor();
    const remaining = await ask("person", "findMentions", { query: "anna smith" });
    assert.deepEqual(
      remaining.places.map(({ snippet }) => snippet),
      ["anna smith called again."],
    );
    await page.reload();
    const [receipt] = await Promise.all([page.waitForEvent("download"), click(page, "Save receipt")]);
    const saved = JSON.parse(await readFile(await receipt.path(), "utf8"));
    assert.equal(saved.erased.entries, 1);
    assert.deepEqual(await ask("person", "verifyReceipt", { receipt: saved }), { valid: false, signed: false });
  });

  test("tools_and_servers_are_added_tested_and_removed_and_secrets_only_named", async (t) => {
    // With a secret: with open auth, no page may call a tool.
    const locked = await startConsole({
      vars: { MODEL: "demo", TOOL_ORIGINS: origin },
      secrets: { SESSION_AGENT_TOKEN: SECRET },
    });
    t.after(() => locked.stop());
    const headers = { authorization: `Bearer ${SECRET}` };
    const page = await locked.open(t, "#/tools/manage/tools");
    await page.getByLabel("Secret or token").fill(SECRET);
    await page.keyboard.press("Enter");
    await page.getByText("No tools yet").waitFor();
    await click(page, "Add a tool");
    await fill(page, "Name", "weather");
    await fill(page, "URL", `${origin}/weather`);
    await fill(page, "Description", "The weather of a place.");
    await page.getByLabel("Require user approval for each call").uncheck();
    await page.getByRole("dialog").getByRole("button", { name: "Add", exact: true }).click();
    await page.getByText("The weather of a place.").waitFor();
    await click(page, "Try weather");
    await fill(page, "Input (JSON)", '{"place": "Oslo"}');
    await click(page, "Call");
    await page.getByText("The tool returned:").waitFor();
    await page.getByText(/"sky":"clear"/).waitFor();
    await page.keyboard.press("Escape");
    await click(page, "Add");
    await page.getByLabel("Type", { exact: true }).selectOption("mcp");
    await fill(page, "Name", "friend");
    await fill(page, "URL", `${origin}/mcp`);
    await page.getByRole("dialog").getByRole("button", { name: "Add", exact: true }).click();
    await page.getByText(/Added a server with 1 tool/).waitFor();
    // The Worker refuses a secret that TOOL_SECRETS does not map, and its message is shown.
    await click(page, "Add");
    await fill(page, "Name", "locked");
    await fill(page, "URL", `${origin}/weather`);
    await fill(page, "Description", "Locked.");
    await fill(page, "Secret name", "NO_SUCH_SECRET");
    await page.getByRole("dialog").getByRole("button", { name: "Add", exact: true }).click();
    await page.locator(".notice.failed").waitFor();
    await page.keyboard.press("Escape");
    await click(page, "Remove weather");
    await until(
      async () => (await locked.server.call("tools", "listTools", {}, { headers })).body,
      ({ tools }) => tools.every(({ name }) => name !== "weather"),
    );
  });

  test("a_server_that_needs_it_is_authorized_in_another_tab", async (t) => {
    const guarded = await startConsole({
      vars: { AUTH: "open", MODEL: "demo", TOOL_ORIGINS: origin, PUBLIC_URL: origin },
      secrets: { TOOL_TOKEN_KEY: "a key of at least 32 characters, for tests" },
    });
    t.after(() => guarded.stop());
    returnedTo = guarded.server.url;
    const page = await guarded.open(t, "#/guarded/manage/tools");
    await click(page, "Add a tool");
    await page.getByLabel("Type", { exact: true }).selectOption("mcp");
    await fill(page, "Name", "private");
    await fill(page, "URL", `${origin}/private`);
    await page.getByRole("dialog").getByRole("button", { name: "Add", exact: true }).click();
    await page.getByText("needs authorization", { exact: true }).waitFor();
    await click(page, "Authorize private");
    const opens = page.getByRole("link", { name: `Sign in at ${new URL(origin).host}` });
    const [tab] = await Promise.all([page.waitForEvent("popup"), opens.click()]);
    await tab.getByText("The agent can use the server now.").waitFor();
    await tab.close();
    await page.getByText("private is authorized.").waitFor();
    await page.getByText("private_secret_hello").waitFor();
    assert.equal(await page.getByText("needs authorization", { exact: true }).count(), 0);
    assert.equal(await opens.count(), 0);
  });

  test("a_deployed_tool_is_marked_hidden_and_restored", async (t) => {
    const tool = { name: "weather", description: "The weather.", url: `${origin}/weather` };
    const deployed = await startConsole({
      vars: { AUTH: "open", MODEL: "demo", TOOL_ORIGINS: origin, AGENT_DEFAULTS: JSON.stringify({ tools: [tool] }) },
    });
    t.after(() => deployed.stop());
    const page = await deployed.open(t, "#/tools/manage/tools");
    await page.getByText(/from the deployed code .* Removing it hides it from this agent only\./).waitFor();
    await click(page, "Hide weather from this agent");
    await page.getByRole("list", { name: "Hidden tools" }).getByText("weather", { exact: true }).waitFor();
    assert.deepEqual((await deployed.server.call("tools", "listTools", {})).body, { tools: [], hidden: ["weather"] });
    await click(page, "Show weather again");
    await page.getByRole("button", { name: "Hide weather from this agent" }).waitFor();
    assert.equal((await deployed.server.call("tools", "listTools", {})).body.tools[0].isDeployed, true);
  });

  test("with_open_auth_the_page_explains_why_tools_cannot_be_called", async (t) => {
    const tool = { name: "weather", description: "The weather.", url: `${origin}/weather`, needsApproval: false };
    await ask("anybody", "defineTool", tool);
    const page = await site.open(t, "#/anybody/manage/tools");
    await click(page, "Try weather");
    await click(page, "Call");
    const alert = page.getByRole("dialog").getByRole("alert");
    await alert.getByText("This Worker doesn't accept tool calls from a page.").waitFor();
    for (const way of ["npm start", "SESSION_AGENT_TOKEN", "in a conversation"]) await alert.getByText(way).waitFor();
  });

  test("a_token_is_shown_once_with_its_rights", async (t) => {
    const locked = await startConsole({ vars: { MODEL: "demo" }, secrets: { SESSION_AGENT_TOKEN: SECRET } });
    try {
      const headers = { authorization: `Bearer ${SECRET}` };
      await locked.server.call("t", "createSession", { id: "s" }, { headers });
      const page = await locked.open(t, "#/t/manage/tokens");
      await page.getByLabel("Secret or token").fill(SECRET);
      await page.keyboard.press("Enter");
      await fill(page, "Session", "s");
      await page.getByLabel("add system instructions to a turn").check();
      await fill(page, "Turns per minute", "5");
      await fill(page, "Holder", "user-42");
      await click(page, "Create token");
      await page.getByText("Access to session s only.").waitFor();
      const token = await page.getByLabel("Token", { exact: true }).inputValue();
      const asToken = { headers: { authorization: `Bearer ${token}` } };
      assert.equal((await locked.server.call("t", "getPathLength", { sessionId: "s" }, asToken)).status, 200);
      assert.equal((await locked.server.call("t", "deleteSession", { sessionId: "s" }, asToken)).status, 403);
      await click(page, "Hide");
      assert.ok(!(await page.content()).includes(token));
      const stored = await page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }]));
      assert.ok(!stored.includes(token), "the page keeps no token");
    } finally {
      await locked.stop();
    }
  });

  test("compaction_is_configured_and_an_empty_field_resets_it", async (t) => {
    const page = await site.open(t, "#/compact/manage/compaction");
    await fill(page, "Compact when a conversation exceeds this many tokens", "30000");
    await click(page, "Save");
    await page.getByText("Saved.", { exact: true }).waitFor();
    assert.equal((await ask("compact", "configureCompaction")).compactAfter, 30_000);
    await fill(page, "Compact when a conversation exceeds this many tokens", "");
    await click(page, "Save");
    await until(
      () => ask("compact", "configureCompaction"),
      ({ compactAfter }) => compactAfter === null,
    );
  });

  test("a_backup_is_created_scheduled_and_listed", async (t) => {
    await ask("copies", "createSession", { id: "s" });
    const page = await site.open(t, "#/copies/manage/copies");
    await page.getByText("No backups yet.").waitFor();
    await click(page, "Back up now");
    await page.getByText(/Backed up: /).waitFor();
    await page.getByText(/^copies\/\d+\.ndjson$/).waitFor();
    await fill(page, "Interval in hours", "12");
    await click(page, "Save schedule");
    await until(
      () => ask("copies", "listBackups"),
      ({ nextAt, backups }) => nextAt > Date.now() && backups.length === 2,
    );
    await click(page, "Find bookmark");
    await page.getByText(/no point-in-time recovery/).waitFor();
  });

  test("deployed_defaults_and_the_agents_overrides_are_shown", async (t) => {
    await ask("own", "configureAgent", { temperature: 0.5 });
    const page = await site.open(t, "#/own/manage/defaults");
    const row = (name) => page.getByRole("row").filter({ hasText: name });
    await row("maxSteps").getByText("deployed for all agents").waitFor();
    await row("temperature").getByText("set for this agent").waitFor();
    await ask("own", "configureAgent", { maxSteps: 9 });
    await page.reload();
    await row("maxSteps").getByText("set for this agent").waitFor();
  });

  test("agents_are_listed_searched_and_erased_with_one_receipt", async (t) => {
    for (const name of ["u:7:a", "u:7:b", "u:7"]) {
      await ask(name, "createSession", { id: "s" });
      const events = [{ action: "user_message", content: `A window seat for ${name}.` }];
      await ask(name, "appendEvents", { sessionId: "s", events });
    }
    const page = await site.open(t, "#/operator/manage/agents");
    await fill(page, "Name prefix", "u:7:");
    await page.getByRole("link", { name: "u:7:a" }).waitFor();
    await fill(page, "Search their conversations", "window");
    await click(page, "Search");
    await page.getByText("2 results in 2 agents").waitFor();
    await click(page, "Erase these agents");
    await fill(page, "Type the name prefix to confirm", "u:7:");
    await page.getByRole("dialog").getByRole("button", { name: "Erase", exact: true }).click();
    await page.getByText(/Erased 3 agents/).waitFor();
    assert.deepEqual((await ask("operator", "listAgents", { prefix: "u:7" })).agents, []);
  });

  test("a_proposal_is_decided_change_by_change_with_evidence_and_reverted", async (t) => {
    const model = await startModel();
    const learning = await startConsole({
      vars: { AUTH: "open", MODEL: "openai:test", OPENAI_BASE_URL: model.url },
      secrets: { OPENAI_API_KEY: "a key" },
    });
    try {
      const ask = (operation, input = {}) => learning.ask("l", operation, input);
      await ask("createSession", { id: "s", name: "Trip" });
      await ask("defineBlock", { label: "facts", kind: "searchable" });
      await ask("configureAgent", { learn: { into: "facts", after: "manual" } });
      const content = "I like window seats, and I live in Oslo.";
      await ask("appendEvents", { sessionId: "s", events: [{ id: "e", action: "user_message", content }] });
      const changes = [
        { action: "add", key: "seat", content: "The user likes window seats.", events: ["e1"] },
        { action: "add", key: "home", content: "The user lives in Oslo.", events: ["e1"] },
      ];
      model.next(say(JSON.stringify({ changes })));
      const page = await learning.open(t, "#/new/manage/proposals");
      await page.getByRole("link", { name: "Set up learning" }).click();
      await page.getByLabel("Block for learned facts").waitFor();
      await page.goto(learning.at("#/l/manage/proposals"));
      await page.getByText("No pending proposals").waitFor();
      await click(page, "Learn now");
      const seat = page.getByLabel("Text of facts / seat");
      await seat.fill("The user likes window seats on trains.");
      const evidence = page.getByRole("link", { name: "message 1" }).first();
      assert.match(await evidence.getAttribute("href"), /sessions\/s\/conversation\?at=e$/);
      const home = page.locator(".entry").filter({ hasText: "home" });
      await home.getByRole("checkbox").uncheck();
      await click(page, "Approve");
      await page.getByText("Approved 1 change.").waitFor();
      // The change links to the fact, and its history to the messages.
      await page.getByRole("link", { name: "facts / seat" }).click();
      const history = page.getByRole("region", { name: "Versions" });
      await history.getByText("learned").waitFor();
      // An edited text has the source `operator`.
      await history.getByText("Source: operator").waitFor();
      const source = history.getByRole("link", { name: "message 1" });
      assert.match(await source.getAttribute("href"), /sessions\/s\/conversation\?at=e$/);
      await page.goto(learning.at("#/l/manage/proposals"));
      await page.getByRole("button", { name: "Reject" }).waitFor();
      // Learned changes can be viewed and reverted while the others are pending.
      await page.getByRole("button", { name: "Revert" }).waitFor();
      await page.getByLabel("Show").selectOption("today");
      await page.getByText("The user likes window seats on trains.").first().waitFor();
      await page.getByLabel("Show").selectOption("pending");
      await page.getByRole("button", { name: "Reject" }).waitFor();
      const entries = async () => (await ask("listEntries", { label: "facts" })).entries;
      assert.deepEqual(
        (await entries()).map(({ key, content }) => [key, content]),
        [["seat", "The user likes window seats on trains."]],
      );
      await click(page, "Reject");
      await page.getByText("No pending proposals").waitFor();
      await page.getByLabel("Show").selectOption("today");
      await page.getByText("The user likes window seats on trains.").first().waitFor();
      await click(page, "Revert");
      await until(entries, (left) => left.length === 0);
      await page.getByLabel("Show").selectOption("reverted");
      await page.getByText("The user likes window seats on trains.").first().waitFor();
    } finally {
      await learning.stop();
      await model.stop();
    }
  });

  test("without_a_directory_the_page_explains_how_to_add_one", async (t) => {
    const bare = await startConsole();
    try {
      const page = await bare.open(t, "#/a/manage/agents");
      await page.getByText("This Worker has no agent directory").waitFor();
    } finally {
      await bare.stop();
    }
  });

  for (const [name, options] of [
    ["light", { colorScheme: "light" }],
    ["dark", { colorScheme: "dark" }],
    ["phone", { viewport: { width: 320, height: 640 }, colorScheme: "dark" }],
  ]) {
    test(`axe_finds_no_problem_in_any_section_in_${name}`, async (t) => {
      const agent = `axe-${name}`;
      await ask(agent, "createSession", { id: "s" });
      await ask(agent, "defineTool", {
        ...{ name: "weather", description: "The weather.", url: `${origin}/weather`, needsApproval: true },
      });
      const page = await site.open(t, "", { ...options, bypassCSP: true });
      for (const [part, text] of [
        ["proposals", "No pending proposals"],
        ["retention", "Save rules"],
        ["people", "Name, email address or number"],
        ["tools", "needs approval"],
        ["tokens", "Create token"],
        ["compaction", "Compact when"],
        ["copies", "Point-in-time recovery"],
        ["defaults", "maxSteps"],
        ["agents", "Search their conversations"],
      ]) {
        await page.goto(site.at(`#/${agent}/manage/${part}`));
        await page.getByText(text).first().waitFor();
        const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        assert.ok(overflow <= 0, `${part} is ${overflow} pixels wider than the screen`);
        await page.evaluate(AXE);
        const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
        const faults = violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ target }) => target).join("; ")}`);
        assert.deepEqual(faults, [], part);
        if (process.env.SHOTS)
          await page.screenshot({ path: `${process.env.SHOTS}/${part}-${name}.png`, fullPage: true });
      }
    });
  }
});
