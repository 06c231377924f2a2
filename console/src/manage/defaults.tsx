// The deployed defaults, and those that this agent overrides.

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
        note="The defaults for every agent, from agent-defaults.json and AGENT_DEFAULTS. An agent's own settings override them."
      />
      <Pending of={loaded} what="the settings" />
      {problems.length > 0 && (
        <p class="problem" role="alert">
          {problems.length} deployed settings are invalid and ignored. See{" "}
          <a href={hashOf({ view: "settings", agent })}>Settings</a>.
        </p>
      )}
      {data && set.length === 0 && (
        <p class="hint">No defaults are deployed and no settings are changed. The agent uses the built-in settings.</p>
      )}
      {set.length > 0 && (
        <Table label="Changed settings" columns={["Setting", "Value", "From"]}>
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
          All other settings have their built-in values. To change or reset the agent's own values, open{" "}
          <a href={hashOf({ view: "settings", agent })}>Settings</a>.
        </p>
      )}
    </>
  );
}
