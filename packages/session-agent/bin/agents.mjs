// `npx session-agent agents`, `erase`, `backup`, `restore` and `verify`. Each prints lines of JSON:
// agents, receipts, the backup, or damaged rows.

import { parseArgs } from "node:util";

export const USAGE = `Usage: session-agent agents [PREFIX] [--url URL]
       session-agent erase PREFIX --confirm PREFIX [--url URL]
       session-agent backup AGENT [--keep COUNT] [--url URL]
       session-agent restore AGENT [--from KEY] [--allow-sources] [--url URL]
       session-agent verify AGENT [--url URL]

agents: lists the agents whose names start with PREFIX. The Worker needs the binding DIRECTORY.
erase: destroys these agents with all their data, and prints a receipt for each, then one
  for all of them. --home NAME (repeatable): an agent that stores their shared memory.
backup: writes the agent to the Worker's bucket BACKUP_BUCKET, and retains the newest COUNT.
restore: imports a backup into an empty agent: the one with this key, or the agent's newest.
verify: checks the agent's stored data, changes nothing, and prints any errors.`;

/** The agent that is called for operations on the directory. It stores nothing. */
const OPERATOR = "operator";

const OPTIONS = {
  url: { type: "string" },
  confirm: { type: "string" },
  home: { type: "string", multiple: true },
  keep: { type: "string" },
  from: { type: "string" },
  "allow-sources": { type: "boolean" },
};

/** The command that each option belongs to. */
const COMMAND_OF = { confirm: "erase", home: "erase", keep: "backup", from: "restore", "allow-sources": "restore" };

/** Runs a command. Returns the message of a failure. */
export async function runAgents(
  command,
  args,
  { env = process.env, stdout = process.stdout, stderr = process.stderr } = {},
) {
  let parsed;
  try {
    parsed = parseArgs({ args, options: OPTIONS, allowPositionals: true });
  } catch (error) {
    return `${error.message}\n${USAGE}`;
  }
  const { values, positionals } = parsed;
  const [name, ...more] = positionals;
  const isUnnamed = name === undefined && command !== "agents";
  const hasWrongOption = Object.keys(values).some((option) => (COMMAND_OF[option] ?? command) !== command);
  if (isUnnamed || hasWrongOption || more.length > 0) return USAGE;
  const { sessionAgent } = await import("../dist/index.js");
  const url = values.url ?? env.SESSION_AGENT_URL ?? "http://localhost:8787";
  const agentOf = (agent) => sessionAgent(url, agent, { token: env.SESSION_AGENT_TOKEN });
  const print = (line) => stdout.write(`${JSON.stringify(line)}\n`);
  const report = (text) => stderr.write(`${text}\n`);
  try {
    if (command === "agents") return await list(agentOf(OPERATOR), name ?? "", print);
    if (command === "erase") return await erase(agentOf(OPERATOR), name, values, print);
    if (command === "restore") return await restore(agentOf(name), values, print);
    if (command === "verify") return await verify(agentOf(name), name, print, report);
    const keep = values.keep === undefined ? {} : { keep: Number(values.keep) };
    print(await agentOf(name).backup({ to: "r2", ...keep }));
  } catch (error) {
    return error.message;
  }
}

async function list(agent, prefix, print) {
  let cursor = null;
  do {
    const page = await agent.listAgents({ prefix, limit: 1000, ...(cursor !== null && { cursor }) });
    page.agents.forEach(print);
    cursor = page.cursor;
  } while (cursor !== null);
}

async function erase(agent, prefix, { confirm, home: homes }, print) {
  if (confirm !== prefix) return `Nothing was destroyed. To destroy these agents, add: --confirm ${prefix}`;
  const left = new Set();
  for (let receipt; ; ) {
    const input = { prefix, confirm, ...(homes && { homes }), ...(receipt && { receipt }) };
    const { agents, failed, more, homesLeft, receipt: next } = await agent.eraseAgents(input);
    agents.forEach(print);
    for (const name of homesLeft) left.add(name);
    for (const { agent: name } of agents) left.delete(name);
    // Retries agents that didn't respond, as long as others are erased.
    const isStuck = agents.length === 0 && failed.length > 0;
    if (isStuck || (!more && failed.length === 0)) {
      print({ receipt: next, ...(left.size > 0 && { homesLeft: [...left] }) });
      return isStuck ? `Not destroyed, because they didn't respond: ${failed.join(", ")}` : undefined;
    }
    receipt = next;
  }
}

async function verify(agent, name, print, report) {
  let [found, checked, cursor] = [0, 0, null];
  do {
    const page = await agent.verify({ ...(cursor !== null && { cursor }) });
    page.findings.forEach(print);
    found += page.findings.length;
    checked += page.checked;
    cursor = page.cursor;
  } while (cursor !== null);
  if (found > 0) return `${name}: ${found} findings in ${checked} rows.`;
  report(`${name}: ${checked} rows are consistent.`);
}

async function restore(agent, { from, "allow-sources": allowSources = false }, print) {
  const key = from ?? (await agent.listBackups()).backups[0]?.key;
  if (key === undefined) return "This agent has no backup. To restore another agent's backup, use --from KEY.";
  print({ key, ...(await agent.restoreBackup({ key, allowSources })) });
}
