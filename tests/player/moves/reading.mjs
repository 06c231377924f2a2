// Moves that read: a session, its context, a search, the feed.

import { isDeepStrictEqual } from "node:util";
import { show } from "../compare.mjs";
import { AGENTS } from "../game.mjs";
import { callsOf, textOf } from "../model.mjs";
import { SHAPES, unpaired } from "../pairs.mjs";
import { move, somePosition, withSession } from "./shared.mjs";

move(
  6,
  "read a session",
  withSession(async (game, dice, { agent, session }) => {
    const seq = dice.one(2) ? session.leaf : somePosition(dice, session) || session.leaf;
    if (seq === 0) {
      const { messages } = await game.read(agent, "getHistory", { sessionId: session.id });
      return game.hold(messages.length === 0, () => `an empty session shows ${show(messages)}`);
    }
    const sessionId = session.id;
    const leafId = session.idOf(seq);
    const expected = session.history(seq);
    const messages = [];
    const limit = 1 + dice.roll(7);
    for (let before = null; ; ) {
      const page = await game.read(agent, "getHistory", { sessionId, leafId, limit, ...(before && { before }) });
      messages.unshift(...page.messages);
      before = page.cursor;
      game.hold(
        page.messages.length <= limit && page.truncated === (before !== null),
        () => `a page of ${limit}: ${show(page)}`,
      );
      if (before === null) break;
    }
    assertMessages(game, messages, expected);
    const length = session.history(seq, { withOverlays: false }).length;
    const counted = await game.read(agent, "getPathLength", { sessionId, leafId });
    game.hold(counted.length === length, () => `getPathLength ${leafId} answers ${counted.length}, not ${length}`);
    const shown = dice.roll(expected.length);
    if (expected[shown].seqs === undefined) return;
    const { seqs, id } = expected[shown];
    const isComplete = isDeepStrictEqual(session.messageAt(seqs[0]), seqs);
    // Only a path that leaves a message shows a part of it: the leaf is inside it, or a user
    // continued before a result arrived.
    const next = session.path(seq)[session.path(seq).indexOf(seqs.at(-1)) + 1];
    game.hold(
      isComplete || next === undefined || !session.isRun(next),
      () => `the history of ${leafId} shows ${seqs} as ${id}, whose events are ${session.messageAt(seqs[0])}`,
    );
    if (isComplete) {
      const single = await game.read(agent, "getMessage", { sessionId, messageId: id });
      game.hold(
        isDeepStrictEqual(single, messages[shown]),
        () => `getMessage ${id} answers ${show(single)}, and the history has ${show(messages[shown])}`,
      );
      const branches = await game.read(agent, "getBranches", { sessionId, messageId: id });
      const children = session.children(seqs.at(-1)).map((child) => session.idOf(child));
      game.hold(
        isDeepStrictEqual(
          branches.messages.map((one) => one.id),
          children,
        ),
        () => `getBranches ${id} answers ${show(branches.messages.map((one) => one.id))}, not ${children}`,
      );
    }
  }),
);

function assertMessages(game, messages, expected) {
  const ids = messages.map(({ id }) => id);
  game.hold(
    isDeepStrictEqual(
      ids,
      expected.map(({ id }) => id),
    ),
    () => `the history shows ${ids}, not ${expected.map(({ id }) => id)}`,
  );
  expected.forEach(({ overlay, role, text, calls }, at) => {
    const found = messages[at];
    game.hold(textOf(found) === text, () => `message ${found.id} says ${show(textOf(found))}, not ${show(text)}`);
    if (overlay) return;
    game.hold(found.role === role, () => `message ${found.id} is of ${found.role}, not ${role}`);
    const actual = callsOf(found).map(({ id, output }) => [id, output]);
    const wanted = calls.map(({ id, output }) => [id, output]);
    game.hold(
      isDeepStrictEqual(actual, wanted),
      () => `message ${found.id} has the calls ${show(actual)}, not ${show(wanted)}`,
    );
  });
}

