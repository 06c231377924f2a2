// Moves of the context memory, and of the working context that persists what a turn added.

import { show } from "../compare.mjs";
import { putFact, removeFact } from "../facts.mjs";
import { assertAppended, rowsOf } from "./events.mjs";
import { LABELS, MAX_EVENTS, move, someSession, textFor, withSession } from "./shared.mjs";

/** The agent's memory or a session's. */
async function someMemory(game, dice) {
  const { agent, session } = await someSession(game, dice);
  if (session === null || dice.one(3))
    return { agent, scope: {}, memory: game.agents[agent].memory, of: (model) => model.memory };
  return {
    agent,
    scope: { sessionId: session.id },
    memory: session.memory,
    of: (model) => model.find(session.id).memory,
  };
}

const withMemory = (make) => async (game, dice) => await make(game, dice, await someMemory(game, dice));

async function defineBlock(game, dice, { agent, scope, of }, label) {
  const definition = {
    label,
    kind: LABELS[label],
    description: dice.one(2) ? `About ${game.word()}` : null,
    maxTokens: dice.one(2) ? 500 : null,
    defaultContent: dice.one(2) && ["readonly", "writable"].includes(LABELS[label]) ? `Begin ${game.word()}` : null,
  };
  const body = { ...scope, ...Object.fromEntries(Object.entries(definition).filter(([, value]) => value !== null)) };
  await game.write(agent, "defineBlock", body, (model) => void of(model).blocks.set(label.toLowerCase(), definition), {
    dice,
  });
}

move(
  3,
  "defineBlock",
  withMemory((game, dice, at) => defineBlock(game, dice, at, dice.pick(Object.keys(LABELS)))),
);

move(
  1,
  "removeBlock",
  withMemory(async (game, dice, { agent, scope, of }) => {
    const label = dice.pick(Object.keys(LABELS));
    const purge = dice.one(3);
    const apply = (model) => {
      of(model).blocks.delete(label.toLowerCase());
      if (purge) of(model).contents.delete(label.toLowerCase());
      if (purge) model.forgetPrompts(of(model));
    };
    await game.write(agent, "removeBlock", { ...scope, label, ...(purge && { purge }) }, apply, { dice });
  }),
);

move(
  5,
  "setBlock",
  withMemory(async (game, dice, { agent, scope, memory, of }) => {
    const block = memory.block("notes");
    if (block === undefined) {
      await game.write(agent, "setBlock", { ...scope, label: "notes", content: "x" }, () => {}, {
        refused: ["block_not_found"],
        dice,
      });
      return await defineBlock(game, dice, { agent, scope, of }, "notes");
    }
    const { version } = memory.holds("notes");
    const appends = dice.one(3);
    const content = dice.one(6) ? memory.text("notes") : appends ? ` ${game.word()}` : textFor(game, dice);
    const operation = appends ? "appendToBlock" : "setBlock";
    const text = appends ? memory.text("notes") + content : content;
    if (dice.one(6)) {
      const body = { ...scope, label: "notes", content: game.word(), expectedVersion: version + 1 };
      return await game.write(agent, operation, body, () => {}, { refused: ["version_conflict"], dice });
    }
    if (dice.one(8) && block.maxTokens !== null) {
      return await game.write(
        agent,
        "setBlock",
        { ...scope, label: "notes", content: "word ".repeat(3_000) },
        () => {},
        { refused: ["block_over_budget"], dice },
      );
    }
    if (block.maxTokens !== null && text.length > block.maxTokens) return;
    const body = { ...scope, label: "notes", content, ...(dice.one(2) && { expectedVersion: version }) };
    const answer = await game.write(agent, operation, body, (model) => of(model).write("notes", text), { dice });
    if (answer) game.hold(answer.content === text, () => `${operation} answers ${show(answer)}, not ${show(text)}`);
  }),
);

