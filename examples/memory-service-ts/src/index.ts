// A home for blocks of memory, kept in Workers KV: whoever answers these four
// POSTs of JSON keeps blocks. Deploy it, bind it to Session Agent as `NOTES`, and
// define a block with `"source": {"service": "NOTES"}`.

interface Env {
  NOTES_KV: KVNamespace;
}

interface Asked {
  agent: string;
  sessionId: string | null;
  label: string;
  kind: "readonly" | "writable" | "searchable" | "loadable";
  // With `set`; a text has no key, an entry and a document have one.
  content?: string;
  key?: string;
  title?: string | null;
  description?: string | null;
  // With `search`.
  query?: string;
  limit?: number;
}

interface Kept {
  title: string | null;
  description: string | null;
}

export default {
  async fetch(request: Request, env: Env): Promise<Response> {
    const path = new URL(request.url).pathname.slice(1);
    const asked = (await request.json()) as Asked;
    // Each part is encoded, so that no name reaches into another's.
    const block = [asked.agent, asked.sessionId ?? "", asked.label].map(encodeURIComponent).join("/");
    const place = asked.key === undefined ? block : `${block}/${encodeURIComponent(asked.key)}`;
    switch (path) {
      case "get":
        return Response.json(await get(env.NOTES_KV, block, asked.kind));
      case "set":
        await env.NOTES_KV.put(place, asked.content ?? "", {
          metadata: { title: asked.title ?? null, description: asked.description ?? null } satisfies Kept,
        });
        return Response.json({});
      case "search":
        return Response.json({ results: await search(env.NOTES_KV, block, asked.query ?? "", asked.limit ?? 10) });
      case "load": {
        const { value, metadata } = await env.NOTES_KV.getWithMetadata<Kept>(place);
        if (value === null) return new Response("no such document", { status: 404 });
        return Response.json({ content: value, description: metadata?.description ?? null });
      }
      default:
        return new Response("no such request", { status: 404 });
    }
  },
};

async function get(kv: KVNamespace, block: string, kind: Asked["kind"]) {
  if (kind === "readonly" || kind === "writable") return { content: await kv.get(block) };
  const { keys } = await kv.list<Kept>({ prefix: `${block}/` });
  if (kind === "searchable") return { content: `${keys.length} notes.` };
  return { skills: keys.map(({ name, metadata }) => ({ key: keyOf(block, name), description: metadata?.description ?? null })) };
}

/** Notes that hold any of the query's words, those with more of them first. */
async function search(kv: KVNamespace, block: string, query: string, limit: number) {
  const words = query.toLowerCase().split(/[^\p{L}\p{N}]+/u).filter((word) => word !== "");
  const { keys } = await kv.list<Kept>({ prefix: `${block}/`, limit: 100 });
  const found = await Promise.all(
    keys.map(async ({ name, metadata }) => {
      const content = (await kv.get(name)) ?? "";
      const text = `${metadata?.title ?? ""} ${content}`.toLowerCase();
      const score = words.filter((word) => text.includes(word)).length;
      return { key: keyOf(block, name), title: metadata?.title ?? null, content, score };
    }),
  );
  return found.filter(({ score }) => score > 0).sort((a, b) => b.score - a.score).slice(0, limit);
}

function keyOf(block: string, name: string): string {
  return decodeURIComponent(name.slice(block.length + 1));
}
