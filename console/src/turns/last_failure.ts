import type { Conversation } from "../conversation/conversation.ts";
import { openAgent } from "../connection.ts";
import { useLoad } from "../load.ts";
import type { TurnRecord } from "./rows.ts";

/** The newest turn of a session, if it failed. */
export function useLastFailure(conversation: Conversation, key: string, isWanted: boolean): TurnRecord | null {
  const { data } = useLoad(`${conversation.id}/${key}/${isWanted}`, async (signal) => {
    if (!isWanted) return null;
    const session = openAgent(conversation.agentName, { isQuiet: true }).session(conversation.id);
    const { turns } = await session.getTurns({ limit: 1 }, { signal });
    return turns[0] ?? null;
  });
  return data?.failure ? data : null;
}
