import { Heading } from "../ui/basics.tsx";
import { Memory } from "./memory.tsx";

export function MemoryPage({ agent, label }: { agent: string; label: string | undefined }) {
  return (
    <section class="page">
      <Heading isFirst title="Memory" note="Blocks that stand in the system prompt of every session of this agent." />
      <Memory agent={agent} session={undefined} label={label} />
    </section>
  );
}
