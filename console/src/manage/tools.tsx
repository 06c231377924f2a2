// Registered tools and MCP servers: adds, tries and removes them. A header's value may name a
// secret of the Worker.

import { useState } from "preact/hooks";
import type { Operations } from "session-agent";
import { Button, Check, Empty, Field, Heading, Name, Select } from "../ui/basics.tsx";
import { Pending } from "../ui/pending.tsx";
import { Dialog, Form } from "../ui/dialog.tsx";
import { openAgent } from "../connection.ts";
import { useLoad } from "../load.ts";
import { notify, notifyError } from "../notices.ts";
import { may } from "../rights.ts";
import { counted, shownText } from "../text.ts";
import { useWork } from "../ui/work.ts";
import { EntryHeader } from "./entry_header.tsx";
import { ServerRow } from "./server_row.tsx";
import { type Answer, callTool } from "./try_tool.ts";

type Registered = Operations["listTools"]["output"];
type Tool = Registered["tools"][number];

const DEPLOYED = "This tool comes from the deployed code or defaults.";

export function Tools({ agent }: { agent: string }) {
  const loaded = useLoad(agent, (signal) => openAgent(agent).listTools({}, { signal }));
  const { data, reload } = loaded;
  const [isAdding, setAdding] = useState(false);
  const [tried, setTried] = useState<Tool | null>(null);
  const mayChange = may("defineTool");
  const remove = async (name: string, { isDeployed = false, restore = false } = {}) => {
    try {
      await openAgent(agent).removeTool({ name, ...(restore && { restore }) });
      notify(restore ? `Restored ${name}.` : isDeployed ? `Hid ${name} from this agent.` : `Removed ${name}.`);
      reload();
    } catch (error) {
      notifyError(error);
    }
  };
  const servers = data?.servers ?? [];
  const hidden = data?.hidden ?? [];
  return (
    <>
      <Heading
        title="Tools"
        note="Tools that models can call: at a URL allowed by TOOL_ORIGINS, through a service binding, or on an MCP server."
      >
        {mayChange && (
          <Button kind="main" icon="add" onClick={() => setAdding(true)}>
            Add
          </Button>
        )}
        <Button icon="redo" onClick={reload}>
          Reload
        </Button>
      </Heading>
      <Pending of={loaded} what="the tools" />
      {data && data.tools.length === 0 && servers.length === 0 && hidden.length === 0 && (
        <Empty title="No tools yet" icon="tool">
          <p>The memory tools are built in. Add your own tool or an MCP server.</p>
          {mayChange && (
            <Button kind="main" icon="add" onClick={() => setAdding(true)}>
              Add a tool
            </Button>
          )}
        </Empty>
      )}
      {servers.length > 0 && (
        <ul class="rows" aria-label="Servers">
          {servers.map((server) => (
            <ServerRow
              key={server.name}
              agent={agent}
              server={server}
              reload={reload}
              toolCount={data?.tools.filter((tool) => tool.server === server.name).length ?? 0}
              {...(mayChange && { onRemove: () => void remove(server.name) })}
            />
          ))}
        </ul>
      )}
      {data && data.tools.length > 0 && (
        <ul class="rows" aria-label="Tools">
          {data.tools.map((tool) => (
            <ToolRow
              key={tool.name}
              tool={tool}
              onTry={() => setTried(tool)}
              {...(mayChange && tool.server == null && { onRemove: () => void remove(tool.name, tool) })}
            />
          ))}
        </ul>
      )}
      {hidden.length > 0 && (
        <ul class="rows" aria-label="Hidden tools">
          {hidden.map((name) => (
            <li key={name} class="card entry">
              <EntryHeader name={name} badges={["hidden"]}>
                {mayChange && (
                  <Button icon="redo" label={`Show ${name} again`} onClick={() => void remove(name, { restore: true })}>
                    Show
                  </Button>
                )}
              </EntryHeader>
              <p class="note">{DEPLOYED} It is hidden from this agent.</p>
            </li>
          ))}
        </ul>
      )}
      {isAdding && (
        <Add
          agent={agent}
          onClose={() => setAdding(false)}
          onDone={() => {
            setAdding(false);
            reload();
          }}
        />
      )}
      {tried !== null && <Try agent={agent} tool={tried} onClose={() => setTried(null)} />}
    </>
  );
}

function ToolRow({ tool, onTry, onRemove }: { tool: Tool; onTry: () => void; onRemove?: () => void }) {
  const { name, description, url, service, server, needsApproval, headers, isChanged, isDeployed } = tool;
  return (
    <li class="card entry">
      <EntryHeader name={name} badges={[needsApproval && "needs approval", isChanged && "changed since you saw it"]}>
        <Button icon="bolt" onClick={onTry} label={`Try ${name}`}>
          Try
        </Button>
        {onRemove && (
          <Button
            kind="quiet"
            icon="trash"
            label={isDeployed ? `Hide ${name} from this agent` : `Remove ${name}`}
            onClick={onRemove}
          />
        )}
      </EntryHeader>
      <p>{shownText(description)}</p>
      {isDeployed && <p class="note">{DEPLOYED} Removing it hides it from this agent only.</p>}
      <p class="note">
        {server != null ? (
          <>
            from the server <Name text={server} />
          </>
        ) : (
          <Name text={url ?? service ?? ""} />
        )}
        {headers && Object.keys(headers).length > 0 && `, with ${Object.keys(headers).join(", ")}`}
      </p>
    </li>
  );
}

type AddressKind = "url" | "service" | "mcp" | "mcpService";

