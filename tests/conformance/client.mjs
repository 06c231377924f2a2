// The client that the conformance suites test: an agent that uses the tools of a server. The suite
// starts this program for each scenario, with the server's address as its last argument. A Worker
// that may ask that address brings the server's tools in, and calls each of them as its owner.

import { call } from "../workerd/chat_server.mjs";
import { startServer } from "../workerd/harness.mjs";

const AGENT = "conformance-client";
const address = process.argv.at(-1);

/** What the tools of each scenario are called with: the suite says it, or the tool takes anything. */
const context = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? "{}");
const ARGUMENTS = {
  add_numbers: () => ({ a: 5, b: 3 }),
  // The schema of another tool, as the agent stores it.
  json_schema_echo: (tools) => ({
    schema: tools.find(({ name }) => name === "s_json_schema_2020_12_tool")?.parameters,
  }),
};

const server = await startServer({ vars: { AUTH: "local", TOOL_ORIGINS: new URL(address).origin } });
try {
  const tool = { name: "s", mcp: address, needsApproval: false, timeoutMs: 15_000 };
  const { tools } = await call(server, AGENT, "defineTool", tool);
  const own = ({ name }) => name.slice("s_".length);
  const calls =
    context.toolCalls ??
    tools.map((tool) => ({
      name: own(tool),
      arguments: ARGUMENTS[own(tool)]?.(tools) ?? argumentsFor(tool.parameters),
    }));
  for (const { name, arguments: given } of calls) console.log(name, JSON.stringify(await use(name, given)));
} finally {
  await server.stop();
}

/** Calls a tool over the protocol, and answers what it asks. */
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

/** A value for each argument that a schema requires. */
function argumentsFor({ properties = {}, required = [] }) {
  const values = { string: "x", integer: 1, number: 1, boolean: true, object: {}, array: [], null: null };
  return Object.fromEntries(required.map((name) => [name, values[properties[name]?.type] ?? "x"]));
}
