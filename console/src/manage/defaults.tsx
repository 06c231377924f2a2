// What is deployed for every agent, and what of it this agent has put aside.

import { Heading, Loading, Name, Problem } from "../ui/basics.tsx";
import { openAgent } from "../connection.ts";
import { useLoad } from "../load.ts";
import { hashOf } from "../route.ts";

const SHOWN: Readonly<Record<string, string>> = {
  agent: "set for this agent",
  defaults: "deployed for all agents",
};

export function Defaults({ agent }: { agent: string }) {
  const { data, error, reload } = useLoad(agent, (signal) => openAgent(agent).getConfig({}, { signal }));
  const { origins = {}, problems = [], ...config } = (data ?? {}) as Record<string, any>;
  const set = Object.entries(config).filter(([name]) => origins[name] === "agent" || origins[name] === "defaults");
  return (
    <>
      <Heading
        title="Defaults"
        note="agent-defaults.json and AGENT_DEFAULTS say what holds for every agent. An agent's own value goes before them."
      />
      {error !== undefined && <Problem error={error} retry={reload} />}
      {data === undefined && error === undefined && <Loading what="the settings" />}
      {problems.length > 0 && (
        <p class="problem" role="alert">
          {problems.length} deployed settings have mistakes and are left out.{" "}
          <a href={hashOf({ view: "settings", agent })}>Settings</a> say which.
        </p>
      )}
      {data && set.length === 0 && <p class="hint">Nothing is deployed and nothing is set: all is as built in.</p>}
      {set.length > 0 && (
        <div class="table" tabIndex={0} role="region" aria-label="What is set">
          <table>
            <thead>
              <tr>
                <th scope="col">Setting</th>
                <th scope="col">Value</th>
                <th scope="col">From</th>
              </tr>
            </thead>
            <tbody>
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
            </tbody>
          </table>
        </div>
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
