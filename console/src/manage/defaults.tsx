// The deployed defaults, and those of them that this agent has put aside.

import { Heading, Name } from "../ui/basics.tsx";
import { Pending } from "../ui/pending.tsx";
import { Table } from "../ui/table.tsx";
import { openAgent } from "../connection.ts";
import { useLoad } from "../load.ts";
import { hashOf } from "../route.ts";

const SHOWN: Readonly<Record<string, string>> = {
  agent: "set for this agent",
  defaults: "deployed for all agents",
};

export function Defaults({ agent }: { agent: string }) {
  const loaded = useLoad(agent, (signal) => openAgent(agent).getConfig({}, { signal }));
  const { data } = loaded;
  const { origins = {}, problems = [], ...config } = (data ?? {}) as Record<string, any>;
  const set = Object.entries(config).filter(([name]) => origins[name] === "agent" || origins[name] === "defaults");
  return (
    <>
      <Heading
        title="Defaults"
        note="agent-defaults.json and AGENT_DEFAULTS say what holds for every agent. An agent's own value goes before them."
      />
      <Pending of={loaded} what="the settings" />
      {problems.length > 0 && (
        <p class="problem" role="alert">
          {problems.length} deployed settings have mistakes and are left out.{" "}
          <a href={hashOf({ view: "settings", agent })}>Settings</a> say which.
        </p>
      )}
      {data && set.length === 0 && <p class="hint">Nothing is deployed and nothing is set: all is as built in.</p>}
      {set.length > 0 && (
        <Table label="What is set" columns={["Setting", "Value", "From"]}>
          {set.map(([name, value]) => (
            <tr key={name}>
              <td>
                <code>{name}</code>
              </td>
              <td>
                <Name text={typeof value === "string" ? value : JSON.stringify(value)} />
              </td>
              <td>
                <span class={`badge ${origins[name]}`}>{SHOWN[origins[name]]}</span>
              </td>
            </tr>
          ))}
        </Table>
      )}
      {data && (
        <p class="hint">
          What is not in the list is as built in. <a href={hashOf({ view: "settings", agent })}>Settings</a> change an
          agent's own values, and give them up.
        </p>
      )}
    </>
  );
}
