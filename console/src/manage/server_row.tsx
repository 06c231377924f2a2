// A server of tools. A person may have to authorize the agent, on a page of the server that opens in a
// new tab.

import { useEffect, useState } from "preact/hooks";
import type { Operations } from "session-agent";
import { Button, Name } from "../ui/basics.tsx";
import { openAgent } from "../connection.ts";
import { useEvery } from "../load.ts";
import { notify } from "../notices.ts";
import { counted, shownJson, shownText } from "../text.ts";
import { useWork } from "../ui/work.ts";
import { EntryHeader } from "./entry_header.tsx";

/** How often the page asks whether the person has authorized the server. */
const CHECK_MS = 2_000;

/** How long the address to open is valid. */
const ADDRESS_MS = 10 * 60_000;

/** The fields of a server's definition. */
const FIELDS = ["name", "mcp", "needsApproval", "headers", "oauth", "timeoutMs", "maxOutputBytes"];

interface Props {
  agent: string;
  server: NonNullable<Operations["listTools"]["output"]["servers"]>[number];
  toolCount: number;
  reload: () => void;
  onRemove?: () => void;
}

export function ServerRow({ agent, server, toolCount, reload, onRemove }: Props) {
  const { name, mcp, problem, needsApproval, needsAuthorization } = server;
  /** The address to open, once the authorization has started. */
  const [url, setUrl] = useState("");
  const [isBusy, run] = useWork();
  useEvery(CHECK_MS, reload, url !== "");
  useEffect(() => {
    if (url === "") return;
    const timer = setTimeout(() => setUrl(""), ADDRESS_MS);
    return () => clearTimeout(timer);
  }, [url]);
  useEffect(() => {
    if (url === "" || needsAuthorization) return;
    setUrl("");
    notify(`${name} is authorized.`);
  }, [needsAuthorization]);
  const authorize = () =>
    run(async () => {
      const given = Object.entries(server).filter(([field, value]) => value != null && FIELDS.includes(field));
      const defined = await openAgent(agent).defineTool(Object.fromEntries(given) as never);
      const { authorizationUrl } = defined as { authorizationUrl?: string | null };
      if (/^https?:/i.test(authorizationUrl ?? "")) setUrl(authorizationUrl!);
      reload();
    });
  return (
    <li class="card entry">
      <EntryHeader
        name={name}
        badges={["server", needsAuthorization && "needs authorization"]}
        note={`${counted(toolCount, "tool")}${needsApproval ? ", calls need approval" : ""}`}
      >
        {onRemove && (
          <>
            {url !== "" ? (
              <a class="button main" href={url} target="_blank" rel="noopener noreferrer nofollow">
                Sign in at {shownText(new URL(url).host)}
              </a>
            ) : (
              needsAuthorization && (
                <Button icon="key" label={`Authorize ${name}`} onClick={authorize} disabled={isBusy}>
                  Authorize
                </Button>
              )
            )}
            <Button kind="quiet" icon="trash" label={`Remove ${name}`} onClick={onRemove} />
          </>
        )}
      </EntryHeader>
      <p class="note">
        <Name text={typeof mcp === "string" ? mcp : shownJson(mcp)} />
      </p>
      {needsAuthorization && toolCount > 0 && (
        <p class="note">
          Authorizing registers the server again and accepts its current tools, including changed ones.
        </p>
      )}
      {problem != null && (
        <p class="problem" role="alert">
          {shownText(problem)}
        </p>
      )}
    </li>
  );
}
