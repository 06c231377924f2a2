// Moves that an operation must refuse.

import { message, move, withSession } from "./shared.mjs";

move(
  3,
  "what operations refuse",
  withSession(async (game, dice, { agent, session }) => {
    const sessionId = session.id;
    const valid = message("m", "user", "x");
    const [operation, body] = dice.pick([
      [
        "appendEvents",
        {
          sessionId: dice.pick([7, {}, [], null, "", "y".repeat(201)]),
          events: [{ action: "user_message", content: "x" }],
        },
      ],
      ["appendEvents", { sessionId, events: dice.pick(["x", 7, {}, null, [7]]) }],
      [
        "appendMessage",
        {
          sessionId,
          message: dice.pick([
            7,
            null,
            [],
            { ...valid, role: "nobody" },
            { ...valid, parts: "x" },
            { ...valid, id: 7 },
          ]),
        },
      ],
      ["updateMessage", { sessionId, message: { ...valid, parts: [7] } }],
      ["getHistory", { sessionId, limit: dice.pick([0, -1, 1001, "5", 1.5]) }],
      ["getHistory", { sessionId, before: "no cursor" }],
      ["loadEvents", { sessionId, actions: ["nothing"] }],
      ["deleteEvents", { sessionId, eventIds: "x" }],
      ["addUsage", { sessionId, inputTokens: dice.pick([-1, 1.5, "1"]) }],
      ["createSession", { metadata: dice.pick([7, [], "x"]) }],
      ["createSession", { id: dice.pick([7, "", "y".repeat(201)]) }],
      ["addCompaction", { sessionId, summary: "", fromId: "a", toId: "b" }],
      ["defineBlock", { label: dice.pick(["", "y".repeat(65), 7]), kind: "writable" }],
      ["defineBlock", { label: "notes", kind: "nothing" }],
      ["buildWorkingContext", { sessionId, format: "nothing" }],
      ["getChanges", { sessionId, limit: 0 }],
      ["search", { query: 7 }],
      ["runTurn", { sessionId, message: { ...valid, role: "assistant" } }],
      ["configureCompaction", { sessionId, protectHead: -1 }],
    ]);
    await game.write(agent, operation, body, () => {}, { refused: ["invalid_request"], dice });
  }),
);
