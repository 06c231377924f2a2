// The failed turns of a session, and the messages that they belong to.

import type { UiMessage } from "session-agent";
import type { Conversation } from "../conversation/conversation.ts";
import { openAgent } from "../connection.ts";
import { useLoad } from "../load.ts";
import type { TurnRecord } from "./rows.ts";

/** The number of failed turns that a session records. */
const MAX_FAILURES = 16;

const NONE: readonly TurnRecord[] = [];

/** The failed turns of a session, newest first. */
export function useFailures(conversation: Conversation, key: string, isWanted: boolean): readonly TurnRecord[] {
  const { data } = useLoad(`${conversation.id}/${key}/${isWanted}`, async (signal) => {
    if (!isWanted) return [];
    const session = openAgent(conversation.agentName, { isQuiet: true }).session(conversation.id);
    return (await session.getTurns({ failed: true, limit: MAX_FAILURES }, { signal })).turns;
  });
  return data ?? NONE;
}

/**
 * The failures by message: the interrupted answer, or the user's message if no answer follows it.
 */
export function failuresByMessage(
  messages: readonly UiMessage[],
  failures: readonly TurnRecord[],
): ReadonlyMap<string, TurnRecord> {
  const found = new Map<string, TurnRecord>();
  for (const turn of failures) {
    const at =
      turn.messageId == null
        ? messages.findLastIndex(
            ({ role, createdAt }) => role === "user" && (createdAt ?? 0) <= (turn.startedAt ?? turn.endedAt),
          )
        : messages.findIndex(({ id }) => id === turn.messageId);
    const message = messages[at];
    const isAnswered = message?.role === "user" && messages[at + 1]?.role === "assistant";
    // The newest failure of a message comes first.
    if (message !== undefined && !isAnswered && !found.has(message.id)) found.set(message.id, turn);
  }
  return found;
}
