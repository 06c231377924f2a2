// memory-docs, "Context memory": each function is a program, as printed.

import { AgentSearchProvider, R2SkillProvider, Session } from "session-agent/worker";
import { type Env, generateEmbedding } from "../env";
import type { Documented } from "../index";

/** Block 3. */
export function readonly(this: Documented) {
  const session = Session.create(this).withContext("soul", {
    provider: {
      get: async () =>
        "You are a senior TypeScript engineer. You write concise, " +
        "well-tested code. You prefer composition over inheritance. " +
        "When you are unsure, you say so rather than guessing.",
    },
  });
  return session;
}

/** Block 4. */
export function fromBucket(this: Documented, env: Env) {
  const session = Session.create(this).withContext("soul", {
    provider: {
      get: async () => {
        const obj = await env.CONFIG_BUCKET.get("soul.md");
        return obj ? obj.text() : "You are a helpful assistant.";
      },
    },
  });
  return session;
}

/** Block 5. */
export function writable(this: Documented) {
  const session = Session.create(this)
    .withContext("memory", {
      description: "Important facts learned during conversation",
      maxTokens: 1100,
    })
    .withContext("todos", {
      description: "Task list, track what needs to be done and what is complete",
      maxTokens: 2000,
    });
  return session;
}

/** Block 7. */
export function searchable(this: Documented) {
  const session = Session.create(this).withContext("knowledge", {
    description: "Searchable knowledge base, search for relevant information before answering",
    provider: new AgentSearchProvider(this),
  });
  return session;
}

/** Block 8. */
export function searchableElsewhere(this: Documented, env: Env) {
  const session = Session.create(this).withContext("knowledge", {
    description: "Searchable knowledge base",
    provider: {
      get: async () => "Product documentation and FAQs",
      search: async (query) => {
        // Use Vectorize, an external API, whatever you need
        const results = await env.VECTORIZE_INDEX.query(await generateEmbedding(query), { topK: 5 });
        return results.matches.map((m) => m.metadata.text).join("\n\n");
      },
      set: async (key, content) => {
        // Index new content
        this.indexed.push([key, content]);
      },
    },
  });
  return session;
}

/** Block 11. */
export function skills(this: Documented, env: Env) {
  const session = Session.create(this)
    .withContext("soul", {
      provider: {
        get: async () =>
          [
            "You are a helpful assistant with access to skills.",
            "When a user asks you to do something, check the SKILLS section",
            "for a relevant skill and use load_context to load it.",
          ].join("\n"),
      },
    })
    .withContext("memory", {
      description: "Learned facts",
      maxTokens: 1100,
    })
    .withContext("skills", {
      provider: new R2SkillProvider(env.SKILLS_BUCKET, { prefix: "skills/" }),
    })
    .withCachedPrompt();
  return session;
}

/** Block 14. */
export async function describe(env: Env, content: string) {
  await env.SKILLS_BUCKET.put("skills/api-ref", content, {
    customMetadata: { description: "API Reference documentation" },
  });
}
