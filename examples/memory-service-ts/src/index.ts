// A backend that stores blocks of memory in R2. A backend is a Worker that answers the POST requests
// below with JSON. Deploy this one, bind it to Session Agent as `NOTES`, and define a block with
// `"source": {"service": "NOTES"}`. Add `"modelWrites": true` if the model may write the block.

interface Env {
  NOTES_BUCKET: R2Bucket;
}

interface BlockRequest {
  agent: string;
  sessionId: string | null;
  label: string;
  kind: "readonly" | "writable" | "searchable" | "loadable";
  // With `set`. Entries and documents have a key, and the text of a writable block has none.
  content?: string;
  key?: string;
  title?: string | null;
  description?: string | null;
  // The `version` that `get` returned for the text that `content` replaces.
  expectedVersion?: string;
  // With `search`.
  query?: string;
  limit?: number;
}

/** The version of a text that doesn't exist. */
const NOTHING = "";

export default {
  async fetch(request: Request, env: Env): Promise<Response> {
    const path = new URL(request.url).pathname.slice(1);
    const input = (await request.json()) as BlockRequest;
    // Each part is encoded, so that no two blocks share an object key.
    const block = [input.agent, input.sessionId ?? "", input.label].map(encodeURIComponent).join("/");
    const objectKey = input.key === undefined ? block : `${block}/${encodeURIComponent(input.key)}`;
    switch (path) {
      case "get":
        return Response.json(await get(env.NOTES_BUCKET, block, input.kind));
      case "set": {
        const put = await env.NOTES_BUCKET.put(objectKey, input.content ?? "", {
          customMetadata: { title: input.title ?? "", description: input.description ?? "" },
          onlyIf: condition(input.expectedVersion),
        });
        // The text has changed since it was read. Session Agent reads it again and retries.
        if (put === null) return new Response("the text has another version", { status: 409 });
        return Response.json({});
      }
      case "search":
        return Response.json({ results: await search(env.NOTES_BUCKET, block, input.query ?? "", input.limit ?? 10) });
      case "load": {
        const object = await env.NOTES_BUCKET.get(objectKey);
        if (object === null) return new Response("no such document", { status: 404 });
        return Response.json({ content: await object.text(), description: object.customMetadata?.description || null });
      }
      case "delete": {
        if ((await env.NOTES_BUCKET.head(objectKey)) === null) return new Response("no such text", { status: 404 });
        await env.NOTES_BUCKET.delete(objectKey);
        return new Response(null, { status: 204 });
      }
      default:
        return new Response("no such request", { status: 501 });
    }
  },
};

function condition(version: string | undefined): R2Conditional | undefined {
  if (version === undefined) return undefined;
  return version === NOTHING ? { etagDoesNotMatch: "*" } : { etagMatches: version };
}

async function get(bucket: R2Bucket, block: string, kind: BlockRequest["kind"]) {
  if (kind === "readonly" || kind === "writable") {
    const object = await bucket.get(block);
    if (object === null) return { content: null, version: NOTHING };
    return { content: await object.text(), version: object.etag };
  }
  const objects = await list(bucket, block);
  if (kind === "searchable") return { content: `${objects.length} notes.` };
  return {
    skills: objects.map(({ key, customMetadata }) => ({
      key: keyOf(block, key),
      description: customMetadata?.description || null,
    })),
  };
}

/** The notes that contain at least one word of the query. Those with the most words come first. */
async function search(bucket: R2Bucket, block: string, query: string, limit: number) {
  const words = query
    .toLowerCase()
    .split(/[^\p{L}\p{N}]+/u)
    .filter((word) => word !== "");
  const objects = await list(bucket, block);
  const found = await Promise.all(
    objects.map(async ({ key, customMetadata }) => {
      const object = await bucket.get(key);
      const content = (await object?.text()) ?? "";
      const title = customMetadata?.title || null;
      const text = `${title ?? ""} ${content}`.toLowerCase();
      const score = words.filter((word) => text.includes(word)).length;
      return { key: keyOf(block, key), title, content, score };
    }),
  );
  return found
    .filter(({ score }) => score > 0)
    .sort((a, b) => b.score - a.score)
    .slice(0, limit);
}

/** The first 100 objects. For more, read further pages. */
async function list(bucket: R2Bucket, block: string) {
  const { objects } = await bucket.list({ prefix: `${block}/`, limit: 100, include: ["customMetadata"] });
  return objects;
}

function keyOf(block: string, name: string): string {
  return decodeURIComponent(name.slice(block.length + 1));
}
