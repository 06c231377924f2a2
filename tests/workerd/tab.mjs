// A browser's tab without a browser: React in a document of happy-dom's, with
// `useAgent` and `useAgentChat` as a page has them, over Node's own WebSocket.
//
//   const tab = await openTab(server, "agent");
//   await tab.chat.sendMessage({ text: "Hi" });
//   await tab.reaches(({ chat }) => chat.status === "ready");
//   await tab.close();

import { Window } from "happy-dom";
import { until } from "./chat_server.mjs";

const page = new Window({ url: "http://127.0.0.1/" });
// React looks for a document when it is loaded; everything else is Node's.
Object.assign(globalThis, { window: page, document: page.document });

const { createElement, Suspense } = await import("react");
const { createRoot } = await import("react-dom/client");
const { useAgent } = await import("agents/react");
const { useAgentChat } = await import("agents/chat/react");

/** `query` goes with the socket's address and, with it, where the history is asked for. */
export async function openTab(server, name, { query, ...chatOptions } = {}) {
  const host = new URL(server.url).host;
  return await rendered(() => {
    const agent = useAgent({ agent: "SessionAgent", name, host, protocol: "ws", query });
    return { agent, chat: useAgentChat({ agent, throttle: false, ...chatOptions }) };
  });
}

/**
 * A page that the server's own host serves: `use(given)` calls the hooks and gives
 * `{ agent, chat }`, where `agent` is `undefined` without a socket.
 */
export async function openPage(server, use, given) {
  const { fetch } = globalThis;
  page.happyDOM.setURL(server.url);
  // A page's addresses are relative to the page's own.
  globalThis.fetch = (url, init) => fetch(url instanceof Request ? url : new URL(url, server.url), init);
  const tab = await rendered(() => use(given));
  tab.onClose = () => (globalThis.fetch = fetch);
  return tab;
}

async function rendered(hooks) {
  const tab = new Tab();
  tab.open(hooks);
  await tab.reaches(({ agent, chat }) => chat !== undefined && (agent === undefined || agent.identified === true));
  return tab;
}

class Tab {
  #root;
  #listeners = new Set();
  /** What `useAgent` and `useAgentChat` gave at the last rendering. */
  agent;
  chat;
  /** What the hooks could not recover from. */
  errors = [];
  onClose = () => {};

  open(hooks) {
    const tab = this;
    function Chat() {
      Object.assign(tab, hooks());
      tab.#tell();
      return null;
    }
    const onError = (error) => this.errors.push(error);
    this.#root = createRoot(page.document.createElement("div"), { onUncaughtError: onError, onRecoverableError: onError });
    this.#root.render(createElement(Suspense, { fallback: null }, createElement(Chat)));
  }

  get messages() {
    return this.chat.messages;
  }

  /** Until what the tab shows is such. */
  async reaches(holds) {
    await until(
      () => {
        if (this.errors.length > 0) throw this.errors[0];
        return holds(this);
      },
      (check) => {
        this.#listeners.add(check);
        return () => this.#listeners.delete(check);
      },
      () => JSON.stringify({ status: this.chat?.status, error: this.chat?.error?.message, messages: this.chat?.messages }),
    );
  }

  /** As when the page is left: the socket is closed, nothing is said to the server. */
  async close() {
    this.#root.unmount();
    this.agent?.close();
    this.onClose();
  }

  #tell() {
    // After the rendering, when its effects have run too.
    setImmediate(() => this.#listeners.forEach((check) => check()));
  }
}