move(
  2,
  "revertBlock",
  withMemory(async (game, dice, { agent, scope, memory, of }) => {
    const { version, texts } = memory.holds("notes");
    if (memory.block("notes") === undefined || version === 0) return;
    const { versions } = await game.read(agent, "getBlockVersions", { ...scope, label: "notes" });
    const newest = texts.slice(-50).reverse();
    game.hold(
      versions.length === newest.length &&
        versions.every((one, at) => one.content === newest[at] && one.version === version - at),
      () => `getBlockVersions answers ${show(versions)}, not ${show(newest)}`,
    );
    const back = versions[dice.roll(versions.length)];
    await game.write(
      agent,
      "revertBlock",
      { ...scope, label: "notes", version: back.version },
      (model) => of(model).write("notes", back.content),
      { dice },
    );
  }),
);

move(
  1,
  "clearBlocks",
  withMemory(async (game, dice, { agent, scope, of }) => {
    const apply = (model) => {
      for (const [key, { kind, defaultContent }] of of(model).blocks)
        if (kind === "writable") of(model).write(key, defaultContent ?? "");
    };
    await game.write(agent, "clearBlocks", scope, apply, { dice });
  }),
);

const KEYS = ["a", "b", "key c", "é/d"];

move(
  4,
  "entries and documents",
  withMemory(async (game, dice, { agent, scope, memory, of }) => {
    const label = dice.pick(["kb", "skills"]);
    const key = dice.pick(KEYS);
    const [put, remove] = label === "kb" ? ["setEntry", "deleteEntry"] : ["putSkill", "deleteSkill"];
    const items = (model) => of(model).holds(label).items;
    if (memory.block(label) === undefined) {
      await game.write(agent, put, { ...scope, label, key, content: "x" }, () => {}, {
        refused: ["block_not_found"],
        dice,
      });
      return await defineBlock(game, dice, { agent, scope, of }, label);
    }
    if (dice.one(4)) {
      const isThere = memory.holds(label).items.has(key);
      const purge = dice.one(3);
      const apply = (model) => {
        if (label === "kb") removeFact(items(model), key);
        else items(model).delete(key);
        if (purge) model.forgetPrompts(of(model));
      };
      const body = { ...scope, label, key, ...(purge && { purge }) };
      const answer = await game.write(agent, remove, body, apply, { dice });
      if (answer) game.hold(answer.deleted === isThere, () => `${remove} ${key} answers ${show(answer)}`);
      return;
    }
    const content = textFor(game, dice);
    const others = [...memory.holds(label).items.keys()].filter((other) => other !== key);
    const supersedes = label === "kb" && others.length > 0 && dice.one(3) ? [dice.pick(others)] : undefined;
    const tags = dice.one(3) ? (dice.one(3) ? [] : [game.word()]) : undefined;
    const apply = (model) =>
      void (label === "kb"
        ? putFact(items(model), key, content, supersedes, tags)
        : items(model).set(key, { content, tags: tags ?? items(model).get(key)?.tags ?? [] }));
    const body = { ...scope, label, key, content, ...(supersedes && { supersedes }), ...(tags && { tags }) };
    await game.write(agent, put, body, apply, { dice });
    if (label === "kb") await findEntry(game, dice, { agent, scope, memory: of(game.agents[agent]) });
  }),
);

/** A search finds a fact as current unless a later write replaced it, whatever the clock did. */
async function findEntry(game, dice, { agent, scope, memory }) {
  const { items } = memory.holds("kb");
  if (items.size === 0) return;
  const [key, { content, replacedBy, isUnsure, tags = [] }] = dice.pick([...items]);
  const where = tags.length > 0 && dice.one(2) ? { where: { tags: { all: tags } } } : {};
  const { results } = await game.read(agent, "searchContext", {
    ...scope,
    label: "kb",
    query: content.split(/\s/)[0],
    limit: 100,
    ...where,
  });
  const isFound = results.some((entry) => entry.key === key);
  game.hold(
    isUnsure || isFound === (replacedBy === null),
    () =>
      `searchContext for ${show(content)} finds ${show(results)}; ${key} is ${replacedBy === null ? "current" : `replaced by ${replacedBy}`}`,
  );
}