function Add({ agent, onClose, onDone }: { agent: string; onClose: () => void; onDone: () => void }) {
  const [addressKind, setAddressKind] = useState<AddressKind>("url");
  const [name, setName] = useState("");
  const [description, setDescription] = useState("");
  const [address, setAddress] = useState("");
  const [parameters, setParameters] = useState('{"type": "object", "properties": {}}');
  const [needsApproval, setNeedsApproval] = useState(true);
  const [header, setHeader] = useState("authorization");
  const [secret, setSecret] = useState("");
  const [isBusy, run] = useWork();
  const isServer = addressKind === "mcp" || addressKind === "mcpService";
  const add = () =>
    run(async () => {
      const headers = secret.trim() === "" ? {} : { headers: { [header.trim()]: `secret:${secret.trim()}` } };
      const where =
        addressKind === "mcp"
          ? { mcp: address.trim() }
          : addressKind === "mcpService"
            ? { mcp: { service: address.trim() } }
            : { [addressKind]: address.trim() };
      const shape = isServer ? {} : { description, parameters: parsed(parameters) };
      const input = { name: name.trim(), needsApproval, ...where, ...shape, ...headers };
      const defined = await openAgent(agent).defineTool(input as never);
      const result = defined as { problem?: string | null; tools?: readonly unknown[] | null };
      notify(
        result.problem
          ? `Added, but the server reported a problem: ${result.problem}`
          : isServer
            ? `Added a server with ${counted(result.tools?.length ?? 0, "tool")}.`
            : "Added.",
      );
      onDone();
    });
  return (
    <Dialog title="Add a tool" onClose={onClose} isWide>
      <Form onSubmit={add} onClose={onClose} submit="Add" isBusy={isBusy}>
        <Select
          label="Type"
          value={addressKind}
          options={[
            ["url", "a tool at a URL"],
            ["service", "a tool through a service binding"],
            ["mcp", "an MCP server at a URL"],
            ["mcpService", "an MCP server through a service binding"],
          ]}
          onChange={setAddressKind}
        />
        <Field label="Name" value={name} onInput={setName} required autofocus />
        <Field
          label={addressKind === "url" || addressKind === "mcp" ? "URL" : "Binding"}
          value={address}
          onInput={setAddress}
          required
          hint={
            addressKind === "url" || addressKind === "mcp"
              ? "Its origin must be listed in TOOL_ORIGINS."
              : "The binding's name in wrangler.toml."
          }
        />
        {!isServer && (
          <>
            <Field
              label="Description"
              value={description}
              onInput={setDescription}
              rows={2}
              required
              hint="The model uses this to decide when to call the tool."
            />
            <Field label="Parameters (JSON Schema)" value={parameters} onInput={setParameters} rows={4} />
          </>
        )}
        <Field label="Header" value={header} onInput={setHeader} />
        <Field
          label="Secret name"
          value={secret}
          onInput={setSecret}
          placeholder="no header"
          hint="The name of a Worker secret, which is sent as the header's value to the origins listed in TOOL_SECRETS. Don't enter the secret itself."
        />
        <Check label="Require user approval for each call" isOn={needsApproval} onChange={setNeedsApproval} />
      </Form>
    </Dialog>
  );
}

function Try({ agent, tool, onClose }: { agent: string; tool: Tool; onClose: () => void }) {
  const [input, setInput] = useState("{}");
  const [answer, setAnswer] = useState<Answer | null>(null);
  const [isBusy, run] = useWork();
  return (
    <Dialog title={`Try ${tool.name}`} onClose={onClose} isWide>
      {tool.needsApproval ? (
        <div class="dialog-body">
          <p>
            Calls to this tool need user approval, which is only possible in a conversation. Try it in a conversation,
            or define it without approval.
          </p>
        </div>
      ) : (
        <Form
          onSubmit={() => run(async () => setAnswer(await callTool(agent, tool.name, parsed(input))))}
          onClose={onClose}
          submit="Call"
          isBusy={isBusy}
        >
          <p class="note">This calls the actual tool with your input.</p>
          <Field label="Input (JSON)" value={input} onInput={setInput} rows={4} />
          {answer?.kind === "refused" && <PageRefused text={answer.text} />}
          {answer !== null && answer.kind !== "refused" && (
            <div role="status">
              <p class="note">{answer.kind === "failed" ? "The tool failed:" : "The tool returned:"}</p>
              <pre class="code" tabIndex={0}>
                {shownText(answer.text)}
              </pre>
            </div>
          )}
        </Form>
      )}
    </Dialog>
  );
}

/**
 * With `AUTH=open` any page of the web could make the call, and the Worker can't tell this page
 * from others.
 */
function PageRefused({ text }: { text: string }) {
  return (
    <div class="problem refused" role="alert">
      <div>
        <p>
          <b>This Worker doesn't accept tool calls from a page.</b> It has no authentication, so any website could call
          the tools. To try a tool, do one of the following:
        </p>
        <ul>
          <li>
            Start it on your own machine with <code>npm start</code>. It then accepts requests from this machine only.
          </li>
          <li>
            Set the secret <code>SESSION_AGENT_TOKEN</code> and enter it in the console.
          </li>
          <li>Ask the agent to use the tool in a conversation.</li>
        </ul>
        <p class="note">The Worker's message: {shownText(text)}</p>
      </div>
    </div>
  );
}

function parsed(text: string): object {
  try {
    return JSON.parse(text);
  } catch {
    throw new Error("Invalid JSON. Check for a missing quote or comma.");
  }
}
