// A URL that stays the same while the Worker behind it is killed and restarted on another port, for
// clients that reconnect by themselves.
//
//   const proxy = await startProxy(server);
//   after(() => proxy.stop());
//   connect(proxy.url)

import { once } from "node:events";
import { connect, createServer } from "node:net";

export async function startProxy(server) {
  const open = new Set();
  const listener = createServer((client) => {
    const { hostname, port } = new URL(server.url);
    const worker = connect(Number(port), hostname);
    for (const [one, other] of [
      [client, worker],
      [worker, client],
    ]) {
      open.add(one);
      one.pipe(other);
      one.on("error", () => other.destroy());
      one.on("close", () => {
        open.delete(one);
        other.destroy();
      });
    }
  });
  listener.listen(0, "127.0.0.1");
  await once(listener, "listening");
  return {
    url: `http://127.0.0.1:${listener.address().port}/`,
    stop: async () => {
      for (const socket of open) socket.destroy();
      await new Promise((resolve) => listener.close(resolve));
    },
  };
}