move(
  1,
  "loadSkill",
  withSession(async (game, dice, { agent, session }) => {
    const { memory } = session;
    if (memory.block("skills") === undefined || memory.holds("skills").items.size === 0) return;
    const key = dice.pick([...memory.holds("skills").items.keys()]);
    const answer = await game.look(agent, dice.one(2) ? "loadSkill" : "unloadSkill", {
      sessionId: session.id,
      label: "skills",
      key,
    });
    game.hold(answer.status === 200, () => `a document that is there: ${show(answer)}`);
  }),
);

move(
  2,
  "freezePrompt",
  withMemory(async (game, dice, { agent, scope, memory, of }) => {
    if (dice.one(3)) {
      const { prompt } = await game.read(agent, "renderPrompt", scope);
      const apply = (model, answer) =>
        (of(model).frozen = answer
          ? { prompt: answer.prompt, hash: answer.hash, frozenAt: answer.frozenAt }
          : undefined);
      const answer = await game.write(agent, "refreshPrompt", scope, apply, { dice });
      if (answer)
        game.hold(answer.prompt === prompt, () => `refreshPrompt says ${show(answer.prompt)}, not ${show(prompt)}`);
      return;
    }
    const { frozen } = memory;
    const apply = (model, answer) =>
      (of(model).frozen = answer ? { prompt: answer.prompt, hash: answer.hash, frozenAt: answer.frozenAt } : undefined);
    const answer = await game.write(agent, "freezePrompt", scope, apply, { dice });
    if (!answer) of(game.agents[agent]).frozen = frozen ?? undefined;
    else if (frozen)
      game.hold(
        answer.prompt === frozen.prompt && answer.hash === frozen.hash && answer.frozenAt === frozen.frozenAt,
        () => `the frozen prompt changed: ${show(answer)}, not ${show(frozen)}`,
      );
  }),
);

move(
  1,
  "callTool",
  withMemory(async (game, dice, { agent, scope, memory, of }) => {
    if (memory.block("notes") === undefined) return;
    const text = `Noted ${game.word()}`;
    const apply = (model) => of(model).write("notes", text);
    const answer = await game.write(
      agent,
      "callTool",
      { ...scope, name: "set_context", arguments: { label: "notes", content: text } },
      apply,
      { dice },
    );
    if (answer) game.hold(!answer.isError, () => `callTool answers ${show(answer)}`);
  }),
);

move(
  2,
  "persistWorkingContext",
  withSession(async (game, dice, { agent, session, of }) => {
    if (session.events.size >= MAX_EVENTS) return;
    const id = "call_0";
    const messages = [
      { role: "user", content: textFor(game, dice) },
      { role: "assistant", content: "", toolCalls: [{ id, name: "look_up", arguments: { word: game.word() } }] },
      { role: "tool", content: textFor(game, dice), toolCallId: id, toolName: "look_up" },
      { role: "assistant", content: textFor(game, dice) },
    ].slice(0, dice.pick([1, 3, 4]));
    const events = messages.map(({ role, content, toolCalls, toolCallId, toolName }) =>
      role === "user"
        ? { action: "user_message", content }
        : toolCalls
          ? { action: "tool_call_request", toolCalls }
          : role === "tool"
            ? { action: "tool_result", toolCallId, toolName, content }
            : { action: "agent_message", content },
    );
    const body = {
      sessionId: session.id,
      messages,
      ...(dice.one(2) && { expectedLeafId: session.idOf(session.leaf) }),
    };
    let expected;
    const apply = (model, answer) => (expected = of(model).appendEvents(events, undefined, answer));
    const answer = await game.write(agent, "persistWorkingContext", body, apply, {
      dice,
      rows: rowsOf(game, agent, session, events),
    });
    if (answer) assertAppended(game, answer, expected);
  }),
);
