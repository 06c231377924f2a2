// memory-docs, "How agents interact with memory" and "Gotchas".

import { convertToModelMessages, generateText, streamText } from "ai";
import { createCompactFunction, Session, truncateOlderMessages } from "session-agent/worker";
import { myApplicationTools, myModel } from "../env";
import type { Documented } from "../index";

/** Block 16. */
export async function turn(session: Session) {
  const sessionTools = await session.tools();
  const allTools = { ...sessionTools, ...myApplicationTools };
  const result = streamText({
    model: myModel,
    system: await session.freezeSystemPrompt(),
    messages: await convertToModelMessages(session.getHistory()),
    tools: allTools,
  });
  return result;
}

/** Block 18. */
export async function cached(this: Documented) {
  const session = Session.create(this)
    .withContext("soul", {
      provider: { get: async () => "You are a helpful assistant." },
    })
    .withContext("memory", { description: "Learned facts", maxTokens: 1100 })
    .withCachedPrompt(); // Persist the frozen prompt across hibernation
  // During a conversation turn:
  const system = await session.freezeSystemPrompt(); // Same value every call
  const tools = await session.tools();
  // ... agent calls set_context to update memory ...
  await tools.set_context!.execute({ label: "memory", content: "Likes tea." });
  // The frozen prompt is NOT changed, prefix cache stays warm
  const during = await session.freezeSystemPrompt();
  // Between turns (optional, if you want the agent to see its own updates):
  await session.refreshSystemPrompt();
  return { system, during, after: await session.freezeSystemPrompt() };
}

/** Block 20. */
export function compacting(this: Documented) {
  const session = Session.create(this)
    .withContext("memory", { maxTokens: 1100 })
    .onCompaction(
      createCompactFunction({
        summarize: (prompt) => generateText({ model: myModel, prompt }).then((r) => r.text),
        protectHead: 3,
        tailTokenBudget: 20000,
        minTailMessages: 2,
      }),
    )
    .compactAfter(100_000); // Auto-compact when token estimate exceeds threshold
  return session;
}

/** Block 21. */
export function truncated(session: Session) {
  const history = session.getHistory();
  const truncated = truncateOlderMessages(history);
  // Pass truncated history to the LLM
  return truncated;
}
