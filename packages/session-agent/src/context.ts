// The input of a model in one turn, in memory. It is built from events, grows during the turn, and is
// discarded. Only the messages that the turn added are written.

import { eventToMessage, type ModelMessage, type ModelEvent } from "./events.js";
import type { SessionEvent } from "./operations.js";

export interface ContextBuilderOptions<Event = SessionEvent> {
  systemInstructions?: string[];
  /** Converts an event into a message for the model; `null` omits the event. */
  eventToMessage?: (event: Event) => ModelMessage | null;
  /**
   * The leaf that the context ends at, which `persistWorkingContext` expects. Set it if the events
   * are not the newest of their session. Default: the last event, if there is one.
   */
  leafId?: string | null;
}

/** The input of a model in one turn, in memory. */
export class WorkingContext {
  systemInstructions: string[];
  messages: ModelMessage[];
  metadata: { [field: string]: any };
  /** The leaf that the context ends at. `undefined`: unknown, so it is not checked. */
  leafId: string | null | undefined;
  #given: number;

  constructor(
    systemInstructions: string[] = [],
    messages: ModelMessage[] = [],
    metadata: { [field: string]: any } = {},
  ) {
    this.systemInstructions = systemInstructions;
    this.messages = messages;
    this.metadata = metadata;
    this.#given = messages.length;
  }

  addMessage(message: ModelMessage): void {
    this.messages.push(message);
  }

  /** The messages that were added since the context was built, or last written. */
  getNewMessages(): ModelMessage[] {
    return this.messages.slice(this.#given);
  }

  /** Counts that many of the new messages as written. They end at `leafId`. */
  written(count: number, leafId: string | null): void {
    this.#given += count;
    this.leafId = leafId;
  }
}

/** Builds a context from events. `eventToMessage` may be your own; `null` omits an event. */
export function buildWorkingContext<Event extends ModelEvent & { id: string } = SessionEvent>(
  events: readonly Event[],
  {
    systemInstructions = [],
    eventToMessage: mapper = eventToMessage,
    leafId = events.at(-1)?.id,
  }: ContextBuilderOptions<Event> = {},
): WorkingContext {
  const messages = events.map((event) => mapper(event)).filter((message) => message !== null);
  const context = new WorkingContext([...systemInstructions], messages);
  context.leafId = leafId;
  return context;
}
