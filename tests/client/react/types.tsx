// The hooks' types with a class's own tools. react_types.test.mjs compiles this file.

import { tool } from "ai";
import { SessionAgent } from "session-agent/worker";
import {
  type ChatMessage,
  type ToolsOf,
  useAgent,
  useMemory,
  useProposals,
  useSession,
  useSessions,
  useTurns,
} from "session-agent/react";
import { z } from "zod";

class Assistant extends SessionAgent {
  tools() {
    return {
      weather: tool({
        description: "The weather of a city",
        inputSchema: z.object({ city: z.string() }),
        execute: async ({ city }) => ({ city, celsius: 3 }),
      }),
      pay: tool({
        description: "Pays an invoice",
        inputSchema: z.object({ invoice: z.string(), amount: z.number() }),
        needsApproval: true,
        execute: async function* ({ invoice }) {
          yield `Paying ${invoice}.`;
        },
      }),
    };
  }
}

type Equal<One, Other> = (<T>() => T extends One ? 1 : 2) extends <T>() => T extends Other ? 1 : 2 ? true : false;
const holds = <Is extends true>(_is?: Is) => {};

export function Page() {
  const agent = useAgent<typeof Assistant>({ login: async () => ({ agent: "alice", token: "t", expiresIn: 60 }) });
  const { messages, send, approve, retry, stop, branches } = useSession(agent, "chat");
  for (const part of messages.flatMap((message) => message.parts)) {
    if (part.type === "tool-weather" && part.state === "output-available") {
      const { celsius } = part.output;
      holds<Equal<typeof celsius, number>>();
      holds<Equal<typeof part.input.city, string>>();
      // @ts-expect-error: the tool has no such field
      part.output.wind;
    }
    if (part.type === "tool-pay" && part.state === "approval-requested") {
      holds<Equal<typeof part.input, { invoice: string; amount: number }>>();
      approve(part.approval.id, part.input.amount < 100, "It is little.");
    }
    if (part.type === "tool-pay" && part.state === "output-available") holds<Equal<typeof part.output, string>>();
    // @ts-expect-error: the class has no such tool
    if (part.type === "tool-fly") retry();
    // @ts-expect-error: a call that waits has no output
    if (part.type === "tool-weather" && part.state === "approval-requested") part.output;
  }
  const id: string = send("Hello");
  send({ parts: [{ type: "text", text: "Hello" }] }, { systemInstructions: ["Be brief."] });
  // @ts-expect-error: a message has parts
  send({ text: "Hello" });
  void stop(id);
  holds<Equal<(typeof branches)[number]["role"], "user" | "assistant" | "system">>();

  // An instance type works as well, and a page without a class type has all parts.
  holds<Equal<ToolsOf<Assistant>, ToolsOf<typeof Assistant>>>();
  const plain = useSession(useAgent({ name: "alice", token: () => "t" }), "chat");
  const first: ChatMessage | undefined = plain.messages[0];
  for (const part of first?.parts ?? []) if (part.type === "tool-anything") part.toolCallId satisfies string;
  // @ts-expect-error: a token is a text
  useAgent({ name: "alice", token: 1 });
  // @ts-expect-error: the id of a session, and an agent
  useSession("alice", "chat");

  const { sessions, create } = useSessions(agent, { where: { tags: { all: ["work"] } } });
  create({ name: "A trip" }).created.then((session) => session?.id);
  const { blocks, entries, setBlock } = useMemory(agent, { sessionId: "chat" });
  void setBlock("memory", blocks[0]?.content ?? "", { reason: "A correction" });
  const { proposals, approve: accept } = useProposals(agent);
  void accept(proposals[0]?.id ?? "");
  const { turns } = useTurns(agent, { failed: true });
  return [sessions[0]?.name, entries.facts?.[0]?.content, turns[0]?.failure?.message].join();
}
