// Access of this package's modules to the object that they run in.

import type { HookedObject } from "./hooks.js";

/** What a class can do inside its own object. */
export interface Inside {
  /** Runs an operation with all rights. If nothing must be awaited, it is complete when this returns. */
  call(operation: string, input: object): Promise<any>;
  /** Reads synchronously. Throws if the read must wait. */
  now(operation: string, input: object): any;
  /** A request to this agent with the rights of a turn of this session. */
  fetch(sessionId: string, url: string, init: RequestInit): Promise<Response>;
  readonly hooked: HookedObject;
  readonly state: any;
  readonly env: any;
}

const KNOWN = new WeakMap<object, Inside>();

export const open = (object: object, inside: Inside): void => void KNOWN.set(object, inside);

/** Throws if the class of `object` doesn't extend `SessionAgent`. */
export function insideOf(object: object): Inside {
  const inside = KNOWN.get(object);
  if (inside === undefined)
    throw new TypeError("This requires an object whose class extends `SessionAgent`. Inside the class, pass `this`.");
  return inside;
}
