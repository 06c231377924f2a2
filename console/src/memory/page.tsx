import type { ComponentChildren } from "preact";
import { Heading } from "../ui/basics.tsx";

export function MemoryPage({ children }: { children: ComponentChildren }) {
  return (
    <section class="page">
      <Heading isFirst title="Memory" note="Blocks that stand in the system prompt of every session of this agent." />
      {children}
    </section>
  );
}
