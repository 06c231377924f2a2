// How the parts of this package reach the object that they work in.

import type { HookedObject } from "./hooks.js";

/** The rights and the means of a class inside its own object. */
export interface Inside {
  /** Runs an operation with all rights. Where nothing has to be waited for, it has run when this returns. */
  call(operation: string, input: object): Promise<any>;
  /** Reads, and waits for nothing. Throws where the read has to wait. */
  now(operation: string, input: object): any;
  /** A request to this agent with the rights of a turn of this session. */
  fetch(sessionId: string, url: string, init: RequestInit): Promise<Response>;
  readonly hooked: HookedObject;
  readonly state: any;
  readonly env: any;
}

const KNOWN = new WeakMap<object, Inside>();

export const open = (object: object, inside: Inside): void => void KNOWN.set(object, inside);

/** Throws where `object` is not one whose class extends `SessionAgent`. */
export function insideOf(object: object): Inside {
  const inside = KNOWN.get(object);
  if (inside === undefined)
    throw new TypeError("This requires an object whose class extends `SessionAgent`. Inside the class, pass `this`.");
  return inside;
}
