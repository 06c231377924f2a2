// Registered tools and servers of tools: added, tried and removed. A header's value may be a
// secret of the Worker, by its name alone.

import { useState } from "preact/hooks";
import type { Operations } from "session-agent";
import { Button, Check, Empty, Field, Heading, Name, Select } from "../ui/basics.tsx";
import { Pending } from "../ui/pending.tsx";
import { Dialog, Form } from "../ui/dialog.tsx";
import { openAgent } from "../connection.ts";
import { useLoad } from "../load.ts";
import { tell, tellError } from "../notices.ts";
import { may } from "../rights.ts";
import { counted, shownJson, shownText } from "../text.ts";
import { useWork } from "../ui/work.ts";
import { type Answer, callTool } from "./try_tool.ts";

type Registered = Operations["listTools"]["output"];
type Tool = Registered["tools"][number];
type Server = NonNullable<Registered["servers"]>[number];

const DEPLOYED = "This tool is part of the deployed code or of the defaults for every agent.";

export function Tools({ agent }: { agent: string }) {
  const loaded = useLoad(agent, (signal) => openAgent(agent).listTools({}, { signal }));
  const { data, reload } = loaded;
  const [isAdding, setAdding] = useState(false);
  const [tried, setTried] = useState<Tool | null>(null);
  const mayChange = may("defineTool");
  const remove = async (name: string, { isDeployed = false, restore = false } = {}) => {
    try {
      await openAgent(agent).removeTool({ name, ...(restore && { restore }) });
      tell(restore ? `${name} is there again.` : isDeployed ? `Hid ${name} from this agent.` : `Removed ${name}.`);
      reload();
    } catch (error) {
      tellError(error);
    }
  };
  const servers = data?.servers ?? [];
  const hidden = data?.hidden ?? [];
  return (
    <>
      <Heading
        title="Tools"
        note="What models may call: at an address within TOOL_ORIGINS, behind a service binding, or on a server of the Model Context Protocol."
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
          <p>The memory's own tools need no definition. Add a tool of yours, or a server that has some.</p>
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
              server={server}
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
              <header>
                <b>
                  <Name text={name} />
                </b>
                <span class="badge">hidden</span>
                {mayChange && (
                  <div class="actions">
                    <Button
                      icon="redo"
                      label={`Show ${name} again`}
                      onClick={() => void remove(name, { restore: true })}
                    >
                      Show again
                    </Button>
                  </div>
                )}
              </header>
              <p class="note">{DEPLOYED} This agent's models don't get it.</p>
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

function ServerRow({ server, toolCount, onRemove }: { server: Server; toolCount: number; onRemove?: () => void }) {
  const { name, mcp, problem, needsApproval } = server;
  return (
    <li class="card entry">
      <header>
        <b>
          <Name text={name} />
        </b>
        <span class="badge">server</span>
        <span class="note">
          {counted(toolCount, "tool")}
          {needsApproval && ", each call needs approval"}
        </span>
        {onRemove && (
          <div class="actions">
            <Button kind="quiet" icon="trash" label={`Remove ${name}`} onClick={onRemove} />
          </div>
        )}
      </header>
      <p class="note">
        <Name text={typeof mcp === "string" ? mcp : shownJson(mcp)} />
      </p>
      {problem != null && (
        <p class="problem" role="alert">
          {shownText(problem)}
        </p>
      )}
    </li>
  );
}

function ToolRow({ tool, onTry, onRemove }: { tool: Tool; onTry: () => void; onRemove?: () => void }) {
  const { name, description, url, service, server, needsApproval, headers, isChanged, isDeployed } = tool;
  return (
    <li class="card entry">
      <header>
        <b>
          <Name text={name} />
        </b>
        {needsApproval && <span class="badge">needs approval</span>}
        {isChanged && <span class="badge">changed since you saw it</span>}
        <div class="actions">
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
        </div>
      </header>
      <p>{shownText(description)}</p>
      {isDeployed && <p class="note">{DEPLOYED} Removing it hides it from this agent alone.</p>}
      <p class="note">
        {server != null ? (
          <>
            of the server <Name text={server} />
          </>
        ) : (
          <Name text={url ?? service ?? ""} />
        )}
        {headers && Object.keys(headers).length > 0 && `, with ${Object.keys(headers).join(", ")}`}
      </p>
    </li>
  );
}

type Place = "url" | "service" | "mcp" | "mcpService";

function Add({ agent, onClose, onDone }: { agent: string; onClose: () => void; onDone: () => void }) {
  const [place, setPlace] = useState<Place>("url");
  const [name, setName] = useState("");
  const [description, setDescription] = useState("");
  const [address, setAddress] = useState("");
  const [parameters, setParameters] = useState('{"type": "object", "properties": {}}');
  const [needsApproval, setNeedsApproval] = useState(true);
  const [header, setHeader] = useState("authorization");
  const [secret, setSecret] = useState("");
  const [isBusy, run] = useWork();
  const isServer = place === "mcp" || place === "mcpService";
  const add = () =>
    run(async () => {
      const headers = secret.trim() === "" ? {} : { headers: { [header.trim()]: `secret:${secret.trim()}` } };
      const where =
        place === "mcp"
          ? { mcp: address.trim() }
          : place === "mcpService"
            ? { mcp: { service: address.trim() } }
            : { [place]: address.trim() };
      const shape = isServer ? {} : { description, parameters: parsed(parameters) };
      const input = { name: name.trim(), needsApproval, ...where, ...shape, ...headers };
      const defined = await openAgent(agent).defineTool(input as never);
      const told = defined as { problem?: string | null; tools?: readonly unknown[] | null };
      tell(
        told.problem
          ? `Added, but the server says: ${told.problem}`
          : isServer
            ? `Added a server with ${counted(told.tools?.length ?? 0, "tool")}.`
            : "Added.",
      );
      onDone();
    });
  return (
    <Dialog title="Add a tool" onClose={onClose} isWide>
      <Form onSubmit={add} onClose={onClose} submit="Add" isBusy={isBusy}>
        <Select
          label="Where"
          value={place}
          options={[
            ["url", "a tool at an address"],
            ["service", "a tool behind a service binding"],
            ["mcp", "a server of tools at an address (MCP)"],
            ["mcpService", "a server of tools behind a service binding (MCP)"],
          ]}
          onChange={setPlace}
        />
        <Field label="Name" value={name} onInput={setName} required autofocus />
        <Field
          label={place === "url" || place === "mcp" ? "Address" : "Binding"}
          value={address}
          onInput={setAddress}
          required
          hint={
            place === "url" || place === "mcp" ? "Its origin must be in TOOL_ORIGINS." : "As wrangler.toml names it."
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
              hint="A model reads it."
            />
            <Field label="Parameters, as JSON Schema" value={parameters} onInput={setParameters} rows={4} />
          </>
        )}
        <Field label="Header" value={header} onInput={setHeader} />
        <Field
          label="Name of the secret for it"
          value={secret}
          onInput={setSecret}
          placeholder="no header"
          hint="TOOL_SECRETS says which secret goes to which origin. The value itself is never entered here."
        />
        <Check label="Each call needs the user's approval" isOn={needsApproval} onChange={setNeedsApproval} />
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
            Each call of this tool needs a user's approval, and there is no conversation here to ask in. Ask for it in a
            conversation, or define the tool without approval to try it.
          </p>
        </div>
      ) : (
        <Form
          onSubmit={() => run(async () => setAnswer(await callTool(agent, tool.name, parsed(input))))}
          onClose={onClose}
          submit="Call"
          isBusy={isBusy}
        >
          <p class="note">The tool is called for real, with what you write here.</p>
          <Field label="Input, as JSON" value={input} onInput={setInput} rows={4} />
          {answer?.kind === "refused" && <PageRefused text={answer.text} />}
          {answer !== null && answer.kind !== "refused" && (
            <div role="status">
              <p class="note">{answer.kind === "failed" ? "The tool failed:" : "The tool answered:"}</p>
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
          <b>This Worker takes no calls of tools from a page.</b> It lets everybody in, so any page of the web could
          make them. One of these helps:
        </p>
        <ul>
          <li>
            On your own machine, start it with <code>npm start</code>. It then lets in this machine alone.
          </li>
          <li>
            Set the secret <code>SESSION_AGENT_TOKEN</code>, and enter it in the console.
          </li>
          <li>Ask for the tool in a conversation: there the agent calls it.</li>
        </ul>
        <p class="note">The Worker says: {shownText(text)}</p>
      </div>
    </div>
  );
}

function parsed(text: string): object {
  try {
    return JSON.parse(text);
  } catch {
    throw new Error("This is not JSON. Look for a missing quote or comma.");
  }
}
