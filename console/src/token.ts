// The claims of a token. They are readable, and signed by the Worker.

export interface Rights {
  /** The only session that the token may use. */
  session: string | null;
  /** The operations that the token names. `null`: it names none. */
  operations: readonly string[] | null;
  /** The models that a turn may name. `null`: any. */
  models: readonly string[] | null;
  /** Whether the token may purge, by the operations that it names. */
  purges: boolean;
}

/** The rights of a caller who has the secret, or needs no credential. */
export const ALL: Rights = { session: null, operations: null, models: null, purges: true };

/** The rights that a token claims. `null` for the secret, and for a text that is not a token. */
export function rightsOf(text: string | null): Rights {
  const [prefix, claims] = text?.split(".") ?? [];
  if (!prefix?.startsWith("sa") || claims === undefined) return ALL;
  try {
    const bytes = Uint8Array.from(atob(claims.replaceAll("-", "+").replaceAll("_", "/")), (character) =>
      character.charCodeAt(0),
    );
    const { sessionId, operations, allow } = JSON.parse(new TextDecoder().decode(bytes));
    return {
      session: typeof sessionId === "string" ? sessionId : null,
      operations: textsOf(operations),
      models: textsOf(allow?.models) ?? [],
      purges: allow?.purge === true,
    };
  } catch {
    return ALL;
  }
}

function textsOf(list: unknown): string[] | null {
  return Array.isArray(list) ? list.filter((text) => typeof text === "string") : null;
}

/** The operations that always require the secret. */
const OF_THE_SECRET = new Set([
  ...["configureAgent", "applyRetention", "mintToken", "defineTool", "removeTool"],
  ...["listAgents", "searchAgents", "eraseAgents", "backup", "listBackups", "restoreBookmark"],
]);

/** The operations that change prompts: a token without a list of operations does not allow them. */
const TO_BE_NAMED = new Set([
  ...[
    "defineBlock",
    "removeBlock",
    "setBlock",
    "revertBlock",
    "setEntry",
    "deleteEntry",
    "putSkill",
    "loadSkill",
    "deleteSkill",
    "erase",
    ...["learn", "consolidate", "decideProposal", "revertProposal"],
  ],
  ...["freezePrompt", "refreshPrompt", "compact", "deleteCompaction"],
]);

/** The operations that a token of one session does not allow. */
const OF_THE_WHOLE_AGENT = new Set(["getConfig", "getStats", "forkSession", "getProposals", "listTools"]);

export function allows(rights: Rights, operation: string): boolean {
  if (rights === ALL) return true;
  if (operation === "erase" && !rights.purges) return false;
  if (OF_THE_SECRET.has(operation) || (rights.session !== null && OF_THE_WHOLE_AGENT.has(operation))) return false;
  return rights.operations === null ? !TO_BE_NAMED.has(operation) : rights.operations.includes(operation);
}
