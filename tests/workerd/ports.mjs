// Reserves ports for servers that start listening later.

import { once } from "node:events";
import { createServer } from "node:net";

/** Systems assign ports from 32768 on to connections. Lower ports are never assigned by chance. */
const FROM = 20_000;
const COUNT = 12_000;

/** Listens on a free port. After closing this server, the caller may use the port, or one after it. */
export async function reservePort() {
  for (;;) {
    const server = createServer().listen(FROM + Math.floor(Math.random() * COUNT), "127.0.0.1");
    try {
      await once(server, "listening");
      return server;
    } catch (error) {
      if (error.code !== "EADDRINUSE") throw error;
    }
  }
}
