// The time to the first piece of an answer: through this Worker, through the chat peer, and from
// the model alone, turn by turn. The model answers at once, so the time is the overhead before its
// answer. Results: results/first_token.md.
//
//   npm run bench -- first_token

import { say, startModel } from "../tests/workerd/model_server.mjs";
import { openChatPeer, turnOfAgent, turnOfModel } from "./frame/chat.mjs";
import { startFrame } from "./frame/frame.mjs";
import { bars, machine, ms, report, table } from "./frame/report.mjs";
import { median, quantile } from "./frame/stats.mjs";

const ROUNDS = 60;
const ANSWER = ["It ", "rains ", "in ", "Oslo, ", "as ", "it ", "often ", "does."];

const model = await startModel();
const frame = await startFrame({
  targets: ["AGENT", "CHAT_PEER"],
  vars: { MODEL: "openai:test", OPENAI_BASE_URL: model.url, OPENAI_API_KEY: "a bench's key" },
});
const peer = await openChatPeer(frame.urls.CHAT_PEER, "bench");

const ways = {
  "the model alone": () => turnOfModel(model.url),
  "this Worker": () => turnOfAgent(frame.urls.AGENT, "bench", "s"),
  "the chat peer": () => peer.turn(),
};
const figures = Object.fromEntries(Object.keys(ways).map((name) => [name, []]));
for (let round = -5; round < ROUNDS; round += 1) {
  for (const [name, turn] of Object.entries(ways)) {
    model.next(say(...ANSWER));
    const figure = await turn();
    if (round >= 0) figures[name].push(figure);
  }
}
peer.close();
await frame.stop();
await model.stop();

const rows = Object.entries(figures).map(([name, turns]) => {
  const first = turns.map((turn) => turn.first);
  return [name, ms(median(first)), ms(quantile(first, 0.95)), ms(median(turns.map((turn) => turn.whole)))];
});
await report(
  "first_token",
  [
    "# Time to the first token",
    "",
    `By \`npm run bench -- first_token\`: ${ROUNDS} turns each, in turn, in milliseconds, in one session that grows by them. The model is a stand-in that answers at once.`,
    machine(),
    "",
    ...table(["who answers", "first token, p50", "first token, p95", "whole answer, p50"], rows),
  ],
  {
    "": bars({
      title: "Time to the first token",
      unit: "milliseconds, p50 and p95; less is better",
      series: ["p50", "p95"],
      groups: Object.entries(figures).map(([name, turns]) => ({
        name,
        bars: [0.5, 0.95].map((share) =>
          quantile(
            turns.map(({ first }) => first),
            share,
          ),
        ),
      })),
      show: ms,
    }),
  },
);
process.exit(0);
