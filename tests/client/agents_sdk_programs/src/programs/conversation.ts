// memory-docs, "Conversation history".

import type { Session } from "session-agent/worker";

/** Blocks 1 and 2. */
export async function history(session: Session) {
  // Append messages as the conversation progresses
  await session.appendMessage({
    id: `user-${crypto.randomUUID()}`,
    role: "user",
    parts: [{ type: "text", text: "What's the status of the deployment?" }],
  });
  // Read the full conversation history
  const history = session.getHistory();
  return history;
}

export function search(session: Session) {
  const results = session.search("deployment Friday", { limit: 10 });
  return results;
}
