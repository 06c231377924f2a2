// Renders the open view's requests as code: with curl, and with the client.

import type { ManagePart, Route, SessionTab } from "../route.ts";

export interface Snippet {
  /** The purpose of the calls. */
  text: string;
  curl: string;
  client: string;
}

interface Call {
  text: string;
  operation: string;
  input: Record<string, unknown>;
  /** As a method of the client: `agent.listSessions()`. */
  client: string;
}

const TABS: Record<SessionTab, (id: string) => Call> = {
  conversation: (id) => ofSession("The messages on this session's current branch", "getHistory", id, { limit: 100 }),
  turns: (id) => ofSession("The turns of this session, newest first", "getTurns", id, { limit: 20 }),
  branches: (id) => ofSession("The event log, which contains all branches", "loadEvents", id, { limit: 500 }),
  events: (id) => ofSession("The latest events in the log", "loadEvents", id, { tail: true, limit: 100 }),
  changes: (id) => ofSession("The changes since a cursor", "getChanges", id, { since: 0, limit: 1000 }),
  context: (id) => ofSession("The next turn's request to the model", "buildWorkingContext", id, { asTurn: true }),
  memory: (id) => ofSession("This session's blocks", "getBlocks", id, {}),
};

const PARTS: Record<ManagePart, Call> = {
  proposals: ofAgent("The pending proposals", "getProposals", { status: "pending" }),
  retention: ofAgent("What the retention rules would delete", "applyRetention", { dryRun: true }),
  people: ofAgent("All mentions of a text", "findMentions", { query: "Anna Smith" }),
  tools: ofAgent("The registered tools and servers", "listTools", {}),
  tokens: ofAgent("A read-only token, valid for one hour", "mintToken", { preset: "read", expiresIn: 3600 }),
  compaction: ofAgent("The compaction settings", "configureCompaction", {}),
  copies: ofAgent("The backups of this agent", "listBackups", {}),
  defaults: ofAgent("The settings and their sources", "getConfig", {}),
  agents: ofAgent("The agents whose names start with a prefix", "listAgents", { prefix: "user:42:" }),
};

function callOf(at: Exclude<Route, { view: "home" }>): Call {
  if (at.view === "session") return TABS[at.tab](at.session);
  if (at.view === "manage") return PARTS[at.part];
  if (at.view === "memory") {
    const { label, entry } = at;
    if (label === undefined) return ofAgent("All blocks of the agent", "getBlocks", {});
    if (entry === undefined) return ofAgent("One block with its content", "getBlock", { label });
    return ofAgent("The versions of one entry, newest first", "getBlockVersions", { label, key: entry });
  }
  if (at.view === "activity") return ofAgent("Tokens and costs per day", "getUsage", { by: "day" });
  if (at.view === "settings") return ofAgent("The settings and their sources", "getConfig", {});
  return ofAgent("The sessions, most recent activity first", "listSessions", { limit: 100 });
}

function ofAgent(text: string, operation: string, input: Record<string, unknown>): Call {
  return { text, operation, input, client: `agent.${operation}(${given(input)})` };
}

function ofSession(text: string, operation: string, id: string, input: Record<string, unknown>): Call {
  const client = `agent.session(${JSON.stringify(id)}).${operation}(${given(input)})`;
  return { text, operation, input: { sessionId: id, ...input }, client };
}

function given(input: Record<string, unknown>): string {
  const fields = Object.entries(input).map(([name, value]) => `${name}: ${JSON.stringify(value)}`);
  return fields.length === 0 ? "" : `{ ${fields.join(", ")} }`;
}

/** `hasCredential`: the Worker requires one. The code never contains it. */
export function snippetOf(at: Exclude<Route, { view: "home" }>, origin: string, hasCredential: boolean): Snippet {
  const { text, operation, input, client } = callOf(at);
  const url = `${origin}/agents/session-agent/${encodeURIComponent(at.agent)}/rpc/${operation}`;
  const header = hasCredential ? ` \\\n  -H "authorization: Bearer $SESSION_AGENT_TOKEN"` : "";
  const options = hasCredential ? ", { token: process.env.SESSION_AGENT_TOKEN }" : "";
  return {
    text,
    curl: `curl ${quoted(url)}${header} \\\n  -d ${quoted(JSON.stringify(input))}`,
    client: [
      'import { sessionAgent } from "session-agent";',
      "",
      `const agent = sessionAgent(${JSON.stringify(origin)}, ${JSON.stringify(at.agent)}${options});`,
      `console.log(await ${client});`,
    ].join("\n"),
  };
}

/** Quotes a word for the shell. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
