import { Heading } from "../ui/basics.tsx";
import { Memory } from "./memory.tsx";

interface Props {
  agent: string;
  label: string | undefined;
  entry: string | undefined;
}

export function MemoryPage({ agent, label, entry }: Props) {
  return (
    <section class="page">
      <Heading isFirst title="Memory" note="Blocks in the system prompt of every session of this agent." />
      <Memory agent={agent} session={undefined} label={label} entry={entry} />
    </section>
  );
}
