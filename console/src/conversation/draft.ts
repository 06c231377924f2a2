// The draft of one step of a conversation: a copy of the state, and the effects to run.

import type { Effect, State } from "./state.ts";

type Changing = { -readonly [Field in keyof State]: State[Field] };

export class Draft {
  readonly state: Changing;
  readonly effects: Effect[] = [];

  constructor(state: State) {
    this.state = { ...state };
  }

  do(effect: Effect): void {
    this.effects.push(effect);
  }

  /** The number for a new request. */
  request(): number {
    this.state.next += 1;
    return this.state.next - 1;
  }

  resolve(tickets: readonly (number | null)[], value: boolean): void {
    for (const ticket of tickets) if (ticket !== null) this.do({ do: "resolve", ticket, value });
  }

  abort(request: number | null | undefined): void {
    if (typeof request === "number") this.do({ do: "abort", request });
  }

  awaitConnection(): number {
    const request = this.request();
    this.do({ do: "await connection", request });
    return request;
  }
}
