// The peer: `Sessions` of npm's `agents` on a plain Durable Object, as its own guide
// installs it. The operations have the names that this Worker gives them; the peer
// knows messages only, so its events are messages.
//
// Later changes of this Worker are seen against this file. So it stays as it is.

import { DurableObject } from "cloudflare:workers";
import { Lifecycle } from "agents/lifecycle";
import { Sessions } from "agents/sessions";
import { metered } from "./meter.mjs";

class Peer extends DurableObject {
  sessions = new Sessions();
  lifecycle = Lifecycle.install(this).use(this.sessions);
  session = this.sessions.session();

  async fetch(request) {
    const operation = request.url.slice(request.url.lastIndexOf("/") + 1);
    if (operation === "health") return Response.json({ ok: true });
    const input = JSON.parse(await request.text());
    if (!(operation in this.operations)) return new Response(`no operation ${operation}`, { status: 404 });
    return Response.json(await this.operations[operation](input));
  }

  operations = {
    // The peer's object is its one session.
    createSession: async () => ({ leaf: (await this.session.getLatestLeaf()) ?? null }),
    appendMessage: ({ message, parentId }) => this.session.appendMessage(message, parentId === undefined ? {} : { parentId }),
    appendMessages: async ({ messages }) => {
      const results = [];
      for (const message of messages) results.push(await this.session.appendMessage({ id: crypto.randomUUID(), ...message }));
      return results.map(({ inserted, message }) => ({ inserted, id: message.id }));
    },
    updateMessage: ({ message }) => this.session.updateMessage(message),
    getMessage: ({ messageId }) => this.session.getMessage(messageId),
    getLatestLeaf: () => this.session.getLatestLeaf(),
    getBranches: ({ messageId }) => this.session.getBranches(messageId),
    deleteMessages: async ({ messageIds }) => ((await this.session.deleteMessages(messageIds)) ?? {}),
    clearMessages: async () => ((await this.session.clearMessages()) ?? {}),
    search: ({ query, limit }) => this.session.search(query, { limit }),
    /** The newest, from the leaf: reads a row for each message that is taken. */
    getHistory: async ({ limit }) => {
      const messages = [];
      for await (const message of this.session.history({ newestFirst: true })) {
        messages.push(message);
        if (messages.length === limit) break;
      }
      return { messages: messages.reverse() };
    },
    /** The newest, by a budget of bytes: plans the whole path, then reads windows. */
    getRecentHistory: async ({ limit, maxBytes }) => {
      const { messages } = await this.session.getRecentHistory(maxBytes);
      return { messages: messages.slice(-limit) };
    },
  };
}

export class PeerObject extends metered(Peer) {}

export default {
  async fetch(request, env) {
    const { pathname } = new URL(request.url);
    if (pathname === "/health") return Response.json({ ok: true });
    return env.OBJECT.getByName(decodeURIComponent(pathname.split("/")[3])).fetch(request);
  },
};
