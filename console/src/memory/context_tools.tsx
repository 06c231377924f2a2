// The tools that the model receives: memory tools, registered tools, and tools of MCP servers.

import type { ListedTool, RegisteredTools, ToolInfo } from "session-agent";
import { Name } from "../ui/basics.tsx";
import { Icon } from "../ui/icons.tsx";
import { Code } from "../conversation/parts.tsx";
import { counted, shownJson, shownText } from "../text.ts";

interface Props {
  /** In the order in which the model receives them. */
  tools: readonly ListedTool[];
  /** `null`: the credential doesn't allow reading them, so only the memory tools are known. */
  registered: RegisteredTools | null;
}

export function ContextTools({ tools, registered }: Props) {
  const known = new Map(registered?.tools.map((tool) => [tool.name, tool]));
  const ofMemory = tools.filter(({ name }) => !known.has(name)).length;
  const others = tools.length - ofMemory;
  return (
    <>
      <h3>
        Tools{" "}
        <span class="note">
          {counted(ofMemory, "memory tool")}
          {registered === null ? ". Your token can't list registered tools" : `, ${others} registered`}
        </span>
      </h3>
      {tools.length === 0 && <p class="note">No tools: none are registered, and no block needs one.</p>}
      {tools.map((tool) => (
        <Tool key={tool.name} tool={tool} registered={known.get(tool.name)} />
      ))}
      {registered?.servers?.map((server) => (
        <p class="note" key={server.name}>
          <Icon name="tool" /> The tools of the MCP server <Name text={server.name} /> are fetched at the start of each
          turn.
        </p>
      ))}
      <p class="hint">Tools that a client sends with its own request are not listed.</p>
    </>
  );
}

function Tool({ tool, registered }: { tool: ListedTool; registered: ToolInfo | undefined }) {
  return (
    <details class="card fold">
      <summary>
        <Icon name="tool" />{" "}
        <b>
          <Name text={tool.name} />
        </b>{" "}
        <span class="badge">{originOf(registered)}</span>
        {registered?.needsApproval && <span class="state approval-requested">needs approval</span>}
        <span class="note">
          <Name text={tool.description.split("\n", 1)[0]!} />
        </span>
      </summary>
      <p class="prose">{shownText(tool.description)}</p>
      <Code text={shownJson(tool.parameters)} />
    </details>
  );
}

function originOf(registered: ToolInfo | undefined): string {
  if (registered === undefined) return "memory";
  if (registered.server !== undefined) return `MCP: ${registered.server}`;
  return registered.service === undefined ? "registered" : `service ${registered.service}`;
}
