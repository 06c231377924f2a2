// Reserves ports for servers that start listening later.

import { once } from "node:events";
import { createServer } from "node:net";

/** Systems give connections ports from 32768 on. Below, nobody takes a port by chance. */
const FROM = 20_000;
const COUNT = 12_000;

/** Listens at a port that was free. Who closes this server may take the port, or one after it, later. */
export async function takePort() {
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
