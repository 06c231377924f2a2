// A browser tab without a browser: React in a happy-dom document, with `useAgent` and
// `useAgentChat` as in a page, over Node's WebSocket.
//
//   const tab = await openTab(server, "agent");
//   await tab.chat.sendMessage({ text: "Hi" });
//   await tab.reaches(({ chat }) => chat.status === "ready");
//   await tab.close();

import { Window } from "happy-dom";
import { until } from "./chat_server.mjs";

const page = new Window({ url: "http://127.0.0.1/" });
// React requires a document when it is loaded. Everything else is Node's.
Object.assign(globalThis, { window: page, document: page.document });

const { createElement, Suspense, useEffect } = await import("react");
const { createRoot } = await import("react-dom/client");
const { useAgent } = await import("agents/react");
const { useAgentChat } = await import("agents/chat/react");
export { useAgent, useAgentChat, useEffect };

/** `query` is added to the socket's URL and to the URL of the history. */
export async function openTab(server, name, { query, ...chatOptions } = {}) {
  const host = new URL(server.url).host;
  return await rendered(() => {
    const agent = useAgent({ agent: "SessionAgent", name, host, protocol: "ws", query });
    return { agent, chat: useAgentChat({ agent, throttle: false, ...chatOptions }) };
  });
}

/**
 * Opens a page on the server's host. `use(given)` calls the hooks and returns `{ agent, chat }`;
 * `agent` is `undefined` if the page has no socket.
 */
export async function openPage(server, use, given) {
  const { fetch } = globalThis;
  page.happyDOM.setURL(server.url);
  // A page resolves relative addresses against its own.
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
  /** The results of `useAgent` and `useAgentChat` at the last rendering. */
  agent;
  chat;
  /** The errors that React did not recover from. */
  errors = [];
  onClose = () => {};

  open(hooks) {
    const tab = this;
    function Chat() {
      Object.assign(tab, hooks());
      tab.#notify();
      return null;
    }
    const onError = (error) => this.errors.push(error);
    this.#root = createRoot(page.document.createElement("div"), {
      onUncaughtError: onError,
      onRecoverableError: onError,
    });
    this.#root.render(createElement(Suspense, { fallback: null }, createElement(Chat)));
  }

  get messages() {
    return this.chat.messages;
  }

  /** Waits until `holds` accepts the tab. */
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
      () =>
        JSON.stringify({ status: this.chat?.status, error: this.chat?.error?.message, messages: this.chat?.messages }),
    );
  }

  /** Closes the tab like leaving a page: the socket is closed without a message to the server. */
  async close() {
    this.#root.unmount();
    this.agent?.close();
    this.onClose();
  }

  #notify() {
    // After the rendering and its effects.
    setImmediate(() => this.#listeners.forEach((check) => check()));
  }
}
