// Client methods that combine several operations or add fields: a missing block, an entry without a key,
// several messages, a whole context.

import type { WorkingContext } from "./context.js";
import { BlockNotFoundError } from "./errors.js";
import type {
  AppendedMessages,
  AppendMessagesInput,
  AppendOutcome,
  Entry,
  Block,
  PersistWorkingContextInput,
  SetBlockInput,
  SetEntryInput,
} from "./operations.js";
import type { CallOptions } from "./options.js";

/** Runs an operation, as `call` of an agent or a session does. */
type Run = (operation: string, input: object, options?: CallOptions) => Promise<any>;

/** With a `kind`, a missing block is defined first. */
export interface SetBlock extends SetBlockInput {
  kind?: "writable";
  /** If the block is defined by this call: a line that its header in the prompt shows. */
  description?: string;
  /** If the block is defined by this call: its budget. */
  maxTokens?: number;
}

/** Without a `key`, the client generates one. */
export interface SetEntry extends Omit<SetEntryInput, "key"> {
  key?: string;
}

export interface AppendMessages extends Omit<AppendMessagesInput, "sessionId" | "messages"> {
  messages: Iterable<object>;
}

export async function setBlock(
  run: Run,
  { kind, description, maxTokens, ...input }: SetBlock,
  options?: CallOptions,
): Promise<Block> {
  const defined = {
    kind,
    ...(description !== undefined && { description }),
    ...(maxTokens !== undefined && { maxTokens }),
  };
  // Without a kind, the agent checks the other two fields.
  if (kind === undefined) return await run("setBlock", { ...input, ...defined }, options);
  try {
    return await run("setBlock", input, options);
  } catch (error) {
    if (!(error instanceof BlockNotFoundError)) throw error;
  }
  const { label, sessionId } = input;
  await run("defineBlock", { label, ...(sessionId != null && { sessionId }), ...defined }, options);
  return await run("setBlock", input, options);
}

export async function setEntry(run: Run, input: SetEntry, options?: CallOptions): Promise<Entry> {
  return await run("setEntry", { ...input, key: input.key ?? crypto.randomUUID() }, options);
}

export async function appendMessages(
  run: Run,
  { messages, ...position }: AppendMessages,
  options?: CallOptions,
): Promise<AppendedMessages> {
  const list = [...messages];
  if (list.length === 0) return { messages: [], leafId: null };
  return await run("appendMessages", { messages: list, ...position }, options);
}

/** Writes the messages that were added to the context since it was built or last written. */
export async function persistWorkingContext(
  run: Run,
  input: Omit<PersistWorkingContextInput, "sessionId"> | WorkingContext,
  options?: CallOptions,
): Promise<AppendOutcome> {
  if (!("getNewMessages" in input)) return await run("persistWorkingContext", input, options);
  const messages = input.getNewMessages();
  const { leafId } = input;
  if (messages.length === 0) return { events: [], leafId: leafId ?? null };
  const outcome: AppendOutcome = await run(
    "persistWorkingContext",
    { messages, ...(leafId !== undefined && { expectedLeafId: leafId }) },
    options,
  );
  input.written(messages.length, outcome.leafId);
  return outcome;
}
