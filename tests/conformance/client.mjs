// The client under test of the conformance suites: an agent that uses a server's tools. A Worker
// that may call the server's URL adds its tools and calls each of them as the owner.
//
// The suite starts a program for each scenario (command.mjs), which delegates to the test process:
// loading the harness for each scenario would take 0.7 s of CPU time.

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { call } from "../workerd/chat_server.mjs";
import { startServer } from "../workerd/harness.mjs";

const AGENT = "conformance-client";

/**
 * The arguments of each scenario's tools: the suite specifies them, or the tool accepts anything.
 */
const ARGUMENTS = {
  add_numbers: () => ({ a: 5, b: 3 }),
  // The schema of another tool, as the agent stores it.
  json_schema_echo: (tools) => ({
    schema: tools.find(({ name }) => name === "s_json_schema_2020_12_tool")?.parameters,
  }),
};

/** A client that is already registered at the authorization server. */
const CLIENT_SECRET = "CONFORMANCE_CLIENT";

/** An operator would also give up on a server that is never satisfied. */
const MOST_AUTHORIZATIONS = 2;

const PUBLIC_URL = "http://127.0.0.1:9";

/**
 * Plays a scenario against the server at the address. `context` is the suite's description of it,
 * and `print` prints a line.
 */
export async function play(address, scenario, context, print) {
  const registered = () => {
    if (context.client_id !== undefined) {
      const secret = context.client_secret && { clientSecret: `secret:${CLIENT_SECRET}` };
      return { oauth: { clientId: context.client_id, ...secret } };
    }
    // The suite expects one client metadata document. The Worker's own has its own address.
    if (scenario === "auth/basic-cimd")
      return { oauth: { clientId: "https://conformance-test.local/client-metadata.json" } };
    return {};
  };
  const tool = { name: "s", mcp: address, needsApproval: false, timeoutMs: 15_000, ...registered() };
  const storage = await mkdtemp(join(tmpdir(), "session-agent-conformance-"));

  /** A Worker that may call these origins. Its agents remain when it is restarted. */
  const start = (origins) =>
    startServer({
      storage,
      vars: {
        AUTH: "local",
        TOOL_ORIGINS: origins.join(" "),
        PUBLIC_URL,
        TOOL_TOKEN_KEY: "a key of at least 32 characters, for tests",
        TOOL_SECRETS: origins
          .slice(1, 2)
          .map((origin) => `${CLIENT_SECRET}=${origin}`)
          .join(),
        ...(context.client_secret && { [CLIENT_SECRET]: context.client_secret }),
      },
    });

  let origins = [new URL(address).origin];
  let server = await start(origins);
  try {
    let defined = await define();
    for (let tries = 1; defined.authorizationUrl !== undefined; tries += 1) {
      await authorize(defined.authorizationUrl);
      if (!(await needsAuthorization())) break;
      if (tries === MOST_AUTHORIZATIONS) throw new Error("The server wants another authorization.");
      defined = await define();
    }
    const { tools } = await call(server, AGENT, "listTools", {});
    const own = ({ name }) => name.slice("s_".length);
    const calls =
      context.toolCalls ??
      tools.map((tool) => ({
        name: own(tool),
        arguments: ARGUMENTS[own(tool)]?.(tools) ?? argumentsFor(tool.parameters),
      }));
    for (const { name, arguments: given } of calls) {
      let result = await use(name, given);
      for (let tries = 1; tries < MOST_AUTHORIZATIONS && (await needsAuthorization()); tries += 1) {
        await authorize((await define()).authorizationUrl);
        result = await use(name, given);
      }
      print(`${name} ${JSON.stringify(result)}`);
      if (await needsAuthorization()) throw new Error("The server wants another authorization.");
    }
  } finally {
    await server.stop();
    await rm(storage, { recursive: true, force: true });
  }

  async function needsAuthorization() {
    return (await call(server, AGENT, "listTools", {})).servers[0].needsAuthorization === true;
  }

  /** Defines the server. Its authorization server is another origin, which the operator allows. */
  async function define() {
    const { status, body } = await server.call(AGENT, "defineTool", tool);
    const refused = /^Tools at (\S+) are not allowed/.exec(body.error?.message ?? "");
    if (status === 200) return body;
    if (refused === null) throw new Error(body.error.message);
    await server.stop();
    origins = [...origins, refused[1]];
    server = await start(origins);
    return define();
  }

  /** Opens the address as a person who allows everything, and returns to the Worker. */
  async function authorize(opened) {
    const answer = await fetch(opened, { redirect: "manual" });
    const back = new URL(answer.headers.get("location"));
    const page = await server.fetch(`${back.pathname}${back.search}`, {}, { agent: AGENT });
    if (page.status !== 200) throw new Error(await page.text());
    await page.body?.cancel();
  }

  /** Calls a tool over the protocol, and answers its questions. */
  async function use(name, given) {
    const meta = {
      "io.modelcontextprotocol/protocolVersion": "2026-07-28",
      "io.modelcontextprotocol/clientCapabilities": { elicitation: {} },
    };
    let more = {};
    for (let round = 0; round < 4; round += 1) {
      const params = { name: `s_${name}`, arguments: given, ...more, _meta: meta };
      const answer = await server.fetch(`/agents/session-agent/${AGENT}/mcp`, {
        method: "POST",
        headers: {
          "content-type": "application/json",
          accept: "application/json",
          "mcp-protocol-version": "2026-07-28",
          "mcp-method": "tools/call",
          "mcp-name": params.name,
        },
        body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params }),
      });
      const { result, error } = await answer.json();
      if (result?.resultType !== "input_required") return result ?? error;
      const yes = { action: "accept", content: { confirmed: true, ok: true, name: "Ann" } };
      const inputResponses = Object.fromEntries(Object.keys(result.inputRequests).map((key) => [key, yes]));
      more = { inputResponses, requestState: result.requestState };
    }
    return "It asks without end.";
  }
}

/** A value for each argument that a schema requires. */
function argumentsFor({ properties = {}, required = [] }) {
  const values = { string: "x", integer: 1, number: 1, boolean: true, object: {}, array: [], null: null };
  return Object.fromEntries(required.map((name) => [name, values[properties[name]?.type] ?? "x"]));
}
