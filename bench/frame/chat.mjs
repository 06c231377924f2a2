// Chat turns as a client sees them: of this Worker over HTTP, of the chat peer over its
// own socket, and the model's stream without either.

const USER = "What is the weather like?";
const message = () => ({ id: crypto.randomUUID(), role: "user", parts: [{ type: "text", text: USER }] });

/** The milliseconds to the first piece of text, and to the end. */
export async function turnOfAgent(url, agent, sessionId) {
  const body = JSON.stringify({ id: sessionId, message: message() });
  return await timed((arrived) =>
    streamed(new URL(`/agents/session-agent/${agent}/chat`, url), body, '"text-delta"', arrived),
  );
}

export async function turnOfModel(url) {
  const body = JSON.stringify({ model: "test", stream: true, messages: [{ role: "user", content: USER }] });
  return await timed((arrived) => streamed(`${url}/chat/completions`, body, '"content"', arrived));
}

/** Opens a socket to the chat peer. `turn()` measures as the functions above. */
export async function openChatPeer(url, name) {
  const address = new URL(`/agents/chat-peer/${name}`, url);
  address.protocol = "ws:";
  const socket = new WebSocket(address);
  await new Promise((resolve, reject) => {
    socket.addEventListener("open", resolve);
    socket.addEventListener("error", reject);
  });
  const turn = () =>
    timed(
      (arrived) =>
        new Promise((resolve, reject) => {
          const id = crypto.randomUUID();
          const listen = ({ data }) => {
            const part = JSON.parse(data);
            if (part.type !== "cf_agent_use_chat_response" || part.id !== id) return;
            if (part.error) reject(new Error(part.body));
            if (part.body?.includes('"text-delta"')) arrived();
            if (!part.done) return;
            socket.removeEventListener("message", listen);
            resolve();
          };
          socket.addEventListener("message", listen);
          const body = JSON.stringify({ messages: [message()], trigger: "submit-message" });
          socket.send(JSON.stringify({ type: "cf_agent_use_chat_request", id, init: { method: "POST", body } }));
        }),
    );
  return { turn, close: () => socket.close() };
}

async function timed(work) {
  const start = performance.now();
  let first;
  await work(() => (first ??= performance.now() - start));
  if (first === undefined) throw new Error("an answer without a text");
  return { first, whole: performance.now() - start };
}

async function streamed(url, body, sign, arrived) {
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: "Bearer a bench's key" },
    body,
  });
  if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);
  let received = "";
  for await (const text of response.body.pipeThrough(new TextDecoderStream())) {
    received += text;
    if (received.includes(sign)) arrived();
  }
}
