// What one turn sends to a model, in memory. It is built from events, grows during the
// turn, and is thrown away. Only what the turn added is written back.

import { eventToMessage } from "./events.js";

export class WorkingContext {
  #given;

  constructor(systemInstructions = [], messages = [], metadata = {}) {
    this.systemInstructions = systemInstructions;
    this.messages = messages;
    this.metadata = metadata;
    this.#given = messages.length;
  }

  addMessage(message) {
    this.messages.push(message);
  }

  /** The messages that were added since the context was built. */
  getNewMessages() {
    return this.messages.slice(this.#given);
  }
}

/** A context of these events. `eventToMessage` may be your own; `null` leaves an event out. */
export function buildWorkingContext(events, { systemInstructions = [], eventToMessage: mapper = eventToMessage } = {}) {
  const messages = events.map((event) => mapper(event)).filter((message) => message !== null);
  return new WorkingContext([...systemInstructions], messages);
}
