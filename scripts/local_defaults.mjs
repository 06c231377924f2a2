// The defaults of agents under `npm start`: a memory, facts, and learning, so that a fresh agent
// remembers facts. A deployment has its own defaults.

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

const DEFAULTS = {
  blocks: [
    {
      label: "memory",
      kind: "writable",
      description: "What matters in every conversation",
      maxTokens: 1100,
      // After a change, other conversations see the new text in their next turn.
      whenChanged: "remind",
    },
    { label: "facts", kind: "searchable", description: "Learned facts about the user" },
  ],
  learn: { into: "facts", review: "auto" },
};

/** The arguments of wrangler; none where this folder has defaults of its own. */
export function localDefaults(root) {
  const matches = (file, pattern) =>
    existsSync(join(root, file)) && pattern.test(readFileSync(join(root, file), "utf8"));
  const isSet = /^\s*(AGENT_DEFAULTS|MEMORY_BLOCKS)\s*=/m;
  const hasOwn = existsSync(join(root, "agent-defaults.json"));
  if (hasOwn || matches("wrangler.toml", isSet) || matches(".dev.vars", isSet)) return [];
  return ["--var", `AGENT_DEFAULTS:${JSON.stringify(DEFAULTS)}`];
}