move(
  5,
  "buildWorkingContext",
  withSession(async (game, dice, { agent, session }) => {
    const seq = dice.one(2) ? session.leaf : somePosition(dice, session) || session.leaf;
    const format = dice.pick([undefined, "openai", "anthropic", "workers-ai"]);
    const limit = 1 + dice.roll(dice.one(2) ? 6 : 60);
    const maxTokens = dice.one(2) ? 1_500 + dice.roll(6_000) : undefined;
    const body = {
      sessionId: session.id,
      limit,
      ...(format && { format }),
      ...(maxTokens && { maxTokens }),
      ...(seq !== 0 && { leafId: session.idOf(seq) }),
      ...(dice.one(3) && session.memory.frozen && game.agents[agent].memory.frozen && { memory: true }),
    };
    const context = await game.read(agent, "buildWorkingContext", body);
    const wrong = unpaired(context.messages, SHAPES.plain);
    game.hold(wrong === null, () => `buildWorkingContext ${show(body)}: ${wrong}: ${show(context.messages)}`);
    if (format !== undefined) {
      const wrong = unpaired(context.modelInput.messages, SHAPES[format]);
      game.hold(
        wrong === null,
        () => `buildWorkingContext ${show(body)}: ${wrong}: ${JSON.stringify(context.modelInput.messages)}`,
      );
    }
    game.hold(context.leafId === session.idOf(seq), () => `the context's leaf is ${context.leafId}`);
    if (maxTokens !== undefined)
      game.hold(
        context.tokensEstimate <= maxTokens,
        () => `a context of ${context.tokensEstimate} tokens, for ${maxTokens}`,
      );
    const newest = seq === 0 ? undefined : session.history(seq).at(-1);
    if (newest?.role === "user" && newest.text.trim() !== "")
      game.hold(
        JSON.stringify(context.messages).includes(newest.text.split(/\s/)[0]),
        () => `the newest message ${show(newest.text)} is not in its context ${show(context.messages)}`,
      );
  }),
);

move(
  2,
  "search",
  withSession(async (game, dice, { agent, session }) => {
    const { sessions } = game.agents[agent];
    const matching = [...session.events.values()].filter(({ content }) => /\bw[0-9a-z]+q\b/u.test(content ?? ""));
    if (matching.length === 0) return;
    const [word] = dice.pick(matching).content.match(/\bw[0-9a-z]+q\b/u);
    const narrowed = dice.one(2);
    let found;
    do {
      found = await game.read(agent, "search", { query: word, limit: 100, ...(narrowed && { sessionId: session.id }) });
      game.agents[agent].isSearched = true;
    } while (found.pending);
    const containsWord = (event) =>
      new RegExp(`\\b${word}\\b`, "u").test(JSON.stringify([event.content, event.toolCalls, event.message?.parts]));
    const expected = sessions
      .filter((one) => !narrowed || one === session)
      .flatMap((one) =>
        [...one.events].filter(([, event]) => containsWord(event)).map(([seq]) => `${one.id}/${one.idOf(seq)}`),
      )
      .sort();
    const hits = found.results.map(({ sessionId, id }) => `${sessionId}/${id}`).sort();
    game.hold(isDeepStrictEqual(hits, expected), () => `search ${word} finds ${hits}, not ${expected}`);
  }),
);

move(
  4,
  "follow the feed",
  withSession(async (game, dice, { agent, session }) => {
    const key = `${agent} ${session.id}`;
    if (game.followers.get(key)?.session !== session.incarnation) game.followers.delete(key);
    let follower = game.followers.get(key) ?? { cursor: 0, messages: new Map(), session: session.incarnation };
    game.followers.set(key, follower);
    const sessionId = session.id;
    const limit = 1 + dice.roll(20);
    for (;;) {
      const page = await game.look(agent, "getChanges", { sessionId, since: follower.cursor, limit });
      game.hold(page.status === 200, () => `getChanges answers ${show(page.body)}`);
      // After the session was recreated, a feed reader is told to drop its copy, and then receives
      // everything.
      const [first] = page.body.changes;
      if (first?.type === "clear" && first.cursor <= follower.cursor) {
        game.hold(follower.cursor !== 0, () => "the feed begins with a clear");
        follower = { cursor: first.cursor - 1, messages: new Map(), session: session.incarnation };
        game.followers.set(key, follower);
      }
      for (const { cursor, type, id } of page.body.changes) {
        game.hold(cursor > follower.cursor, () => `the feed's cursor goes from ${follower.cursor} to ${cursor}`);
        follower.cursor = cursor;
        if (type === "clear") follower.messages.clear();
        else if (type === "delete") follower.messages.delete(id);
        else if (type !== "compaction") {
          const read = await game.read(agent, "getMessage", { sessionId, messageId: id });
          if (read === null) follower.messages.delete(id);
          else follower.messages.set(id, read);
        }
      }
      if (page.body.changes.length === 0) break;
    }
    const messages = new Map();
    for (const id of session.ids) {
      const read = await game.read(agent, "getMessage", { sessionId, messageId: id });
      if (read !== null) messages.set(id, read);
    }
    const sorted = (map) => [...map].sort(([a], [b]) => (a < b ? -1 : 1));
    game.hold(
      isDeepStrictEqual(sorted(follower.messages), sorted(messages)),
      () => `a follower of the feed has ${show(sorted(follower.messages))}, and the session ${show(sorted(messages))}`,
    );
  }),
);

move(3, "look at all", async (game, dice) => await game.audit(dice.roll(AGENTS)));
