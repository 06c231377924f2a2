// The source of texts that adapters write for a model.

import { ForbiddenError } from "./errors.js";

/** Writes with the source `agent`. A token without this permission writes with its own source. */
export async function asAgent<Answer>(write: (source: { source?: "agent" }) => Promise<Answer>): Promise<Answer> {
  try {
    return await write({ source: "agent" });
  } catch (error) {
    if (!(error instanceof ForbiddenError) || error.details.field !== "source") throw error;
  }
  return await write({});
}
