// The source of a text that a model has an adapter write.

import { ForbiddenError } from "./errors.js";

/** Writes as the agent. A token that may not say so writes in its own name. */
export async function asAgent<Answer>(write: (source: { source?: "agent" }) => Promise<Answer>): Promise<Answer> {
  try {
    return await write({ source: "agent" });
  } catch (error) {
    if (!(error instanceof ForbiddenError) || error.details.field !== "source") throw error;
  }
  return await write({});
}
