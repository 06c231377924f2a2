// Positional arguments of operations, as in the Agents SDK's documentation: `loadEvents(id, { limit })`
// instead of `loadEvents({ sessionId, limit })`.

/** The positional fields, in order. `...`: an object with further fields. */
const ORDER: { [operation: string]: string[] } = {
  getSession: ["sessionId"],
  deleteSession: ["sessionId"],
  loadEvents: ["sessionId", "..."],
  appendEvents: ["sessionId", "events"],
  deleteEvents: ["sessionId", "eventIds"],
  buildWorkingContext: ["sessionId", "..."],
  persistWorkingContext: ["sessionId", "messages"],
};

/** The fields of `createSession`. An object with none of them is metadata. */
const OF_SESSION = ["id", "name", "metadata", "parentSessionId", "pinned", "retention", "tags"];

export interface CallArguments {
  input: unknown;
  /** The options of the call, if there are any. */
  options: unknown[];
  /** Whether the method returns only the session's id, as in the documentation. */
  wantsId: boolean;
}

/** The input of an operation, from the arguments of its method. */
export function readGiven(operation: string, given: unknown[]): CallArguments {
  const [first, ...rest] = given;
  const order = ORDER[operation];
  const sessionId = order && idOf(first);
  if (order !== undefined && sessionId !== undefined) {
    const input: { [field: string]: unknown } = {};
    for (const [n, field] of order.slice(1).entries()) {
      if (field === "...") Object.assign(input, rest[n]);
      else input[field] = rest[n];
    }
    return { input: { ...input, sessionId }, options: rest.slice(order.length - 1), wantsId: false };
  }
  if (operation === "createSession" && rest.length === 0 && isMetadata(first))
    return { input: { metadata: first }, options: rest, wantsId: true };
  return { input: first, options: rest, wantsId: false };
}

export function idOf(given: any): string | undefined {
  if (typeof given === "string") return given;
  return typeof given?.id === "string" && typeof given.agentId === "string" ? given.id : undefined;
}

function isMetadata(given: unknown): boolean {
  if (!isPlain(given)) return false;
  const fields = Object.keys(given);
  return fields.length > 0 && !fields.some((field) => OF_SESSION.includes(field));
}

export function isPlain(given: unknown): given is { [field: string]: unknown } {
  if (typeof given !== "object" || given === null) return false;
  const prototype = Object.getPrototypeOf(given);
  return prototype === Object.prototype || prototype === null;
}

/** The error for an input that is not an object. `required`: the operation's required fields. */
export function usageMessage(operation: string, required: string[]): string {
  const order = ORDER[operation];
  const shown = `\`${operation}(${required.length === 0 ? "{}" : `{ ${required.join(", ")} }`})\``;
  const beside = order ? ` or \`${operation}(${order.map((field) => field.replace("...", "{ … }")).join(", ")})\`` : "";
  return `\`${operation}\` requires an object that contains only JSON values: ${shown}${beside}.`;
}
