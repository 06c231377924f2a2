// The operator's views of an agent: retention, personal data, tools, tokens, and learned facts.

import type { FunctionComponent } from "preact";
import { Empty } from "../ui/basics.tsx";
import { Tabs } from "../ui/tabs.tsx";
import { may } from "../rights.ts";
import { hashOf, type ManagePart } from "../route.ts";
import { Agents } from "./agents.tsx";
import { Compaction } from "./compaction.tsx";
import { Copies } from "./copies.tsx";
import { Defaults } from "./defaults.tsx";
import { People } from "./people.tsx";
import { Proposals } from "./proposals.tsx";
import { Retention } from "./retention.tsx";
import { Tokens } from "./tokens.tsx";
import { Tools } from "./tools.tsx";

interface Part {
  title: string;
  /** The operation without which the part shows nothing. */
  needs: string;
  View: FunctionComponent<{ agent: string }>;
}

const PARTS: Readonly<Record<ManagePart, Part>> = {
  proposals: { title: "Proposals", needs: "getProposals", View: Proposals },
  retention: { title: "Retention", needs: "applyRetention", View: Retention },
  people: { title: "Personal data", needs: "findMentions", View: People },
  tools: { title: "Tools", needs: "listTools", View: Tools },
  tokens: { title: "Tokens", needs: "mintToken", View: Tokens },
  compaction: { title: "Compaction", needs: "configureCompaction", View: Compaction },
  copies: { title: "Backups", needs: "backup", View: Copies },
  defaults: { title: "Defaults", needs: "getConfig", View: Defaults },
  agents: { title: "Agents", needs: "listAgents", View: Agents },
};

export function Manage({ agent, part }: { agent: string; part: ManagePart }) {
  const open = (Object.keys(PARTS) as ManagePart[]).filter((name) => may(PARTS[name].needs));
  const { View } = PARTS[part];
  return (
    <section class="page manage">
      <h1 class="hidden">Manage</h1>
      <Tabs
        label="Manage"
        tabs={open.map((name) => ({
          text: PARTS[name].title,
          href: hashOf({ view: "manage", agent, part: name }),
          isOpen: name === part,
        }))}
      />
      {open.includes(part) ? (
        <View key={part} agent={agent} />
      ) : (
        <Empty title="Your token can't open this page" icon="key">
          <p>It requires the Worker's secret or a token that allows `{PARTS[part].needs}`.</p>
        </Empty>
      )}
    </section>
  );
}
